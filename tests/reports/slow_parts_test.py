# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Slow parts of a curve are told by what was before them; its swing is none."""

import numpy as np
import pytest

from t5wild.reports import slow_parts


def _curve(*, num=200, swing=0.05, seed=0):
  draw = np.random.default_rng(seed)
  return 1000.0 * np.exp(swing * draw.normal(size=num))


def test_a_drop_that_never_recovers_is_held_against_what_was_before():
  values = _curve()
  values[60:] *= 0.1  # most of the run: the whole's median is the slow one
  part = slow_parts.find(values, share=0.7)
  assert (part.first, part.last) == (60, 199)
  assert part.is_to_the_end and part.is_held_against_before
  assert part.share == pytest.approx(0.1, rel=0.1)


def test_a_part_that_recovers_ends_where_it_does():
  values = _curve()
  values[80:120] *= 0.4
  part = slow_parts.find(values, share=0.7)
  assert (part.first, part.last) == (80, 119)
  assert not part.is_to_the_end


def test_a_slow_beginning_is_held_against_the_whole():
  values = _curve()
  values[:40] *= 0.3
  part = slow_parts.find(values, share=0.7)
  assert part.last == 39
  assert not part.is_held_against_before


@pytest.mark.parametrize('length', [1, 2])
def test_one_record_or_two_are_no_slow_part(length):
  values = _curve()
  values[100 : 100 + length] *= 0.01
  assert slow_parts.find(values, share=0.7) is None


@pytest.mark.parametrize('seed', range(10))
def test_the_usual_swing_of_a_curve_is_no_slow_part(seed):
  # A factor of two up and down, as steps of milliseconds have it.
  assert slow_parts.find(_curve(swing=0.6, seed=seed), share=0.7) is None
