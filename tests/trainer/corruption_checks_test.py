# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A flipped bit on one of eight devices is found, and the device is named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import corruption_checks
from t5wild.trainer import replay
from tests.trainer import mean_model


class _Run:
  """A trainer on eight devices with checks at every step."""

  def __init__(self, make_run, *, mesh_shape=None, model=None, **arguments):
    self.model = model or mean_model.Mean()
    self.partitioner = partitioner_lib.PjitPartitioner(
        mesh_shape=mesh_shape or {'data': -1},
        logical_axis_rules=(
            ('batch', 'data'), ('embed', 'sequence'), ('mlp', 'model'),
        ),
    )  # fmt: skip
    batch = mean_model.make_batch()
    self.trainer = make_run.trainer(
        self.model, batch, partitioner=self.partitioner,
        learning_rate_fn=lambda step: 0.5,
    )  # fmt: skip
    self.batch = self.partitioner.global_batch(
        {name: np.asarray(x) for name, x in batch.items()}
    )
    self.quarantined, self.recorded = [], []
    watched = corruption_checks.Watched(
        trainer=self.trainer,
        model=self.model,
        partitioner=self.partitioner,
        first_step=0,
        quarantine=self._quarantine,
        record=lambda step, values: self.recorded.append((step, values)),
    )
    self.checks = corruption_checks.CorruptionChecks(
        watched, **{'period': 1, **arguments}
    )
    self.checks.prepare(jax.eval_shape(lambda: self.batch))
    self.step_fn = self.checks.seeing(self.trainer.train_step)
    self.step = 0

  def _quarantine(self, step, *, reason):
    self.quarantined.append((step, reason))
    return [step + 1]

  def train(self, num_steps):
    for _ in range(num_steps):
      self.step += 1
      self.step_fn(self.batch)
      self.checks.after_step(self.step)

  def flip(self, row):
    """Flips a bit of one number on one device, not one that is rounded off."""
    state = self.trainer.train_state
    w = state.params['w']
    parts = []
    for shard in w.addressable_shards:
      part = np.array(shard.data)
      if shard.device == w.sharding.mesh.devices.flat[row]:
        part.view(np.uint32).reshape(-1)[0] ^= 1 << 20
      parts.append(jax.device_put(part, shard.device))
    harmed = jax.make_array_from_single_device_arrays(
        w.shape, w.sharding, parts
    )
    self.trainer.train_state = state.replace_params({'w': harmed})


@pytest.mark.parametrize('row', [0, 5])
def test_a_flipped_bit_in_one_replica_names_its_device(make_run, row):
  run = _Run(make_run, replay=False)
  run.train(4)
  run.flip(row)
  with pytest.raises(corruption_checks.SilentCorruptionError) as caught:
    run.train(10)
  told = str(caught.value)
  assert f'differ on device {row} of process 0' in told
  assert 'replicas of the parameters' in told and 'in w.' in told
  # All agreed until it was flipped; what was saved later is taken away.
  assert 'All agreed after step 4' in told
  assert run.quarantined == [(4, 'silent corruption, seen after step 5')]
  assert run.step == 5 + corruption_checks.LOOK_AFTER


def test_with_the_check_off_a_flipped_bit_goes_unseen(make_run):
  run = _Run(make_run, period=1000)
  run.flip(5)
  run.train(10)
  assert not run.quarantined


def test_devices_alike_agree_and_it_is_on_record(make_run):
  run = _Run(make_run)
  run.train(6)
  run.checks.finish(6)
  assert [s for s, _ in run.recorded] == [1, 2, 3, 4, 5, 6]
  assert 'same and on other devices' in run.checks.describe()


def test_a_run_that_went_back_is_checked_from_there_on(make_run):
  run = _Run(make_run, replay=False)
  run.train(8)
  run.step = 3
  run.train(2)
  run.flip(5)
  with pytest.raises(corruption_checks.SilentCorruptionError):
    run.train(8)
  assert run.quarantined == [(5, 'silent corruption, seen after step 6')]


def test_two_replicas_that_differ_are_both_suspects(make_run):
  run = _Run(make_run, mesh_shape={'data': 2, 'model': 2, 'sequence': 2},
             replay=False)  # fmt: skip
  run.train(1)
  run.flip(3)
  with pytest.raises(corruption_checks.SilentCorruptionError) as caught:
    run.checks.finish(run.step + 1)
  told = str(caught.value)
  assert 'no majority tells which' in told
  assert 'device 3 ' in told and 'device 7 ' in told


class _Wrong(mean_model.Mean):
  """Computes a gradient that device `row` gets wrong."""

  def __init__(self, row):
    super().__init__()
    self.row = row

  def loss_fn(self, params, batch, dropout_rng):
    loss, metrics = super().loss_fn(params, batch, dropout_rng)
    axes = jax.sharding.get_abstract_mesh().manual_axes
    if axes:
      mine = jax.lax.axis_index(axes)
      loss = jnp.where(mine == self.row, loss * (1 + 2**-23), loss)
    return loss, metrics


def test_a_device_that_computes_otherwise_than_others_is_named(make_run):
  run = _Run(make_run, model=_Wrong(6))
  with pytest.raises(corruption_checks.SilentCorruptionError) as caught:
    run.train(10)
  told = str(caught.value)
  assert 'gradients of the same rows differ on device 6 ' in told


def test_fully_sharded_parameters_are_replayed_only_and_that_is_said(make_run):
  run = _Run(make_run, mesh_shape={'model': 2, 'sequence': 4},
             model=_Wrong(2))  # fmt: skip
  assert 'no replicas to compare: replay only' in run.checks.describe()
  with pytest.raises(corruption_checks.SilentCorruptionError, match='device 2'):
    run.train(10)


def test_parameters_too_large_to_gather_are_replayed_in_place(make_run):
  run = _Run(make_run, mesh_shape={'model': 2, 'sequence': 4},
             max_gathered_bytes=1)  # fmt: skip
  assert 'on the same devices only' in run.checks.describe()
  run.train(6)
  run.checks.finish(6)
  assert len(run.recorded) == 6


def test_without_a_period_the_budget_gives_one(make_run):
  run = _Run(make_run, period=None, budget_percent=50.0)
  run.train(30)
  (step, values), *rest = run.recorded
  assert step == 12 and values['corruption/period_steps'] >= 1
  assert rest or values['corruption/period_steps'] > 15


def _bits(x):
  return int(replay.sums_of(x)[0])


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16', 'int8', 'float16'])
def test_any_flipped_bit_changes_the_sum(dtype):
  x = np.asarray(jnp.linspace(-1, 1, 24).reshape(4, 6).astype(dtype))
  whole = _bits(jnp.asarray(x))
  words = x.view(f'uint{8 * x.dtype.itemsize}')
  num_bits = 8 * x.dtype.itemsize
  sums_of = jax.jit(replay.sums_of)
  for place in (0, 7, 23):
    for bit in range(num_bits):
      harmed = words.copy()
      harmed.reshape(-1)[place] ^= np.asarray(1 << bit, words.dtype)
      assert int(sums_of(jnp.asarray(harmed.view(x.dtype)))[0]) != whole


def test_exchanged_numbers_change_the_sum():
  assert _bits(jnp.array([1.0, 2.0])) != _bits(jnp.array([2.0, 1.0]))


@pytest.mark.parametrize(
    'arguments', [{'period': 0}, {'budget_percent': 0}, {'replay_rows': 1.5}]
)
def test_arguments_without_sense_are_refused(make_run, arguments):
  with pytest.raises(ValueError, match=r'CorruptionChecks is .*expected'):
    _Run(make_run, **arguments)
