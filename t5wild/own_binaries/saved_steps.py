# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which of the `checkpoint_steps` of a recipe T5X's loop saves next."""

from collections.abc import Sequence


def find_first_checkpoint_step(
    checkpoint_steps_index: int,
    checkpoint_steps: Sequence[int] | None,
    first_step: int,
    host_step: int,
) -> int:
  """Passes over what is saved or behind; returns the index to go on at.

  Args:
    checkpoint_steps_index: Where to begin.
    checkpoint_steps: Steps to save at, in order; or none.
    first_step: Step that the run began with.
    host_step: Step that it is at.
  """
  index, last = checkpoint_steps_index, len(checkpoint_steps or ()) - 1
  while index < last and (
      host_step > checkpoint_steps[index]
      or checkpoint_steps[index] == first_step
  ):
    index += 1
  return index


def find_next_checkpoint_step(
    checkpoint_steps_index: int,
    inner_num_steps: int,
    is_checkpoint_step: bool,
    host_step: int,
    checkpoint_steps: Sequence[int] | None,
    epoch_end_step: int,
    checkpoint_period: int,
    first_step: int,
) -> tuple[int, bool]:
  """Ends an interval early where one of the steps lies in it.

  Args:
    checkpoint_steps_index: Index of the first that counts.
    inner_num_steps: Length of the interval.
    is_checkpoint_step: Returned where none lies in it.
    host_step: Where the interval begins.
    checkpoint_steps: Steps to save at, in order; or none.
    epoch_end_step: Last step that counts.
    checkpoint_period: Steps between the saves that are made anyway.
    first_step: Step that the run began with.

  Returns:
    The length, and whether to save after it.
  """
  for step in (checkpoint_steps or ())[checkpoint_steps_index:]:
    if step > host_step + inner_num_steps:
      break
    is_saved_anyway = (
        checkpoint_period and (step - first_step) % checkpoint_period == 0
    )
    # One that is reached already would be an interval of no steps, for ever.
    is_ahead = max(first_step, host_step) < step <= epoch_end_step
    if is_ahead and not is_saved_anyway:
      return step - host_step, True
  return inner_num_steps, is_checkpoint_step
