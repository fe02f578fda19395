# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is restored is what was saved, or it is refused by name."""

import contextlib
import pathlib
import random
import shutil
import sys
import threading

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np
import pytest

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import integrity
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import restoring
from t5wild.checkpoints import staging
from t5wild.checkpoints import state_hashes
from tests.checkpoints import checkpoint_states as states


def _save(folder, state, *, step=1, **config):
  manager = manager_lib.CheckpointManager(
      folder, config=configs.SaveCheckpointConfig(**config)
  )
  with contextlib.closing(manager):
    assert manager.save(step, state, {'batches': step})
    assert manager.wait()
  return folder / f'checkpoint_{step}'


def _restore(path, numbers, *, mesh=(4, 2), dtype=None):
  request = restoring.Request(
      abstract_state=states.abstract(numbers),
      shardings=states.shardings_of(numbers, states.make_mesh(mesh)),
      dtype=dtype,
      is_resuming=True,
  )
  return restoring.restore_state(str(path), request)


def _large_state():
  """One array of most of the bytes, so that a flip hits numbers."""
  rng = np.random.default_rng(3)
  numbers = states.make_numbers(3)
  numbers['target']['big'] = rng.standard_normal((256, 512)).astype(np.float32)
  return numbers


def _largest(path):
  files = [p for p in pathlib.Path(path).rglob('*') if p.is_file()]
  return max(files, key=lambda p: p.stat().st_size)


@pytest.mark.parametrize(('mesh', 'dtype'), [
    ((4, 2), 'float32'), ((8, 1), 'bfloat16'), ((1, 8), 'int8'),
    ((4, 2), 'bool'),
])  # fmt: skip
def test_devices_and_hosts_give_one_hash_for_any_cut(mesh, dtype):
  array = jnp.asarray(
      np.random.default_rng(0).standard_normal((16, 24)) * 50
  ).astype(dtype)
  expected = array_hashes.hash_array(np.asarray(array))
  sharding = jax.sharding.NamedSharding(
      states.make_mesh(mesh), jax.sharding.PartitionSpec('data', 'model')
  )
  placed = {'a': jax.device_put(array, sharding)}
  shares = state_hashes.start_hashing(placed, dtypes={'a': array.dtype})()
  assert shares['a'] % array_hashes.MODULUS == expected
  on_devices = jax.jit(state_hashes.hash_of, static_argnames='dtype')
  assert int(on_devices(placed['a'], dtype=array.dtype.name)) == expected


def test_every_single_bit_and_every_swap_changes_the_hash():
  array = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
  seen = {array_hashes.hash_array(array)}
  for place in range(array.size):
    for bit in range(32):
      changed = array.copy()
      changed.reshape(-1).view(np.uint32)[place] ^= np.uint32(1 << bit)
      seen.add(array_hashes.hash_array(changed))
  seen.add(array_hashes.hash_array(array[::-1]))
  seen.add(array_hashes.hash_array(-array))  # many sign bits at once
  assert len(seen) == 1 + array.size * 32 + 2


def test_hashing_leaves_the_memory_to_be_donated():
  state = {'a': jax.jit(lambda: jnp.ones((64, 64)))()}
  pointer = state['a'].unsafe_buffer_pointer()
  state_hashes.start_hashing(state, dtypes={'a': np.float32})()
  step = jax.jit(lambda x: x + 1, donate_argnums=0)
  assert step(state['a']).unsafe_buffer_pointer() == pointer


