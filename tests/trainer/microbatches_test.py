# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How batches are split, and what is refused before."""

import logging

from absl import logging as absl_logging
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.trainer import microbatches
from t5wild.vitals import supervised

PartitionSpec = jax.sharding.PartitionSpec


def _split(x, number, semantics):
  take = microbatches.split(
      {'x': x},
      number,
      semantics=semantics,
      data_partition_spec=PartitionSpec('data'),
  )
  return [take(index)['x'] for index in range(number)]


def test_t5x_microbatches_are_consecutive_rows():
  rows = _split(jnp.arange(6), 2, 't5x')
  np.testing.assert_array_equal(rows, [[0, 1, 2], [3, 4, 5]])


def test_global_microbatches_hold_each_row_once():
  rows = _split(jnp.arange(6), 2, 'global')
  np.testing.assert_array_equal(rows, [[0, 2, 4], [1, 3, 5]])


def test_global_microbatches_move_no_row_between_devices():
  mesh = jax.make_mesh(
      (4,), ('data',), axis_types=(jax.sharding.AxisType.Auto,)
  )
  sharding = jax.sharding.NamedSharding(mesh, PartitionSpec('data'))
  batch = jax.device_put(jnp.arange(16).reshape(16, 1), sharding)
  with jax.set_mesh(mesh):
    split = jax.jit(lambda x: _split(x, 2, 'global'))
    text = split.lower(batch).compile().as_text()
    parts = split(batch)
  for collective in ('all-to-all', 'all-gather', 'collective-permute'):
    assert collective not in text
  for rows in parts:
    assert rows.sharding.spec[0] == 'data'


@pytest.mark.parametrize('number', [None, 0])
def test_none_and_0_take_the_batch_whole(number):
  microbatches.check_num_microbatches(number)
  microbatches.check_divisible(8, num_microbatches=number, data_shards=8)


@pytest.mark.parametrize('number', [-1, -2, 2.0, '2'])
def test_senseless_numbers_are_refused(number):
  with pytest.raises(ValueError, match='num_microbatches is'):
    microbatches.check_num_microbatches(number)


def test_batches_must_fill_every_device_in_every_microbatch():
  microbatches.check_divisible(16, num_microbatches=2, data_shards=8)
  with pytest.raises(ValueError, match='set BATCH_SIZE to 16'):
    microbatches.check_divisible(20, num_microbatches=2, data_shards=8)
  with pytest.raises(ValueError, match='set BATCH_SIZE to 8'):
    microbatches.check_divisible(2, num_microbatches=None, data_shards=8)


@pytest.mark.parametrize(
    ('number', 'semantics', 'is_told'),
    [(4, 't5x', True), (4, 'global', False), (1, 't5x', False)],
)
def test_numbers_that_depend_on_the_microbatches_are_told(
    number, semantics, is_told, monkeypatch, caplog
):
  monkeypatch.setattr(
      absl_logging,
      'log_first_n',
      lambda level, message, n, *args: absl_logging.log(level, message, *args),
  )
  with caplog.at_level(logging.WARNING, logger='absl'):
    microbatches.tell_semantics(number, semantics)
  said = ' '.join(record.getMessage() for record in caplog.records)
  assert ("'global'" in said and '4 microbatches' in said) is is_told


def _fold(monkeypatch, fold):
  told = supervised.Supervised(
      attempt=1, start=0.0, supervisor=1, host='h', label='h', folder='f',
      fold=fold,
  )  # fmt: skip
  for name, value in told.to_environment().items():
    monkeypatch.setenv(name, value)


def test_fewer_places_make_as_many_more_microbatches(monkeypatch):
  folded = microbatches.folded
  assert folded(None, semantics='global') is None
  _fold(monkeypatch, 2)
  assert folded(None, semantics='global') == 2
  assert folded(3, semantics='global') == 6


def test_numbers_of_t5x_depend_on_the_microbatches_which_stay(monkeypatch):
  _fold(monkeypatch, 2)
  assert microbatches.folded(3, semantics='t5x') == 3
