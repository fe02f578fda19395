# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A binary of the user's own saves and restores as T5X's managers do."""

import functools

import flax.core
from flax.linen import partitioning
import jax
import numpy as np
import pytest

from t5wild import optimizers
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import checkpointer as checkpointer_lib
from t5wild.checkpoints import configs
from t5wild.checkpoints import load
from t5wild.checkpoints import t5x_manager
from t5wild.checkpoints import t5x_restoring
from t5wild.own_binaries import restored_states
from t5wild.partitioning import partitioner as partitioner_lib


def _init_fn(rng, input_shapes, input_types=None, *, names=('a', 'b')):
  del input_shapes, input_types
  return flax.core.freeze({
      'params': {
          name: jax.random.normal(jax.random.fold_in(rng, ord(name)), (4, 8))
          for name in names
      },
      'params_axes': {
          f'{name}_axes': partitioning.AxisMetadata(names=('embed', 'mlp'))
          for name in names
      },
  })


def _initializer(names=('a', 'b')):
  return restored_states.TrainStateInitializer(
      optimizers.sgd(0.1),
      functools.partial(_init_fn, names=names),
      {},
      partitioner_lib.PjitPartitioner(num_partitions=1),
  )


class _Data:
  """A data set with a position."""

  position = 0

  def state_dict(self):
    """The position."""
    return {'position': self.position}

  def load_state_dict(self, state):
    """Goes there."""
    self.position = state['position']


@pytest.fixture(scope='module')
def made():
  initializer = _initializer()
  return initializer, initializer.from_scratch(jax.random.PRNGKey(0))


def _manager(made, directory, **arguments):
  initializer, _ = made
  arguments.setdefault(
      'save_cfg', configs.SaveCheckpointConfig(keep=2, save_dataset=False)
  )
  return t5x_manager.CheckpointManager(
      restore_cfg=None,
      train_state_shape=initializer.global_train_state_shape,
      partitioner=initializer.partitioner,
      model_dir=str(directory),
      **arguments,
  )


def _save(made, directory, **arguments):
  manager = _manager(made, directory, **arguments)
  assert manager.save(made[1])
  manager.close()


def _equal(state, other):
  jax.tree.map(
      np.testing.assert_array_equal, state.state_dict(), other.state_dict()
  )


def test_what_is_saved_is_restored_with_the_position_of_the_data(
    made, tmp_path
):
  data = _Data()
  data.position = 5
  _save(
      made, tmp_path, ds_iter=data,
      save_cfg=configs.SaveCheckpointConfig(save_dataset=True),
  )  # fmt: skip
  data.position = 0
  cfg = configs.RestoreCheckpointConfig(
      path=str(tmp_path), restore_dataset=True
  )
  state, manager = t5x_manager.create_checkpoint_manager_and_restore(
      made[0], made[0].partitioner, cfg, str(tmp_path / 'checkpoint_0'), None,
      ds_iter=data, use_orbax=True,
  )  # fmt: skip
  _equal(state, made[1])
  assert data.position == 5
  with pytest.raises(ValueError, match='save_cfg = None'):
    manager.save(state)


def test_a_step_is_saved_once_and_named(made, tmp_path):
  manager = _manager(made, tmp_path)
  assert manager.latest_step() is None
  assert manager.save(made[1])
  manager.wait_until_finished()
  assert not manager.save(made[1])
  assert (manager.all_steps(), manager.latest_step()) == ([0], 0)
  manager.close()


def test_transformations_of_a_save_are_those_it_is_given(made, tmp_path):
  def double(state, infos):
    state['target']['a'] = 2 * state['target']['a']
    return state, infos

  manager = _manager(made, tmp_path)
  manager.save(made[1], [double])
  manager.close()
  saved = load.load_t5x_checkpoint(str(tmp_path))['target']
  np.testing.assert_array_equal(saved['a'], 2 * made[1].params['a'])
  np.testing.assert_array_equal(saved['b'], made[1].params['b'])


def test_a_position_that_nobody_can_tell_is_refused_at_the_start(
    made, tmp_path
):
  with pytest.raises(ValueError, match='expected an iterator with state_dict'):
    _manager(
        made, tmp_path, ds_iter=iter([]),
        save_cfg=configs.SaveCheckpointConfig(save_dataset=True),
    )  # fmt: skip


def test_the_first_config_that_names_checkpoints_is_read(made, tmp_path):
  _save(made, tmp_path / 'other')
  (tmp_path / 'own').mkdir()
  cfgs = [
      None,
      configs.RestoreCheckpointConfig(path=str(tmp_path / 'own')),
      configs.RestoreCheckpointConfig(path=str(tmp_path / 'other')),
  ]
  found, paths = t5x_restoring.get_first_valid_restore_config_and_paths(
      cfgs
  )
  assert found is cfgs[2]
  assert paths == [str(tmp_path / 'other' / 'checkpoint_0')]
  ((state, path),) = made[0].from_checkpoints(cfgs)
  assert path == paths[0]
  _equal(state, made[1])
  _equal(
      made[0].from_checkpoint_or_scratch(
          cfgs[:2], init_rng=jax.random.PRNGKey(0)
      ),
      made[1],
  )
  assert made[0].from_checkpoint(cfgs[:2]) is None


