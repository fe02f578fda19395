# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What fits is found; what does not is refused before anything is read."""

import types

import hypothesis
from hypothesis import strategies
import pytest

from t5wild.data import denoisers
from t5wild.data import objective_plans


def features(**add_eos):
  return {
      name: types.SimpleNamespace(add_eos=value)
      for name, value in add_eos.items()
  }


def room(inputs, targets):
  return objective_plans.Room(inputs=inputs, targets=targets)


def plan(inputs, targets, *, extra_ids=100, density=0.15):
  return objective_plans.checked_plan(
      room(inputs and inputs - 1, targets - 1),
      vocabulary=types.SimpleNamespace(extra_ids=extra_ids),
      noise_density=density,
      mean_noise_span_length=3.0,
  )


def test_room_is_the_lengths_less_the_ends_of_sequence():
  lengths = {'inputs': 10, 'targets': 20}
  both = objective_plans.make_room(
      lengths, features(inputs=True, targets=False)
  )
  assert both == room(9, 20)
  targets_only = objective_plans.make_room(lengths, features(targets=True))
  assert targets_only == room(None, 19)
  assert targets_only.is_concatenated


@pytest.mark.parametrize('lengths', [None, {}, {'targets': 5}])
def test_a_missing_length_is_refused_with_the_feature_and_the_mend(lengths):
  with pytest.raises(ValueError, match=r"'inputs' is None.*Set.*'targets'"):
    objective_plans.make_room(lengths, features(inputs=True, targets=True))


def test_a_length_that_the_end_of_sequence_fills_is_refused():
  with pytest.raises(ValueError, match=r"'targets' is 1.*at least 2"):
    objective_plans.make_room({'targets': 1}, features(targets=True))


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
    strategies.floats(0.05, 0.9),
    strategies.none() | strategies.floats(1.0, 70.0),
    strategies.none() | strategies.integers(10, 600),
    strategies.integers(10, 600),
)
def test_the_longest_chunk_fits_and_no_longer_one_does(
    density, mean, inputs, targets
):
  rule = denoisers.SpanDenoiser(
      noise_density=density, mean_noise_span_length=mean
  )
  length = objective_plans.longest_chunk(rule, room=room(inputs, targets))
  fits = room(inputs, targets).fits
  assert fits(rule.lengths(length), num_mode_tokens=0)
  assert not fits(rule.lengths(length + 1), num_mode_tokens=0)


def test_lengths_that_fit_make_a_plan():
  assert plan(512, 114).tokens_length == 568


def test_targets_that_would_be_cut_off_are_refused_with_the_length():
  with pytest.raises(ValueError, match="113 would be cut.*'targets': 114"):
    plan(512, 113)


def test_sentinels_that_run_out_are_refused_with_the_number():
  with pytest.raises(ValueError, match='27 sentinels.*at least 28.*extra_ids'):
    plan(512, 114, extra_ids=27)


def test_a_decoder_gets_as_much_text_as_fits_with_its_sentinels():
  found = plan(None, 626)
  assert found.inputs_length + found.targets_length - 1 <= 626
  assert found.tokens_length == 569


@pytest.mark.parametrize(
    'weights', [[], [0.0, 0.0], [1.0, -1.0], [float('nan')], [float('inf')]]
)
def test_weights_by_which_nothing_can_be_drawn_are_refused(weights):
  with pytest.raises(ValueError, match='weights of x are.*at least 0.*Correct'):
    objective_plans.check_weights(weights, of='x')


def test_a_fraction_out_of_range_is_refused():
  objective_plans.check_fraction('rate', 1.0)
  with pytest.raises(ValueError, match=r'rate is 1\.1.*0 to 1.*Set'):
    objective_plans.check_fraction('rate', 1.1)
