# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's loop saves at every step that was asked for, once."""

import pytest

from t5wild.own_binaries import saved_steps


def _saved(checkpoint_steps, *, first_step, total_steps, period, stats):
  """The steps that T5X's loop would save at besides the period's."""
  saved, step, index = [], first_step, 0
  while step < total_steps:
    end = min(total_steps, step - (step - first_step) % period + period)
    while step < end:
      index = saved_steps.find_first_checkpoint_step(
          index, checkpoint_steps, first_step, step
      )
      length, is_due = saved_steps.find_next_checkpoint_step(
          index, min(end - step, stats), False, step, checkpoint_steps, end,
          period, first_step,
      )  # fmt: skip
      step += length
      if is_due:
        saved.append(step)
        index = min(index + 1, len(checkpoint_steps) - 1)
  return saved


@pytest.mark.parametrize(
    ('checkpoint_steps', 'first_step', 'expected'),
    [
        ([], 0, []),
        (None, 0, []),
        ([3, 7, 12], 0, [3, 7, 12]),
        # Every fifth is saved anyway; none is twice, or before the start.
        ([3, 7, 10, 12], 5, [7, 12]),
        ([20], 0, []),
        ([4, 5, 6], 0, [4, 6]),
    ],
)
def test_the_steps_asked_for_are_saved_besides_those_of_the_period(
    checkpoint_steps, first_step, expected
):
  assert (
      _saved(
          checkpoint_steps, first_step=first_step, total_steps=15, period=5,
          stats=4,
      )
      == expected
  )  # fmt: skip
