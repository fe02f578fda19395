# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What lies on disk: T5X's layout, dtypes, data positions."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import positions
from t5wild.checkpoints import state_io
from t5wild.checkpoints import transforms
from t5wild.data import reader_protocol
from tests.checkpoints import checkpoint_states as states


def _save(path, state, *, dtype=None, dataset_state=None):
  writer = state_io.make_checkpointer(str(path.parent), timeout_seconds=60)
  args = state_io.make_save_args(
      transforms.flatten(state), dtype=dtype, dataset_state=dataset_state
  )
  writer.save(path, args=args)
  writer.close()


def test_layout_on_disk_is_t5xs(tmp_path, t5x_fixtures):
  theirs = t5x_fixtures / 'encoder_decoder' / 'ckpt_orbax' / 'checkpoint_300'
  ours = tmp_path / 'checkpoint_300'
  _save(ours, states.make_numbers(), dataset_state={'batches': 3})

  def names(folder):
    return {p.name for p in folder.iterdir()}

  # Its readers pass over what they do not ask for.
  assert names(ours) - {'integrity'} == names(theirs)
  assert names(ours / 'state') >= {'_METADATA', 'manifest.ocdbt'}
  assert (ours / steps.COMMIT_MARKER).exists()


def test_checkpoint_of_t5x_is_read_with_its_numbers(t5x_fixtures):
  folder = t5x_fixtures / 'encoder_decoder'
  stored = state_io.read_structure(
      str(folder / 'ckpt_orbax' / 'checkpoint_300')
  )
  shapes = json.loads((folder / 'state_dict_shapes.json').read_text())
  assert len(stored) == len(shapes)
  after = np.load(folder / 'state_after_apply_gradient_lr0.01.npz')
  assert {f.replace('.', '/') for f in after.files} == set(stored)
  # One update on: every parameter has moved, none far.
  key = 'target/encoder/layers_0/mlp/wi_0/kernel'
  saved = np.asarray(stored[key])
  assert saved.shape == tuple(stored[key].shape) == (32, 64)
  assert 0 < np.abs(saved - after[key]).max() < 0.1


def test_save_dtype_casts_parameters_alone(tmp_path):
  state = states.make_numbers()
  _save(tmp_path / 'checkpoint_1', state, dtype='bfloat16')
  stored = state_io.read_structure(str(tmp_path / 'checkpoint_1'))
  kernel = state['target']['encoder']['kernel']
  assert stored['target/encoder/kernel'].dtype == jnp.bfloat16
  np.testing.assert_array_equal(
      np.asarray(stored['target/encoder/kernel']), kernel.astype(jnp.bfloat16)
  )
  assert stored['target/ids'].dtype == np.int32
  second = stored['state/param_states/encoder/kernel/v']
  assert second.dtype == np.float32
  np.testing.assert_array_equal(np.asarray(second), kernel**2)


def test_arrays_are_written_without_compression(tmp_path):
  # Compression costs more time than the disk: see the module's docstring.
  zeros = {'target': {'a': np.zeros((256, 1024), np.float32)}}
  _save(tmp_path / 'checkpoint_1', zeros)
  files = (tmp_path / 'checkpoint_1').rglob('*')
  assert sum(f.stat().st_size for f in files if f.is_file()) >= 2**20


def test_data_position_comes_back_as_it_was(tmp_path):
  position = {
      'batches': np.int64(7),
      'snapshot': b'\x00\xff tensor',
      'nested': [{'seed': None, 'share': 0.5, 'by': 'rows'}, True],
  }
  path = tmp_path / 'checkpoint_1'
  _save(path, states.make_numbers(), dataset_state=position)
  read = positions.read_position(str(path), process=0, count=1)
  assert read == {**position, 'batches': 7}


def test_a_position_of_all_hosts_is_one_file_for_any_of_them(tmp_path):
  position = {reader_protocol.OF_ALL_HOSTS: True, 'ended': [[1, 2]]}
  path = tmp_path / 'checkpoint_1'
  _save(path, states.make_numbers(), dataset_state=position)
  files = [p.name for p in (path / 'dataset').iterdir() if p.suffix == '.json']
  assert files == [positions.OF_ALL_FILE]
  for process in range(3):
    assert positions.read_position(
        str(path), process=process, count=3
    ) == position


def test_other_number_of_processes_gets_an_old_ones_position(tmp_path):
  path = tmp_path / 'checkpoint_1'
  _save(path, states.make_numbers(), dataset_state={'batches': 3})
  for process in range(3):
    read = positions.read_position(str(path), process=process, count=3)
    assert read == {'batches': 3}


def test_checkpoint_without_a_position_has_none(tmp_path):
  _save(tmp_path / 'checkpoint_1', states.make_numbers())
  path = str(tmp_path / 'checkpoint_1')
  assert positions.read_position(path, process=0, count=1) is None


def test_position_that_cannot_be_written_is_refused():
  with pytest.raises(TypeError, match='state_dict'):
    state_io.make_save_args(
        {}, dtype=None, dataset_state={'array': np.zeros(3)}
    )


def test_arrays_are_read_in_the_wanted_sharding(tmp_path):
  state = states.make_numbers()
  path = tmp_path / 'checkpoint_1'
  _save(path, states.place(state, states.make_mesh((4, 2))))
  sharding = states.shardings_of(state, states.make_mesh((1, 8)))
  target = jax.ShapeDtypeStruct(
      (16, 8), jnp.bfloat16, sharding=sharding['target']['encoder']['kernel']
  )
  key = 'target/encoder/kernel'
  read = state_io.read_arrays(steps.state_folder(path), {key: target})
  assert list(read) == [key]
  assert read[key].sharding == target.sharding
  np.testing.assert_array_equal(
      read[key], state['target']['encoder']['kernel'].astype(jnp.bfloat16)
  )