def test_one_checkpoint_among_several_must_be_named(made, tmp_path):
  state = made[1]
  manager = _manager(made, tmp_path)
  manager.save(state)
  later = state.replace_step(3)
  manager.save(later)
  manager.close()
  cfg = configs.RestoreCheckpointConfig(path=str(tmp_path), mode='all')
  assert [int(s.step) for s, _ in made[0].from_checkpoints([cfg])] == [0, 3]
  with pytest.raises(ValueError, match='name 2 checkpoints'):
    made[0].from_checkpoint([cfg])


def test_what_a_checkpoint_lacks_is_drawn_where_it_may_lack_it(
    made, tmp_path
):
  _save(made, tmp_path)
  larger = _initializer(('a', 'b', 'c'))
  cfg = configs.RestoreCheckpointConfig(
      path=str(tmp_path), fallback_to_scratch=True
  )
  with pytest.raises(ValueError, match='expected a key'):
    larger.from_checkpoint([cfg])
  key = jax.random.PRNGKey(9)
  state = larger.from_checkpoint([cfg], init_rng=key)
  np.testing.assert_array_equal(state.params['a'], made[1].params['a'])
  np.testing.assert_array_equal(
      state.params['c'], larger.from_scratch(key).params['c']
  )


def test_a_transformation_is_told_of_resuming_only_as_the_caller_set_it(
    made, tmp_path
):
  told = []

  def look(state, target_state, *, is_resuming=False):
    del target_state
    told.append(is_resuming)
    return state

  def plain(state, target_state):
    del target_state
    told.append('plain')
    return state

  _save(made, tmp_path)
  cfg = configs.RestoreCheckpointConfig(
      path=str(tmp_path),
      state_transformation_fns=[
          functools.partial(look, is_resuming=True), look, plain,
      ],
  )  # fmt: skip
  made[0].from_checkpoint([cfg])
  assert told == [True, False, 'plain']


def _checkpointer(made, directory, cls=checkpointer_lib.Checkpointer, **kw):
  return cls(
      made[0].global_train_state_shape, made[0].partitioner, str(directory),
      **kw,
  )  # fmt: skip


def test_a_checkpointer_saves_in_the_type_asked_for_and_restores(
    made, tmp_path
):
  checkpointer = _checkpointer(
      made, tmp_path, save_dtype=np.dtype('bfloat16')
  )
  assert checkpointer.latest_step() is None
  checkpointer.save(made[1])
  assert checkpointer.all_steps() == [0]
  for arguments in ({}, {'step': 0}, {'path': str(tmp_path / 'checkpoint_0')}):
    state = checkpointer.restore(**arguments)
    assert state.params['a'].dtype == np.dtype('bfloat16')
  as_float = _checkpointer(made, tmp_path, restore_dtype=np.float32).restore()
  np.testing.assert_array_equal(
      as_float.params['a'],
      made[1].params['a'].astype('bfloat16').astype('float32'),
  )
  with pytest.raises(steps.NotACheckpointError, match='no checkpoint of step'):
    checkpointer.restore(step=7)


def test_a_checkpointer_keeps_as_many_as_it_is_told(made, tmp_path):
  checkpointer = _checkpointer(made, tmp_path, keep=2)
  for step in range(4):
    checkpointer.save(made[1].replace_step(step))
  assert checkpointer.all_steps() == [2, 3]


def test_the_best_checkpointer_keeps_the_best_and_the_newest(made, tmp_path):
  checkpointer = _checkpointer(
      made, tmp_path, checkpointer_lib.SaveBestCheckpointer, keep=1,
      metric_name_to_monitor='loss', metric_mode='min',
  )  # fmt: skip
  for step, loss in enumerate([3.0, 1.0, 2.0, 5.0]):
    checkpointer.save(made[1].replace_step(step))
    checkpointer.report_metrics(step, {'loss': loss})
  checkpointer.save(made[1].replace_step(4))
  assert checkpointer.all_steps() == [1, 4]


def test_a_save_of_the_users_own_is_told_not_to_be_called(caplog):
  class Theirs(checkpointer_lib.Checkpointer):
    def save(self, train_state, state_transformation_fns=()):
      raise AssertionError

  configs.SaveCheckpointConfig(checkpointer_cls=Theirs)
  assert 'Theirs has a save of its own' in caplog.text


def test_the_best_checkpointer_needs_no_arguments_to_say_what_to_keep():
  make = functools.partial(
      checkpointer_lib.SaveBestCheckpointer,
      metric_name_to_monitor='training_eval/t/loss',
      metric_mode='min',
  )
  policy = configs.SaveCheckpointConfig(
      checkpointer_cls=make, keep=3
  ).retention_policy()
  assert policy.best_metric == 'training_eval/t/loss'
  assert (policy.keep, policy.keep_best, policy.best_mode) == (1, 3, 'min')
  with pytest.raises(ValueError, match='made without train_state'):
    make().save(None)
