# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What counts as a spike, and as a plateau."""

import json
import math

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from t5wild.vitals import spikes

_SENSITIVITY = spikes.Sensitivity(window_steps=21, warm_up_steps=10)


def _noisy(count, *, level=3.0, noise=0.02, seed=0):
  rng = np.random.default_rng(seed)
  return (level + noise * rng.standard_normal(count)).tolist()


def _found(values, sensitivity=_SENSITIVITY):
  detector = spikes.Detector(sensitivity)
  return [i for i, value in enumerate(values) if detector.add(value)]


def test_a_leap_out_of_noise_is_found_at_its_first_value():
  values = [*_noisy(40), 9.0, 8.5, 7.0, *_noisy(20, seed=1)]
  assert _found(values) == [40]


def test_noise_alone_is_no_spike():
  assert _found(_noisy(3000)) == []


def test_a_falling_loss_is_no_spike():
  falling = [10.0 * 0.99**i for i in range(300)]
  noisy = np.asarray(falling) * (1 + 0.01 * np.asarray(_noisy(300, level=0.0)))
  assert _found(noisy.tolist()) == []


def test_nothing_is_a_spike_while_warming_up():
  values = [1.0, 50.0, 1.0, 80.0, 1.0, 60.0]
  assert _found(values) == []
  warm = spikes.Sensitivity(window_steps=21, warm_up_steps=2)
  assert _found(values, warm) != []


def test_spikes_do_not_raise_what_they_are_held_against():
  detector = spikes.Detector(_SENSITIVITY)
  for value in _noisy(40):
    detector.add(value)
  before = detector.limit
  detector.add(100.0)
  assert detector.limit == before


def test_two_spikes_apart_are_two_and_one_that_lasts_is_one():
  quiet = _noisy(20, seed=2)
  assert _found([*_noisy(30), 9.0, 9.0, 3.0, 9.0, *quiet, 9.0]) == [30, 54]


def test_a_level_that_stays_becomes_the_usual_one():
  values = [*_noisy(30), *_noisy(40, level=9.0)]
  assert _found([*values, 30.0]) == [30, 70]


def test_what_is_not_finite_is_not_judged_and_not_taken_in():
  values = [*_noisy(30), math.nan, math.inf, -math.inf, *_noisy(30)]
  assert _found(values) == []


@pytest.mark.parametrize(('rise', 'expected'), [(0.5, []), (0.1, [30])])
def test_a_rise_below_the_least_is_no_spike_however_quiet_it_was(
    rise, expected
):
  sensitivity = spikes.Sensitivity(
      window_steps=21, warm_up_steps=10, least_rise=rise
  )
  assert _found([*[1.0] * 30, 1.3], sensitivity) == expected


@pytest.mark.parametrize(('deviations', 'expected'), [(100, []), (5, [60])])
def test_with_the_detector_off_the_spike_is_missed(deviations, expected):
  sensitivity = spikes.Sensitivity(
      window_steps=21, warm_up_steps=10, deviations=deviations, least_rise=0.0
  )
  values = [*_noisy(60, noise=0.1), 4.5]
  assert _found(values, sensitivity)[-1:] == expected


@hypothesis.given(
    st.lists(st.floats(0.1, 100), min_size=1, max_size=80), st.integers(0, 80)
)
def test_resumed_at_any_value_the_verdicts_are_the_same(values, cut):
  whole = spikes.Detector(_SENSITIVITY)
  expected = [(whole.add(v), whole.limit) for v in values]
  first, second = (spikes.Detector(_SENSITIVITY) for _ in range(2))
  found = [(first.add(v), first.limit) for v in values[:cut]]
  second.load(json.loads(json.dumps(first.state())))
  found += [(second.add(v), second.limit) for v in values[cut:]]
  assert found == expected


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'window_steps': 2}, 'window_steps'),
        ({'window_steps': 20.5}, 'window_steps'),
        ({'warm_up_steps': 0}, 'warm_up_steps'),
        ({'warm_up_steps': 200}, 'window_steps'),
        ({'deviations': 0.0}, 'deviations'),
        ({'deviations': math.nan}, 'deviations'),
        ({'deviations': '8'}, 'deviations'),
        ({'least_rise': -0.1}, 'least_rise'),
    ],
)
def test_a_sensitivity_that_makes_no_sense_is_refused(changes, named):
  with pytest.raises(ValueError, match=rf'(?s){named}.*expected.*spikes\.'):
    spikes.Sensitivity(**changes)


def _plateaus(values, **arguments):
  plateau = spikes.Plateau(**({'steps': 20, 'least_improvement': 0.01}
                              | arguments))  # fmt: skip
  return [i for i, value in enumerate(values) if plateau.add(value)]


def test_a_loss_that_falls_no_more_is_told_once():
  falling = [5.0 - 0.05 * i for i in range(60)]
  assert _plateaus([*falling, *[2.0] * 60]) == [79]


def test_a_loss_that_falls_is_no_plateau():
  assert _plateaus([5.0 * 0.99**i for i in range(400)]) == []


def test_a_second_plateau_is_told_after_the_loss_fell_again():
  steps = [*[5.0] * 40, *[4.0] * 40]
  assert _plateaus(steps) == [19, 59]


def test_a_rising_loss_is_a_plateau_too():
  assert _plateaus([1.0 + 0.1 * i for i in range(40)]) == [19]


def test_plateau_resumed_tells_the_same():
  values = [*[5.0] * 33, *[4.0] * 40]
  whole = spikes.Plateau(steps=20, least_improvement=0.01)
  expected = [whole.add(v) for v in values]
  first, second = (
      spikes.Plateau(steps=20, least_improvement=0.01) for _ in range(2)
  )
  found = [first.add(v) for v in values[:15]]
  second.load(json.loads(json.dumps(first.state())))
  assert found + [second.add(v) for v in values[15:]] == expected


@hypothesis.given(st.lists(st.floats(-50, 50), min_size=10, max_size=60))
def test_limit_is_that_of_median_and_mad_of_the_window(values):
  detector = spikes.Detector(
      spikes.Sensitivity(
          window_steps=11, warm_up_steps=11, deviations=3, least_rise=0.0
      )
  )
  window = []
  for value in values:
    if value <= detector.limit:
      window = [*window, value][-11:]
    detector.add(value)
    if len(window) == 11 and not detector._above:
      level = np.median(window)
      spread = np.median(np.abs(np.asarray(window) - level))
      assert detector.level == level
      assert detector.limit == pytest.approx(level + 3 * 1.4826 * spread)
