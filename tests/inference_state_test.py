# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Inference states: parameters of a checkpoint, and nothing else."""

import shutil

import jax
import numpy as np
import pytest

from t5wild import checkpoints
from t5wild import inference_state
from t5wild import partitioning
from t5wild import train_state
from t5wild.checkpoint_files import steps
from t5wild.optimizers import adafactor
from tests.trainer import mean_model

SHAPES = {'x': (8, 4)}


class _Mean(mean_model.Mean):
  def __init__(self):
    super().__init__()
    self.optimizer_def = adafactor.Adafactor()

  def get_initial_variables(self, rng, input_shapes, input_types=None):
    del input_types
    return super().get_initial_variables(rng, input_shapes)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A run directory with checkpoints of steps 2 and 5."""
  folder = tmp_path_factory.mktemp('run')
  model = _Mean()
  state = train_state.FlaxOptimTrainState.create(
      model.optimizer_def, model.get_initial_variables(None, SHAPES)
  )
  manager = checkpoints.CheckpointManager(
      str(folder), config=checkpoints.SaveCheckpointConfig(period=1)
  )
  for step in (2, 5):
    manager.save(
        step,
        state.replace_step(np.int32(step)).replace_params(
            {'w': jax.numpy.full((4, 2), step, jax.numpy.float32)}
        ),
    )
  manager.close()
  return str(folder)


def _states(path, **kwargs):
  mesh = kwargs.pop('mesh', {'data': 8})
  return inference_state.InferenceStates(
      model=_Mean(),
      partitioner=partitioning.PjitPartitioner(mesh_shape=mesh),
      restore_checkpoint_cfg=checkpoints.RestoreCheckpointConfig(
          path=path, **kwargs
      ),
      input_shapes=SHAPES,
  )


@pytest.mark.parametrize('mesh', [{'data': 8}, {'data': 4, 'model': 2}])
def test_the_parameters_come_back_without_the_optimizer(run, mesh):
  states = _states(run, mesh=mesh)
  state = states.restore(inference_state.checkpoint_of_step(run, 2))
  assert isinstance(state, train_state.InferenceState)
  assert int(state.step) == 2
  np.testing.assert_array_equal(state.params['w'], np.full((4, 2), 2.0))
  leaves = jax.tree.leaves(state.state_dict())
  assert sum(leaf.size for leaf in leaves) == 4 * 2 + 1
  assert state.params['w'].sharding.spec == states.train_state_axes.params['w']


@pytest.mark.parametrize(('mode', 'expected'), [('latest', [5]),
                                                ('all', [2, 5])])
def test_a_config_names_one_checkpoint_or_all(run, mode, expected):
  cfg = checkpoints.RestoreCheckpointConfig(path=run, mode=mode)
  states = _states(run)
  found = [
      int(states.restore(path).step)
      for path in inference_state.find_checkpoints(cfg)
  ]
  assert found == expected


def test_an_unknown_step_lists_those_there_are(run):
  with pytest.raises(steps.NotACheckpointError, match=r'step 3.*\[2, 5\]'):
    inference_state.checkpoint_of_step(run, 3)
  assert inference_state.checkpoint_of_step(run).endswith('checkpoint_5')


def test_no_checkpoint_is_an_error(tmp_path):
  with pytest.raises(steps.NotACheckpointError, match='no complete checkpoint'):
    inference_state.checkpoint_of_step(str(tmp_path))
  with pytest.raises(steps.NotACheckpointError, match='CHECKPOINT_PATH'):
    inference_state.find_checkpoints(
        checkpoints.RestoreCheckpointConfig(path='')
    )


def test_what_is_made_from_scratch_needs_a_seed(run):
  with pytest.raises(ValueError, match='fallback_init_rng is None'):
    _states(run, fallback_to_scratch=True)


def test_a_checkpoint_is_known_by_its_save_wherever_it_is(run, tmp_path):
  checkpoint = inference_state.checkpoint_of_step(str(run), 5)
  name = inference_state.identity_of(checkpoint)
  assert name.startswith('checkpoint_5 saved 20')
  moved = shutil.copytree(checkpoint, tmp_path / 'moved' / 'checkpoint_5')
  assert inference_state.identity_of(str(moved)) == name
  of_2 = inference_state.checkpoint_of_step(str(run), 2)
  saved_anew = shutil.copytree(of_2, tmp_path / 'anew' / 'checkpoint_5')
  assert inference_state.identity_of(str(saved_anew)) != name


@pytest.mark.parametrize('text', [None, '', '[]', '{}', '{"a": '])
def test_a_checkpoint_that_knows_no_time_is_known_by_its_path(tmp_path, text):
  if text is not None:
    (tmp_path / '_CHECKPOINT_METADATA').write_text(text)
  assert inference_state.identity_of(str(tmp_path)) == str(tmp_path)
