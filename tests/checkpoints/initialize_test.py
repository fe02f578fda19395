# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the first state comes from: the run itself, a given path, scratch."""


import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild import optimizers
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import transforms
from tests.checkpoints import two_kernels


def _assert_same(actual, expected):
  jax.tree.map(np.testing.assert_array_equal, actual, expected)


def test_run_without_any_checkpoint_begins_from_scratch(tmp_path):
  model = two_kernels.Model()
  initial = model.initialize(tmp_path / 'run')
  assert (initial.step, initial.source) == (0, 'scratch')
  assert initial.dataset_state is None
  _assert_same(initial.train_state, model.init(jax.random.PRNGKey(1)))


def test_own_step_is_told_once_all_is_checked_and_before_it_is_read(tmp_path):
  model = two_kernels.Model(num_partitions=2)
  told = []
  model.initialize(tmp_path / 'run', when_checked=told.append)
  model.save(tmp_path / 'run', at=(3, 4))
  model.initialize(tmp_path / 'run', when_checked=told.append)
  given = configs.RestoreCheckpointConfig(str(tmp_path / 'run'))
  model.initialize(tmp_path / 'new', given, when_checked=told.append)
  assert told == [None, 4, None]


def test_own_newest_checkpoint_comes_before_the_given_path(tmp_path):
  model = two_kernels.Model(num_partitions=2)
  mine = model.save(tmp_path / 'run', seed=5, at=(3, 4), dataset_state={'n': 4})
  model.save(tmp_path / 'other', seed=6, at=(100,))
  initial = two_kernels.Model(num_partitions=4).initialize(
      tmp_path / 'run',
      configs.RestoreCheckpointConfig(str(tmp_path / 'other')),
  )
  assert initial.step == int(initial.train_state.step) == 4
  assert initial.source == str(tmp_path / 'run' / 'checkpoint_4')
  assert initial.dataset_state == {'n': 4}
  _assert_same(initial.train_state.params, mine.params)
  _assert_same(initial.train_state.param_states, mine.param_states)
  _assert_same(initial.train_state.flax_mutables, mine.flax_mutables)


def test_restored_state_lies_where_the_partitioner_says(tmp_path):
  two_kernels.Model(num_partitions=1).save(tmp_path / 'run')
  model = two_kernels.Model(num_partitions=4)
  restored = model.initialize(tmp_path / 'run').train_state
  scratch = model.init(jax.random.PRNGKey(0))
  assert jax.tree.structure(restored) == jax.tree.structure(scratch)

  def check(a, b):
    assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
    assert a.dtype == b.dtype

  jax.tree.map(check, restored, scratch)


def test_given_path_starts_a_new_run_without_its_data_position(tmp_path):
  model = two_kernels.Model()
  theirs = model.save(tmp_path / 'other', at=(100,), dataset_state={'n': 1})
  restore = configs.RestoreCheckpointConfig(str(tmp_path / 'other'))
  initial = model.initialize(tmp_path / 'run', restore)
  assert initial.step == 100
  assert initial.dataset_state is None
  _assert_same(initial.train_state.params, theirs.params)
  restore.restore_dataset = True
  assert model.initialize(None, restore).dataset_state == {'n': 1}


def test_data_position_that_is_wanted_and_not_there_is_refused(tmp_path):
  model = two_kernels.Model()
  model.save(tmp_path / 'other')
  restore = configs.RestoreCheckpointConfig(
      str(tmp_path / 'other'), restore_dataset=True
  )
  with pytest.raises(steps.NotACheckpointError, match='restore_dataset'):
    model.initialize(None, restore)


def test_own_checkpoint_without_a_data_position_is_told(tmp_path, caplog):
  model = two_kernels.Model()
  model.save(tmp_path / 'run')
  assert model.initialize(tmp_path / 'run').dataset_state is None
  assert 'repeats what it has seen' in caplog.text


def test_names_are_mapped_and_the_rest_begins_from_scratch(tmp_path):
  theirs = two_kernels.Model(names=('old', 'same')).save(tmp_path / 'other')
  model = two_kernels.Model(names=('new', 'same', 'more'))
  restore = configs.RestoreCheckpointConfig(
      str(tmp_path / 'other'),
      assignment_map=((r'(.*)/new(|/.*)', r'\1/old\2'), (r'state/step', None)),
      fallback_to_scratch=True,
  )
  initial = model.initialize(None, restore, seed=9)
  scratch = model.init(jax.random.PRNGKey(9))
  params = initial.train_state.params
  np.testing.assert_array_equal(params['new'], theirs.params['old'])
  np.testing.assert_array_equal(params['same'], theirs.params['same'])
  np.testing.assert_array_equal(params['more'], scratch.params['more'])
  assert initial.step == 0


def test_one_array_for_two_parameters_is_two_arrays(tmp_path):
  two_kernels.Model(names=('old',)).save(tmp_path / 'other')
  restore = configs.RestoreCheckpointConfig(
      str(tmp_path / 'other'),
      assignment_map=((r'(.*)/(new|newer)(|/.*)', r'\1/old\3'),),
  )
  model = two_kernels.Model(names=('new', 'newer'))
  params = model.initialize(None, restore).train_state.params
  np.testing.assert_array_equal(params['new'], params['newer'])
  pointers = {
      params[name].addressable_shards[0].data.unsafe_buffer_pointer()
      for name in params
  }
  assert len(pointers) == 2


