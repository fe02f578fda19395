# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A save that fails is told loudly, and the run goes on."""

import contextlib
import resource
import shutil
import signal

import jax
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import state_io
from tests import small_disk
from tests.checkpoints import checkpoint_states as states


@pytest.fixture
def mesh():
  return states.make_mesh((4, 2))


class _Run:
  """A manager, and all that it told."""

  def __init__(self, directory, **config):
    self.events = []
    self.manager = manager_lib.CheckpointManager(
        directory,
        config=configs.SaveCheckpointConfig(**config),
        on_event=self.events.append,
    )

  def kinds(self):
    return [(event.kind, event.step) for event in self.events]


@pytest.fixture
def run(tmp_path):
  run = _Run(tmp_path / 'run')
  with contextlib.closing(run.manager):
    yield run


def _errors(caplog):
  return [r.getMessage() for r in caplog.records if r.levelname == 'ERROR']


def test_fault_at_the_start_of_a_save_is_told_and_the_next_save_works(
    run, mesh, monkeypatch, caplog
):
  state = states.place(states.make_numbers(), mesh)

  def broken(*args, **kwargs):
    raise OSError(28, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(state_io, 'make_save_args', broken)
    assert not run.manager.save(1, state)
  assert not run.manager.wait()
  assert run.kinds() == [('save_failed', 1)]
  assert run.events[0].error == 'OSError: [Errno 28] No space left on device'
  text = '\n'.join(_errors(caplog))
  assert 'CHECKPOINT NOT SAVED: step 1' in text
  assert 'No space left' in text
  assert run.manager.save(2, state)
  assert run.manager.wait()
  assert run.manager.all_steps() == [2]


def test_failures_in_a_row_are_counted(run, mesh, monkeypatch):
  state = states.place(states.make_numbers(), mesh)
  with monkeypatch.context() as patch:
    patch.setattr(
        state_io, 'make_save_args', lambda *a, **k: 1 / 0
    )
    for step in (1, 2):
      run.manager.save(step, state)
  run.manager.save(3, state)
  run.manager.wait()
  assert [event.failures for event in run.events] == [1, 2, 0]


def test_retry_is_due_after_a_pause_that_grows(run, mesh, monkeypatch):
  now = [1000.0]
  monkeypatch.setattr(manager_lib.time, 'monotonic', lambda: now[0])
  state = states.place(states.make_numbers(), mesh)
  assert not run.manager.retry_is_due()
  pauses = []
  with monkeypatch.context() as patch:
    patch.setattr(state_io, 'make_save_args', lambda *a, **k: 1 / 0)
    for step in (1, 2, 3):
      run.manager.save(step, state)
      start = now[0]
      while not run.manager.retry_is_due():
        now[0] += 10
      pauses.append(now[0] - start)
  assert pauses == sorted(pauses)
  assert pauses[0] < pauses[-1]
  run.manager.save(4, state)
  run.manager.wait()
  assert not run.manager.retry_is_due()


def test_disk_that_fills_up_during_a_save_costs_that_save_alone(tmp_path, mesh):
  with small_disk.mounted(tmp_path / 'disk', megabytes=3) as disk:
    run = _Run(disk / 'run')
    with contextlib.closing(run.manager):
      small = states.place(states.make_numbers(1), mesh)
      large = {'target': {'a': np.ones((1024, 1024), np.float32)}}
      run.manager.save(1, small)
      run.manager.save(2, jax.device_put(large))
      run.manager.save(3, small)
      run.manager.wait()
    assert run.kinds() == [('saved', 1), ('save_failed', 2), ('saved', 3)]
    assert 'No space left on device' in run.events[1].error
    # What the failed save had written is gone, or nothing would fit again.
    names = sorted(path.name for path in (disk / 'run').iterdir())
    assert names == ['checkpoint_1', 'checkpoint_3']


def test_file_size_limit_costs_that_save_alone(run, mesh):
  small = states.place(states.make_numbers(1), mesh)
  large = jax.device_put({'target': {'a': np.ones((512, 1024), np.float32)}})
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  try:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    run.manager.save(1, large)
    run.manager.wait()
    run.manager.save(2, small)
    run.manager.wait()
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, old)
  assert run.kinds() == [('save_failed', 1), ('saved', 2)]


def test_removal_that_fails_is_no_failed_save(tmp_path, mesh, monkeypatch):
  def broken(path):
    raise OSError(f'cannot remove {path}')

  monkeypatch.setattr(steps, 'delete_checkpoint', broken)
  run = _Run(tmp_path / 'run', keep=1)
  with contextlib.closing(run.manager):
    state = states.place(states.make_numbers(1), mesh)
    run.manager.save(1, state)
    run.manager.save(2, state)
    assert run.manager.wait()
    assert run.manager.all_steps() == [1, 2]


def test_run_directory_that_vanishes_is_no_end(run, mesh, tmp_path):
  state = states.place(states.make_numbers(1), mesh)
  run.manager.save(1, state)
  run.manager.wait()
  shutil.rmtree(tmp_path / 'run')
  (tmp_path / 'run').write_text('in the way')
  run.manager.save(2, state)
  run.manager.wait()
  (tmp_path / 'run').unlink()
  run.manager.save(3, state)
  run.manager.wait()
  assert [k for k, _ in run.kinds()] == ['saved', 'save_failed', 'saved']
