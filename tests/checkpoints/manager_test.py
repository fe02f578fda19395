# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Saving while a run goes on, and restoring on other meshes."""

import contextlib
import itertools
import os

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import transforms
from tests.checkpoints import checkpoint_states as states


@contextlib.contextmanager
def _open(directory, *, on_event=None, **config):
  manager = manager_lib.CheckpointManager(
      directory,
      config=configs.SaveCheckpointConfig(**config),
      on_event=on_event,
  )
  with contextlib.closing(manager):
    yield manager


def _restore(manager, step, mesh, **kwargs):
  numbers = states.make_numbers()
  return manager.restore(
      step,
      abstract_state=states.abstract(numbers),
      shardings=states.shardings_of(numbers, mesh),
      **kwargs,
  )


@pytest.fixture
def mesh():
  return states.make_mesh((4, 2))


@pytest.mark.parametrize(
    ('saved_on', 'restored_on'),
    itertools.permutations(states.MESH_SHAPES, 2),
)
def test_restored_on_another_mesh_bits_and_shardings_are_as_asked(
    tmp_path, saved_on, restored_on
):
  numbers = states.make_numbers(3)
  target = states.make_mesh(restored_on)
  with _open(tmp_path) as manager:
    manager.save(3, states.place(numbers, states.make_mesh(saved_on)))
    state, position = _restore(manager, 3, target)
  states.assert_same_bits(state, numbers)
  wanted = states.shardings_of(numbers, target)
  jax.tree.map(lambda a, s: np.testing.assert_equal(a.sharding, s),
               state, wanted)  # fmt: skip
  assert position is None


def test_restored_on_one_device_after_eight(tmp_path, mesh):
  numbers = states.make_numbers(3)
  with _open(tmp_path) as manager:
    manager.save(3, states.place(numbers, mesh))
    one = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1),
                            ('data', 'model'))  # fmt: skip
    state, _ = _restore(manager, 3, one)
  states.assert_same_bits(state, numbers)


def test_dtype_asked_at_restore_is_that_of_the_parameters(tmp_path, mesh):
  numbers = states.make_numbers()
  with _open(tmp_path) as manager:
    manager.save(0, states.place(numbers, mesh))
    state, _ = _restore(manager, 0, mesh, dtype='bfloat16')
  kernel = state['target']['encoder']['kernel']
  assert kernel.dtype == jnp.bfloat16
  assert state['target']['ids'].dtype == jnp.int32
  moments = state['state']['param_states']['encoder']['kernel']['v']
  assert moments.dtype == jnp.float32


def test_parameters_saved_as_bfloat16_come_back_as_the_models(tmp_path, mesh):
  numbers = states.make_numbers()
  with _open(tmp_path, dtype='bfloat16') as manager:
    manager.save(0, states.place(numbers, mesh))
    state, _ = _restore(manager, 0, mesh)
  kernel = state['target']['encoder']['kernel']
  assert kernel.dtype == jnp.float32
  rounded = numbers['target']['encoder']['kernel'].astype(jnp.bfloat16)
  np.testing.assert_array_equal(kernel, rounded.astype(np.float32))


def test_state_donated_right_after_the_call_is_saved_as_it_was(tmp_path, mesh):
  @jax.jit
  def overwrite(state):
    return jax.tree.map(lambda x: x * 0 - 7, state)

  step = jax.jit(overwrite, donate_argnums=0)
  with _open(tmp_path) as manager:
    for n in range(4):  # From the second on, copies lie in kept memory.
      numbers = states.make_numbers(n)
      state = states.place(numbers, mesh)
      manager.save(n, state)
      jax.block_until_ready(step(state))
      assert state['target']['encoder']['kernel'].is_deleted()
    for n in range(4):
      restored, _ = _restore(manager, n, mesh)
      states.assert_same_bits(restored, states.make_numbers(n))


def test_newest_stay_and_older_go(tmp_path, mesh):
  state = states.place(states.make_numbers(), mesh)
  with _open(tmp_path, keep=2) as manager:
    for step in (0, 5, 10):
      manager.save(step, state)
    manager.wait()
    assert manager.all_steps() == steps.all_steps(tmp_path) == [5, 10]


def test_best_stay_over_a_restart(tmp_path, mesh):
  state = states.place(states.make_numbers(), mesh)
  rules = {'keep': 1, 'keep_best': 1, 'best_metric': 'e/loss',
           'best_mode': 'min'}  # fmt: skip
  with _open(tmp_path, **rules) as manager:
    manager.save(1, state, metrics={'e/loss': 0.5})
    manager.save(2, state, metrics={'e/loss': 0.9})
  with _open(tmp_path, **rules) as manager:
    manager.save(3, state)
    manager.wait()
    manager.report_metrics(3, {'e/loss': 0.7})
    manager.save(4, state)
  assert steps.all_steps(tmp_path) == [1, 4]


