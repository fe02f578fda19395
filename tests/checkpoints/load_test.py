# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as numpy arrays, found and read as T5X's function does."""

import inspect
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import checkpoints
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import conversion
from t5wild.checkpoints import load
from t5wild.checkpoints import manager as manager_lib
from tests.checkpoints import checkpoint_states as states
from tests.checkpoints import t5x_checkpoints


@pytest.fixture
def run(tmp_path):
  """A run directory of T5X with steps 7 and 9, and one of ours beside them."""
  for step in (7, 9):
    t5x_checkpoints.write_native(
        tmp_path / f'checkpoint_{step}', states.make_numbers(step)
    )
  manager = manager_lib.CheckpointManager(
      tmp_path, config=checkpoints.SaveCheckpointConfig()
  )
  manager.save(8, states.make_numbers(8))
  manager.close()
  return tmp_path


def test_signature_is_t5xs():
  parameters = list(inspect.signature(load.load_t5x_checkpoint).parameters)
  assert parameters[:6] == [
      'path', 'step', 'state_transformation_fns', 'remap', 'restore_dtype',
      'lazy_parameters',
  ]  # fmt: skip
  assert checkpoints.load_t5x_checkpoint is load.load_t5x_checkpoint


def test_path_may_be_run_checkpoint_or_index(run):
  for path, step, expected in (
      (run, None, 9),
      (run, 7, 7),
      (run, 8, 8),
      (run / 'checkpoint_8', None, 8),
      (run / 'checkpoint_7', None, 7),
      (run / 'checkpoint_7' / 'checkpoint', None, 7),
  ):
    loaded = load.load_t5x_checkpoint(path, step)
    states.assert_same_bits(loaded, states.make_numbers(expected))


def test_path_that_holds_none_is_refused(run, tmp_path):
  with pytest.raises(steps.NotACheckpointError, match=r'one of \[7, 8, 9\]'):
    load.load_t5x_checkpoint(run, 10)
  shutil.rmtree(run / 'checkpoint_9')
  with pytest.raises(steps.NotACheckpointError, match='does not exist'):
    load.load_t5x_checkpoint(run / 'checkpoint_9')


def test_only_floating_point_parameters_are_cast(run):
  for step in (7, 8):
    loaded = load.load_t5x_checkpoint(run, step, restore_dtype=jnp.bfloat16)
    kernel = states.make_numbers(step)['target']['encoder']['kernel']
    read = loaded['target']['encoder']['kernel']
    assert read.dtype == jnp.bfloat16
    np.testing.assert_array_equal(read, kernel.astype(jnp.bfloat16))
    assert loaded['target']['ids'].dtype == np.int32
    second = loaded['state']['param_states']['encoder']['kernel']['v']
    assert second.dtype == np.float32


def test_lazy_arrays_are_read_when_asked(run):
  lazy = load.load_t5x_checkpoint(
      run, 7, lazy_parameters=True, restore_dtype='float16'
  )
  leaf = lazy['target']['encoder']['kernel']
  assert (leaf.shape, leaf.dtype, leaf.nbytes) == ((16, 8), np.float16, 256)
  shutil.rmtree(run / 'checkpoint_7')
  with pytest.raises(steps.NotACheckpointError, match='target/encoder/kernel'):
    leaf.get()


def test_transformations_are_called_in_order_unless_nothing_is_renamed(run):
  def rename(state, target):
    assert target == {}
    return {'target': {'new': state['target']['encoder']['kernel']}}

  def check(state, target):
    del target
    assert list(state['target']) == ['new']
    return state

  fns = (rename, check)
  loaded = load.load_t5x_checkpoint(run, 7, fns)
  np.testing.assert_array_equal(
      loaded['target']['new'],
      states.make_numbers(7)['target']['encoder']['kernel'],
  )
  loaded = load.load_t5x_checkpoint(run, 7, fns, remap=False)
  assert 'encoder' in loaded['target']


@pytest.mark.parametrize('has_file_hashes', [True, False])
def test_damaged_numbers_are_refused_and_not_written_elsewhere(
    run, tmp_path, has_file_hashes
):
  checkpoint = run / 'checkpoint_8'
  (run / 'checkpoint_8' / 'commit_success.txt').unlink()  # no number of it
  load.load_t5x_checkpoint(checkpoint)
  files = (path for path in checkpoint.rglob('d/*') if path.is_file())
  largest = max(files, key=lambda path: path.stat().st_size)
  content = bytearray(largest.read_bytes())
  content[len(content) // 2] ^= 1
  largest.write_bytes(content)
  if not has_file_hashes:
    for path in (checkpoint / 'integrity').glob('files.*'):
      path.unlink()
  with pytest.raises(steps.NotACheckpointError, match='is damaged'):
    load.load_t5x_checkpoint(checkpoint)
  target = tmp_path / 'elsewhere'
  with pytest.raises(steps.NotACheckpointError, match='is damaged'):
    conversion.Conversion(source=str(checkpoint), target=str(target)).run()
  assert not target.exists()
