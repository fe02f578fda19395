# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A file system that stalls costs the saves it holds up, and not the run."""

import contextlib
import threading
import time

import pytest

from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import steps
from t5wild.checkpoint_files import store_probe
from t5wild.checkpoints import background_writer
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from tests import frozen_disk
from tests.checkpoints import checkpoint_states as states

_DEADLINE_SECONDS = 3.0


@pytest.fixture
def disk(tmp_path):
  with frozen_disk.mounted(tmp_path / 'disk') as disk:
    yield disk


class _Events(list):

  def kinds(self):
    return [(event.kind, event.step) for event in self]

  def wait_for(self, kind, step):
    deadline = time.monotonic() + 30
    while (kind, step) not in self.kinds():
      assert time.monotonic() < deadline, self.kinds()
      time.sleep(0.02)


@pytest.mark.slow  # of waiting
def test_a_save_that_hangs_is_left_behind_and_later_ones_work(disk):
  events = _Events()
  manager = manager_lib.CheckpointManager(
      disk.folder / 'run',
      config=configs.SaveCheckpointConfig(deadline_seconds=_DEADLINE_SECONDS),
      on_event=events.append,
  )
  state = states.place(states.make_numbers(1), states.make_mesh((4, 2)))
  with contextlib.closing(manager):
    manager.save(1, state)
    assert manager.wait()
    disk.freeze()
    start = time.monotonic()
    assert manager.save(2, state)
    assert time.monotonic() - start < _DEADLINE_SECONDS / 2  # does not wait
    events.wait_for('save_abandoned', 2)
    assert time.monotonic() - start < 2 * _DEADLINE_SECONDS
    assert not manager.is_saving()
    # The next one does not wait for it; it hangs by itself.
    start = time.monotonic()
    manager.save(3, state)
    assert time.monotonic() - start < _DEADLINE_SECONDS / 2
    assert not manager.wait()
    assert time.monotonic() - start < 2 * _DEADLINE_SECONDS
    assert manager.latest_step() == 1
    disk.thaw()
    # What hung comes to its end, and counts.
    events.wait_for('saved_late', 2)
    events.wait_for('saved_late', 3)
    assert manager.save(4, state)
    assert manager.wait()
  assert steps.all_steps(disk.folder / 'run') == [1, 2, 3, 4]
  for step in (1, 2, 3, 4):
    path = disk.folder / 'run' / f'checkpoint_{step}'
    assert not file_hashes.verify(path).damages
  abandoned = next(e for e in events if e.kind == 'save_abandoned')
  assert 'longer than 3 s' in abandoned.error


@pytest.mark.slow
def test_without_a_deadline_the_next_save_waits_for_it(disk):
  """The detector off: the loop stands still for as long as the disk does."""
  manager = manager_lib.CheckpointManager(
      disk.folder / 'run', config=configs.SaveCheckpointConfig()
  )
  state = states.place(states.make_numbers(1), states.make_mesh((4, 2)))
  with contextlib.closing(manager):
    disk.freeze()
    manager.save(1, state)
    thaw = threading.Timer(2.0, disk.thaw)
    thaw.start()
    start = time.monotonic()
    manager.save(2, state)
    assert time.monotonic() - start > 1.0


def test_hung_saves_do_not_fill_the_memory(tmp_path, monkeypatch):
  gate = threading.Event()

  def hang(*args):
    assert gate.wait(60)

  monkeypatch.setattr(background_writer, '_hash_files', hang)
  events = _Events()
  manager = manager_lib.CheckpointManager(
      tmp_path,
      config=configs.SaveCheckpointConfig(deadline_seconds=0.3),
      on_event=events.append,
  )
  state = states.place(states.make_numbers(1), states.make_mesh((4, 2)))
  with contextlib.closing(manager):
    for step in range(1, 6):
      manager.save(step, state)
      manager.wait()
    hung = background_writer.MOST_LEFT_BEHIND + 1
    kinds = [kind for kind, _ in events.kinds()]
    assert kinds[:hung] == ['save_abandoned'] * hung
    assert set(kinds[hung:]) == {'save_failed'}
    assert 'hang, expected' in events[-1].error
    gate.set()
    events.wait_for('saved_late', hung)
    assert manager.save(9, state)
    assert manager.wait()


def test_a_store_that_stalls_is_told_before_the_first_step(disk):
  disk.freeze()
  (finding,) = store_probe.look(
      str(disk.folder), checkpoint_bytes=1, num_arrays=1, timeout_seconds=0.5
  )
  assert 'has not answered' in finding


def test_a_store_without_room_is_told_before_the_first_step(tmp_path):
  folder = str(tmp_path)
  assert store_probe.look(folder, checkpoint_bytes=1, num_arrays=1) == []
  (finding,) = store_probe.look(folder, checkpoint_bytes=10**18, num_arrays=1)
  assert 'GB free' in finding
  assert list(tmp_path.iterdir()) == []
  (finding,) = store_probe.look(folder, checkpoint_bytes=1, num_arrays=10**9)
  assert 'files' in finding


def test_a_store_that_others_do_not_see_is_told(tmp_path):
  (tmp_path / 'a').mkdir()
  assert store_probe.is_shared(
      str(tmp_path), process=0, meet=lambda value: [value, value]
  ) == []
  answers = iter([['x', 'x'], ['True', 'False']])
  (finding,) = store_probe.is_shared(
      str(tmp_path / 'a'), process=0, meet=lambda value: next(answers)
  )
  assert 'processes [1]' in finding