def test_metric_nobody_reports_is_told_once(tmp_path, mesh, caplog):
  state = states.place(states.make_numbers(), mesh)
  rules = {'keep_best': 1, 'best_metric': 'e/los'}
  with _open(tmp_path, **rules) as manager:
    manager.save(1, state, metrics={'e/loss': 0.5})
    manager.save(2, state, metrics={'e/loss': 0.5})
    manager.save(3, state, metrics={'e/loss': 0.5})
  assert steps.all_steps(tmp_path) == [1, 2, 3]  # None is judged: none goes.
  told = [r for r in caplog.records if "'e/los'" in r.getMessage()]
  assert len(told) == 1
  assert "did you mean ['e/loss']" in told[0].getMessage()


def test_position_in_the_data_is_saved_with_its_step(tmp_path, mesh):
  state = states.place(states.make_numbers(), mesh)
  with _open(tmp_path, keep_dataset_checkpoints=2) as manager:
    for step in (1, 2, 3):
      manager.save(step, state, {'batches': step, 'raw': b'\0'})
    manager.wait()
    positions = [_restore(manager, n, mesh)[1] for n in (1, 2, 3)]
  assert positions == [
      None, {'batches': 2, 'raw': b'\0'}, {'batches': 3, 'raw': b'\0'}
  ]  # fmt: skip


def test_position_is_not_saved_when_told_so(tmp_path, mesh):
  with _open(tmp_path, save_dataset=False) as manager:
    manager.save(1, states.place(states.make_numbers(), mesh), {'batches': 1})
    assert _restore(manager, 1, mesh)[1] is None


def test_step_already_saved_is_not_saved_again_unless_forced(tmp_path, mesh):
  with _open(tmp_path) as manager:
    assert manager.save(1, states.place(states.make_numbers(1), mesh))
    other = states.place(states.make_numbers(2), mesh)
    assert not manager.save(1, other)
    states.assert_same_bits(
        _restore(manager, 1, mesh)[0], states.make_numbers(1)
    )
    assert manager.save(1, other, force=True)
    states.assert_same_bits(
        _restore(manager, 1, mesh)[0], states.make_numbers(2)
    )


def test_manager_opened_again_knows_the_steps_and_clears_leftovers(
    tmp_path, mesh
):
  with _open(tmp_path) as manager:
    manager.save(1, states.place(states.make_numbers(1), mesh))
  (tmp_path / 'checkpoint_2.orbax-checkpoint-tmp').mkdir()
  with _open(tmp_path) as manager:
    assert manager.all_steps() == [1]
  assert os.listdir(tmp_path) == ['checkpoint_1']


def test_train_states_are_saved_by_their_state_dict(tmp_path, mesh):
  class State:
    def state_dict(self):
      return states.place(states.make_numbers(1), mesh)

  with _open(tmp_path) as manager:
    manager.prepare(State())
    manager.save(1, State())
    states.assert_same_bits(
        _restore(manager, 1, mesh)[0], states.make_numbers(1)
    )


def test_state_is_transformed_before_it_is_written(tmp_path, mesh):
  def drop_optimizer(state, infos):
    assert infos['target']['ids'].shape == (4,)
    return {'target': state['target']}, {'target': infos['target']}

  with _open(tmp_path, state_transformation_fns=[drop_optimizer]) as manager:
    manager.save(1, states.place(states.make_numbers(1), mesh))
    with pytest.raises(transforms.DifferentModelError, match='state/step'):
      _restore(manager, 1, mesh)


def test_events_tell_time_and_bytes(tmp_path, mesh):
  events = []
  numbers = states.make_numbers()
  with _open(tmp_path, keep=1, on_event=events.append) as manager:
    manager.save(1, states.place(numbers, mesh))
    manager.save(2, states.place(numbers, mesh))
  assert [(e.kind, e.step) for e in events] == [
      ('saved', 1), ('saved', 2), ('removed', 1)
  ]  # fmt: skip
  assert events[0].num_bytes == sum(x.nbytes for x in jax.tree.leaves(numbers))
  assert 0 < events[0].blocked_seconds <= events[0].seconds


def test_directory_that_cannot_be_written_is_refused_at_once(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(steps.UnwritableError), _open(tmp_path / 'file'):
    pass


def test_metrics_that_cannot_be_written_do_not_end_the_run(
    tmp_path, mesh, monkeypatch, caplog
):
  def broken(self, text):
    raise OSError(28, f'No space left on device for {text}')

  with _open(tmp_path, keep_best=1, best_metric='a') as manager:
    manager.save(1, states.place(states.make_numbers(), mesh))
    manager.wait()
    with monkeypatch.context() as patch:
      patch.setattr(type(epath.Path(tmp_path)), 'write_text', broken)
      manager.report_metrics(1, {'a': 1.0})
  assert 'Metrics of step 1 are not kept' in caplog.text


@pytest.mark.parametrize(
    ('changes', 'line'),
    [
        (
            {'kind': 'saved', 'seconds': 0.44, 'num_bytes': 5_300_000},
            'Checkpoint of step 7: saved after 0.4 s, 5.3 MB',
        ),
        (
            {'kind': 'save_failed', 'seconds': 2.0, 'error': 'disk full'},
            'Checkpoint of step 7: save failed after 2.0 s: disk full',
        ),
        ({'kind': 'removed'}, 'Checkpoint of step 7: removed'),
    ],
)
def test_what_happened_to_a_checkpoint_reads_as_one_line(changes, line):
  assert str(manager_lib.CheckpointEvent(step=7, **changes)) == line