def test_flipped_bit_is_named_by_array_and_file_in_12_of_12_trials(tmp_path):
  numbers = _large_state()
  path = _save(tmp_path, states.place(numbers, states.make_mesh((4, 2))))
  first = numbers['target']['big'].tobytes()[:16]
  file = next(
      file
      for file in path.rglob('*')
      if file.is_file() and first in file.read_bytes()
  )
  whole = file.read_bytes()
  start = whole.index(first)
  rng = random.Random(0)
  for _ in range(12):
    changed = bytearray(whole)
    place = start + rng.randrange(4 * 256 * 512 // 8)  # one device's part
    changed[place] ^= 1 << rng.randrange(8)
    file.write_bytes(changed)
    with pytest.raises(integrity.CorruptError) as error:
      _restore(path, numbers, mesh=(8, 1))
    text = str(error.value)
    assert 'wrong numbers in target/big (hash ' in text
    assert str(file.relative_to(path)) in text
    assert 'has other bytes between' in text
  # Orbax itself sees nothing: with the hashes gone it is taken for whole.
  shutil.rmtree(path / file_hashes.FOLDER)
  read = _restore(path, numbers)
  assert (np.asarray(read['target']['big']) != numbers['target']['big']).any()
  file.write_bytes(whole)
  states.assert_same_bits(_restore(path, numbers), numbers)


@pytest.mark.parametrize('saved, restored', [
    ('bfloat16', None),  # widened: the hash is that of what was saved
    ('float32', 'bfloat16'),  # rounded: told by the files
])
def test_other_dtypes_are_checked_too(tmp_path, saved, restored):
  numbers = _large_state()
  place = states.place(numbers, states.make_mesh((4, 2)))
  path = _save(tmp_path, place, dtype=saved)
  _restore(path, numbers, dtype=restored)
  file = _largest(path)
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)
  with pytest.raises(integrity.CorruptError, match='has other bytes'):
    _restore(path, numbers, dtype=restored)


def test_a_checkpoint_without_hashes_is_read_and_told(tmp_path, caplog):
  numbers = states.make_numbers(1)
  path = _save(tmp_path, states.place(numbers, states.make_mesh((4, 2))))
  shutil.rmtree(path / file_hashes.FOLDER)
  states.assert_same_bits(_restore(path, numbers), numbers)
  assert 'Its numbers are not verified' in caplog.text


@pytest.mark.parametrize('gone', [steps.COMMIT_MARKER, '_CHECKPOINT_METADATA'])
def test_files_that_are_gone_are_known(tmp_path, gone):
  numbers = states.make_numbers(1)
  path = _save(tmp_path, states.place(numbers, states.make_mesh((4, 2))))
  assert file_hashes.verify(path).damages == ()
  assert file_hashes.verify(path).unknown == ()
  (path / gone).unlink()
  assert integrity.tell_missing(str(path)) == [gone]
  (damage,) = file_hashes.verify(path).damages
  assert str(damage) == f'{gone} is missing'


def test_a_checkpoint_left_in_the_pieces_of_its_processes_is_none(tmp_path):
  numbers = states.make_numbers(1)
  path = _save(tmp_path, states.place(numbers, states.make_mesh((4, 2))))
  # As Orbax leaves it whose search for the pieces finds none.
  (path / 'state' / 'manifest.ocdbt').unlink()
  shutil.rmtree(path / 'state' / 'd')
  for name in (path / file_hashes.FOLDER).glob('files.*'):
    name.unlink()
  file_hashes.write(path)
  assert [str(d) for d in file_hashes.verify(path).damages] == [
      'state/manifest.ocdbt was never written'
  ]


def test_a_state_is_hashed_while_another_thread_takes_it_apart():
  # JAX takes an array apart without a lock.
  sharding = NamedSharding(
      Mesh(np.array(jax.devices()), ('x',)), PartitionSpec('x')
  )
  before = sys.getswitchinterval()
  sys.setswitchinterval(1e-6)
  try:
    for _ in range(10):
      state = staging.HostStaging().copy({
          str(i): jax.device_put(np.ones((8, 64), np.float32), sharding)
          for i in range(40)
      })
      shares = state_hashes.start_hashing(
          state, dtypes=dict.fromkeys(state, np.dtype(np.float32))
      )
      writer = threading.Thread(
          target=lambda state=state: [
              leaf.addressable_shards for leaf in state.values()
          ]
      )
      writer.start()
      assert len(set(shares().values())) == 1
      writer.join()
  finally:
    sys.setswitchinterval(before)
