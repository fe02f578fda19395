# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several processes, read by other numbers of them."""

import contextlib
import os

import jax
import numpy as np
import pytest

from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from tests import multiprocess
from tests.checkpoints import checkpoint_states as states
from tests.checkpoints import t5x_checkpoints

_STATE = """
import sys
import jax
from t5wild.partitioning import distributed
distributed.start()
from t5wild.checkpoints import configs, manager
from tests.checkpoints import checkpoint_states as states
import numpy as np

mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2),
                         ('data', 'model'))
numbers = states.make_numbers(3)
shardings = states.shardings_of(numbers, mesh)
state = jax.tree.map(
    lambda x, s: jax.make_array_from_callback(x.shape, s, lambda i: x[i]),
    numbers, shardings)
"""

_SAVE = _STATE + """
opened = manager.CheckpointManager(DIRECTORY,
    config=configs.SaveCheckpointConfig(keep=2))
for step in (1, 2, 3):
  opened.save(step, state, {'process': jax.process_index(), 'step': step},
              metrics={'loss': 1.0})
opened.wait()
assert opened.all_steps() == [2, 3]
read, position = opened.restore(3, abstract_state=states.abstract(numbers),
                                shardings=shardings)
assert position == {'process': jax.process_index(), 'step': 3}
for got, want in zip(jax.tree.leaves(read), jax.tree.leaves(state)):
  for a, b in zip(got.addressable_shards, want.addressable_shards):
    np.testing.assert_array_equal(a.data, b.data)
opened.close()
"""


_NATIVE = _STATE + """
from t5wild.checkpoints import restoring, t5x_import
parts = []
read = t5x_import.NativeArray.read
def watched(self, index):
  parts.append((self.key, index))
  return read(self, index)
t5x_import.NativeArray.read = watched
request = restoring.Request(abstract_state=states.abstract(numbers),
                            shardings=shardings)
restored = restoring.restore_state(DIRECTORY, request)
for got, want in zip(jax.tree.leaves(restored), jax.tree.leaves(state)):
  for a, b in zip(got.addressable_shards, want.addressable_shards):
    np.testing.assert_array_equal(a.data, b.data)
kernel = [i for key, i in parts if key == 'target/encoder/kernel']
# Of 16 rows, the 8 that lie here, at once.
first = 8 * jax.process_index()
assert [[(p.start, p.stop) for p in index] for index in kernel] == [
    [(first, first + 8), (0, 8)]], kernel
"""


_ONE_FAILS = _STATE + """
import orbax.checkpoint as ocp
events = []
opened = manager.CheckpointManager(DIRECTORY, timeout_seconds=5,
    config=configs.SaveCheckpointConfig(), on_event=events.append)
write = ocp.JsonCheckpointHandler._save_fn
async def broken(*args): raise OSError('my disk')
for step in (1, 2, 3):
  is_broken = step == 2 and jax.process_index() == 1
  ocp.JsonCheckpointHandler._save_fn = broken if is_broken else write
  opened.save(step, state, {'step': step})
opened.wait()
assert opened.all_steps() == [1, 3]
assert [e.kind for e in events] == ['saved', 'save_failed', 'saved']
assert not opened.retry_is_due()
opened.close()
"""


_EACH_ITS_OWN = """
import sys
from t5wild.partitioning import distributed
distributed.start()
from t5wild.checkpoints import common_sight
common_sight._PATIENCE_SECONDS = 1
index = distributed.process_index()
for place, told in PLACES:
  try:
    common_sight.check(place.format(index))
    said = ''
  except common_sight.OtherSightError as error:
    said = str(error)
  assert bool(said) == bool(told) and told in said, (place, said)
distributed.barrier('end', 60)
"""


@pytest.mark.multiprocess
def test_processes_that_see_other_checkpoints_at_a_path_are_told(tmp_path):
  for name, run in (('a0', 1), ('a1', 1), ('b0', 1), ('b1', 2), ('c0', 1)):
    folder = tmp_path / name / 'integrity'
    folder.mkdir(parents=True)
    (folder / 'run.json').write_text(f'{run}')
    # What is written later is no difference.
    (tmp_path / name / 'metrics.json').write_text(name)
  places = [
      (f'{tmp_path}/a{{}}', ''),
      (f'{tmp_path}/b{{}}', 'processes [1] see another one there than process'),
      (f'{tmp_path}/c{{}}', 'processes [1] see no checkpoint there'),
      (f'{tmp_path}/d{{}}', ''),
  ]
  multiprocess.run_processes(_EACH_ITS_OWN.replace('PLACES', repr(places)), 2)


@pytest.mark.multiprocess
@pytest.mark.slow
@pytest.mark.parametrize('count', [2, 4])
def test_one_process_reads_what_several_have_saved(tmp_path, count):
  run = tmp_path / 'run'
  multiprocess.run_processes(
      _SAVE.replace('DIRECTORY', repr(str(run))),
      count,
      devices_per_process=8 // count,
      timeout=240,
  )
  assert sorted(os.listdir(run)) == ['checkpoint_2', 'checkpoint_3']
  assert sorted(p.name for p in (run / 'checkpoint_3/dataset').glob('p*')) == [
      f'process_{i:05d}-of-{count:05d}.json' for i in range(count)
  ]
  numbers = states.make_numbers(3)
  one = jax.sharding.Mesh(
      np.array(jax.devices()[:1]).reshape(1, 1), ('data', 'model')
  )
  opened = manager_lib.CheckpointManager(
      run, config=configs.SaveCheckpointConfig()
  )
  with contextlib.closing(opened):
    read, position = opened.restore(
        3,
        abstract_state=states.abstract(numbers),
        shardings=states.shardings_of(numbers, one),
    )
  states.assert_same_bits(read, numbers)
  assert position == {'process': 0, 'step': 3}


@pytest.mark.multiprocess
@pytest.mark.slow
def test_save_that_fails_on_one_process_fails_on_all_and_the_next_works(
    tmp_path,
):
  run = tmp_path / 'run'
  multiprocess.run_processes(
      _ONE_FAILS.replace('DIRECTORY', repr(str(run))),
      2,
      devices_per_process=4,
      timeout=240,
  )
  assert sorted(os.listdir(run)) == ['checkpoint_1', 'checkpoint_3']


@pytest.mark.multiprocess
@pytest.mark.slow
def test_each_process_reads_its_shards_of_a_checkpoint_of_t5x(tmp_path):
  path = tmp_path / 'checkpoint_3'
  t5x_checkpoints.write_native(
      path, states.make_numbers(3), chunks={'target/encoder/kernel': (4, 4)}
  )
  multiprocess.run_processes(
      _NATIVE.replace('DIRECTORY', repr(str(path))),
      2,
      devices_per_process=4,
      timeout=240,
  )