def test_users_function_sees_both_states_and_may_compute(tmp_path):
  theirs = two_kernels.Model(width=4).save(tmp_path / 'other')
  seen = {}

  def widen(state, target, *, is_resuming):
    seen['resuming'] = is_resuming
    flat = transforms.flatten(state)
    for key, leaf in transforms.flatten(target).items():
      if flat[key].shape != leaf.shape:
        old = np.asarray(flat[key])
        pads = [(0, b - a) for a, b in zip(old.shape, leaf.shape, strict=True)]
        flat[key] = np.pad(old, pads)
    return transforms.unflatten(flat)

  restore = configs.RestoreCheckpointConfig(
      str(tmp_path / 'other'), state_transformation_fns=[widen]
  )
  model = two_kernels.Model(width=8)
  params = model.initialize(None, restore).train_state.params
  assert seen == {'resuming': False}
  np.testing.assert_array_equal(params['old'][:, :4], theirs.params['old'])
  assert not np.asarray(params['old'][:, 4:]).any()


def test_run_that_goes_on_is_not_transformed_again(tmp_path):
  model = two_kernels.Model()
  model.save(tmp_path / 'run')
  restore = configs.RestoreCheckpointConfig(
      str(tmp_path / 'gone'), state_transformation_fns=[lambda: 1 / 0]
  )
  assert model.initialize(tmp_path / 'run', restore).step == 3


@pytest.mark.parametrize(
    'optimizer', [optimizers.adamw(), optimizers.sgd(), optimizers.lion()]
)
def test_states_of_wrapped_optimizers_come_back(tmp_path, optimizer):
  model = two_kernels.Model(optimizer=optimizer)
  saved = model.save(tmp_path / 'run')
  restored = model.initialize(tmp_path / 'run').train_state
  assert jax.tree.structure(restored) == jax.tree.structure(saved)
  _assert_same(restored.replace_step(saved.step), saved)


def test_inference_needs_no_optimizer_state(tmp_path):
  saved = two_kernels.Model().save(tmp_path / 'run')
  restore = configs.RestoreCheckpointConfig(str(tmp_path / 'run'))
  initial = two_kernels.Model(inference=True).initialize(None, restore)
  _assert_same(initial.train_state.params, saved.params)
  assert initial.step == 3


def test_other_optimizer_is_refused_or_begun_anew_if_told(tmp_path):
  two_kernels.Model().save(tmp_path / 'other')
  model = two_kernels.Model(optimizer=optimizers.adamw())
  restore = configs.RestoreCheckpointConfig(str(tmp_path / 'other'))
  with pytest.raises(transforms.DifferentModelError, match='optimizer'):
    model.initialize(None, restore)
  restore.fallback_to_scratch = True
  assert model.initialize(None, restore).step == 3


def test_another_model_is_refused_with_both_sides_before_compiling(tmp_path):
  two_kernels.Model(names=('old', 'same')).save(tmp_path / 'run')
  model = two_kernels.Model(names=('old', 'other'))
  model.init = None  # Nothing may be made.
  with pytest.raises(transforms.DifferentModelError) as caught:
    model.initialize(tmp_path / 'run')
  text = str(caught.value)
  assert '  target/other float32[8, 8]' in text
  assert '  target/same float32[8, 8]' in text


def test_paths_that_hold_no_checkpoint_are_refused(tmp_path):
  model = two_kernels.Model()
  (tmp_path / 'empty').mkdir()
  for mode in ('latest', 'specific'):
    restore = configs.RestoreCheckpointConfig(str(tmp_path / 'empty'), mode)
    with pytest.raises(steps.NotACheckpointError, match='empty'):
      model.initialize(tmp_path / 'run', restore)


def test_several_checkpoints_are_too_many_to_train_from(tmp_path):
  model = two_kernels.Model()
  model.save(tmp_path / 'other', at=(3, 4))
  restore = configs.RestoreCheckpointConfig(str(tmp_path / 'other'), 'all')
  with pytest.raises(steps.NotACheckpointError, match='names 2'):
    model.initialize(None, restore)


def test_directory_that_cannot_be_written_is_refused_before_compiling(tmp_path):
  (tmp_path / 'file').write_text('')
  model = two_kernels.Model()
  model.init = None
  with pytest.raises(steps.UnwritableError, match='MODEL_DIR'):
    model.initialize(tmp_path / 'file', save=configs.SaveCheckpointConfig())


def test_dtype_none_means_as_saved_and_is_told(tmp_path, caplog):
  model = two_kernels.Model()
  model.save(tmp_path / 'other', dtype='bfloat16')
  restore = configs.RestoreCheckpointConfig(str(tmp_path / 'other'))
  params = model.initialize(None, restore).train_state.params
  assert params['old'].dtype == jnp.bfloat16
  assert "such as 'float32'" in caplog.text
  restore.dtype = 'float32'
  params = model.initialize(None, restore).train_state.params
  assert params['old'].dtype == jnp.float32


def test_own_checkpoint_saved_as_bfloat16_goes_on_in_the_models_dtype(tmp_path):
  model = two_kernels.Model()
  model.save(tmp_path / 'run', dtype='bfloat16')
  params = model.initialize(tmp_path / 'run').train_state.params
  assert params['old'].dtype == jnp.float32
