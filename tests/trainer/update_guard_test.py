# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that are left out change nothing but the step."""

import math

import jax
import numpy as np
import pytest

from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import update_guard
from tests.trainer import mean_model


def _trainer(make_run, **arguments):
  return make_run.trainer(
      mean_model.Mean(), mean_model.make_batch(),
      learning_rate_fn=lambda step: 0.1, **arguments,
  )  # fmt: skip


def _params(trainer):
  return np.asarray(trainer.train_state.params['w'])


def _skipped(metrics):
  return int(metrics['updates_skipped'].total)


@pytest.fixture
def guarded(make_run):
  trainer = _trainer(make_run, update_guard=update_guard.UpdateGuard())
  trainer.compile_train(mean_model.make_batch())
  return trainer


def test_an_update_within_the_limit_is_made(guarded):
  before = _params(guarded)
  metrics = guarded.train_step(mean_model.make_batch())
  assert _skipped(metrics) == 0
  assert not np.array_equal(_params(guarded), before)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_of_an_update_that_is_not_finite_nothing_stays_but_the_step(
    guarded, value
):
  before = _params(guarded)
  metrics = guarded.train_step(mean_model.make_batch(value))
  assert _skipped(metrics) == 1
  assert int(guarded.train_state.step) == 1
  np.testing.assert_array_equal(_params(guarded), before)


def test_without_a_guard_such_an_update_spoils_the_parameters(make_run):
  trainer = _trainer(make_run)
  metrics = trainer.train_step(mean_model.make_batch(math.nan))
  assert 'updates_skipped' not in metrics
  assert not np.isfinite(_params(trainer)).all()


def test_a_gradient_above_the_limit_is_left_out_and_one_at_it_is_not(guarded):
  norm = float(
      guarded.train_step(mean_model.make_batch())['weight_gradient_norm'].total
  )
  guarded.update_limit = norm
  assert _skipped(guarded.train_step(mean_model.make_batch())) == 0
  guarded.update_limit = math.nextafter(norm * 0.999, 0)
  assert _skipped(guarded.train_step(mean_model.make_batch())) == 1


def test_updates_with_a_guard_have_the_bits_of_those_without(make_run, guarded):
  free = _trainer(make_run)
  for value in (1.0, 2.0, -1.5):
    free.train_step(mean_model.make_batch(value))
    guarded.train_step(mean_model.make_batch(value))
  np.testing.assert_array_equal(_params(guarded), _params(free))


def test_a_skipped_update_is_as_if_its_batch_had_not_been(make_run, guarded):
  free = _trainer(make_run)
  for value in (1.0, math.nan, 2.0):
    guarded.train_step(mean_model.make_batch(value))
  free.train_step(mean_model.make_batch(1.0))
  free.train_state = free.train_state.replace_step(
      jax.device_put(free.train_state.step + 1, free.train_state.step.sharding)
  )
  free.train_step(mean_model.make_batch(2.0))
  np.testing.assert_array_equal(_params(guarded), _params(free))
  assert int(guarded.train_state.step) == int(free.train_state.step) == 3


def test_with_several_devices_all_leave_out_the_same_update(make_run):
  trainer = _trainer(
      make_run,
      partitioner=partitioner_lib.PjitPartitioner(num_partitions=2),
      update_guard=update_guard.UpdateGuard(),
  )
  before = _params(trainer)
  batch = mean_model.make_batch(1.0)
  batch['x'] = batch['x'].at[3, 1].set(math.nan)  # on one device
  assert _skipped(trainer.train_step(batch)) == 1
  np.testing.assert_array_equal(_params(trainer), before)


def test_listed_steps_are_left_out_whatever_the_gradient_is():
  guard = update_guard.UpdateGuard(skip_steps=[3])
  assert guard.limit_at(3, usual=math.inf) < 0
  assert guard.limit_at(4, usual=7.0) == 7.0
  without = update_guard.UpdateGuard(not_finite_only=True)
  assert without.limit_at(4, usual=7.0) == math.inf


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'gradient': 3.0}, 'guard/spikes.Sensitivity'),
        ({'max_in_a_row': 0}, 'max_in_a_row'),
        ({'skip_steps': [0]}, 'skip_steps'),
        ({'skip_steps': [2.5]}, 'skip_steps'),
    ],
)
def test_a_guard_that_makes_no_sense_is_refused(changes, named):
  with pytest.raises(ValueError, match=rf'of UpdateGuard.*expected.*{named}'):
    update_guard.UpdateGuard(**changes)
