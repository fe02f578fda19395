# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints a run may go back to."""

import os

import pytest

from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import candidates
from t5wild.checkpoints import configs
from t5wild.checkpoints import retention
from t5wild.checkpoints import shelf as shelf_lib


def _save(directory, *saved):
  for step in saved:
    state = directory / f'checkpoint_{step}' / 'state'
    state.mkdir(parents=True)
    (state.parent / steps.COMMIT_MARKER).touch()


def _open(directory, keep=None):
  return shelf_lib.Shelf(
      str(directory),
      policy=retention.Policy(keep=keep),
      keep_dataset_states=None,
  )


def test_who_is_not_in_the_file_is_a_candidate(tmp_path):
  book = health.Book(tmp_path, is_writer=True)
  assert book.of(7) == health.Health(state=health.CANDIDATE)
  assert health.read(tmp_path) == {}


def test_health_is_known_after_a_restart(tmp_path):
  book = health.Book(tmp_path, is_writer=True)
  assert book.promote([3, 5]) == [3, 5]
  assert book.promote([3, 5, 9]) == [9]
  book.quarantine([9], reason='a spike at step 10')
  again = health.Book(tmp_path, is_writer=False)
  assert again.in_state(health.HEALTHY, [3, 5, 9]) == [3, 5]
  assert again.of(9).reason == 'a spike at step 10'


def test_one_in_quarantine_is_promoted_by_nothing(tmp_path):
  book = health.Book(tmp_path, is_writer=True)
  book.quarantine([4], reason='x')
  assert book.promote([4]) == []
  assert book.of(4).state == health.QUARANTINED


def test_of_two_files_that_differ_both_put_into_quarantine(tmp_path):
  book = health.Book(tmp_path, is_writer=True)
  book.promote([4, 5])
  older = (tmp_path / health.FILE).read_text()
  book.quarantine([5], reason='a spike')
  (tmp_path / health.FILE).write_text(older)
  known, told = health.look(tmp_path)
  assert known[4].state == health.HEALTHY
  assert known[5].state == health.QUARANTINED
  assert 'differ: by the copy alone [5] are in quarantine' in told
  health.Book(tmp_path, is_writer=True)  # mends it
  assert health.look(tmp_path) == (known, None)


def test_only_the_writer_writes(tmp_path):
  health.Book(tmp_path, is_writer=False).promote([1])
  assert os.listdir(tmp_path) == []


_DAMAGED = [
    '', '{"3": 1}', '[1]', '{"a": {}}', '{"3"', '\x00', '{"3": {"st": 1}}',
    '{"3": {"state": "fine"}}',
]  # fmt: skip


@pytest.mark.parametrize('text', _DAMAGED)
def test_a_damaged_file_is_told_and_its_copy_taken_and_mended(
    tmp_path, text, caplog
):
  _save(tmp_path, 2, 3)
  health.Book(tmp_path, is_writer=True).quarantine([3], reason='a spike')
  (tmp_path / health.FILE).write_text(text)
  known, damage = health.look(tmp_path)
  assert known[3].state == health.QUARANTINED
  assert health.FILE in damage
  assert steps.all_steps(tmp_path) == [2]
  health.Book(tmp_path, is_writer=True)
  assert health.FILE in caplog.text
  assert health.look(tmp_path) == (known, None)


@pytest.mark.parametrize('text', _DAMAGED)
def test_nothing_is_resumed_from_where_nobody_knows_what_is_in_quarantine(
    tmp_path, text
):
  _save(tmp_path, 2, 3)
  (tmp_path / health.FILE).write_text(text)
  with pytest.raises(health.DamagedError, match=health.FILE):
    steps.all_steps(tmp_path)
  with pytest.raises(health.DamagedError, match='absent.*expected.*Copy'):
    _open(tmp_path)
  (tmp_path / health.COPY).write_text(text)
  with pytest.raises(steps.NotACheckpointError, match='so is its copy'):
    candidates.find(configs.CheckpointConfig(), str(tmp_path))


def test_a_lost_file_is_told_and_its_copy_taken(tmp_path):
  health.Book(tmp_path, is_writer=True).quarantine([3], reason='a spike')
  (tmp_path / health.FILE).unlink()
  assert health.quarantined_steps(tmp_path) == {3}


def test_a_disk_that_refuses_the_file_does_not_end_the_run(tmp_path, caplog):
  book = health.Book(tmp_path / 'gone' / 'for' / 'good', is_writer=True)
  (tmp_path / 'gone').write_text('a file where a folder should be')
  assert book.promote([2]) == [2]
  assert book.of(2).state == health.HEALTHY
  assert 'not kept for a restart' in caplog.text


def test_nobody_resumes_from_quarantine(tmp_path):
  _save(tmp_path, 2, 4, 6)
  _open(tmp_path).quarantine([4, 6], reason='a spike')
  assert steps.all_steps(tmp_path) == [2]
  assert steps.latest_step(tmp_path) == 2
  assert steps.complete_steps(tmp_path) == [2, 4, 6]
  assert _open(tmp_path).all_steps() == [2]


def test_a_later_save_takes_the_place_of_one_in_quarantine(tmp_path):
  _save(tmp_path, 2, 4)
  shelf = _open(tmp_path)
  shelf.quarantine([4], reason='a spike')
  shelf.make_room(4)
  assert not (tmp_path / 'checkpoint_4').exists()
  _save(tmp_path, 4)
  shelf.add(4)
  assert shelf.in_health(health.CANDIDATE) == [2, 4]
  assert steps.all_steps(tmp_path) == [2, 4]


def test_the_newest_healthy_checkpoint_stays_until_there_is_a_newer(tmp_path):
  _save(tmp_path, 2, 4, 6)
  shelf = _open(tmp_path, keep=1)
  shelf.promote([2, 4])
  assert shelf.remove_old() == [2]
  assert shelf.all_steps() == [4, 6]
  shelf.promote([6])
  assert shelf.remove_old() == [4]


def test_quarantine_is_cleared_once_the_fault_is_left_behind(tmp_path):
  _save(tmp_path, 2, 4)
  shelf = _open(tmp_path, keep=1)
  shelf.promote([2])
  shelf.quarantine([4], reason='a spike')
  shelf.remove_old()
  assert steps.complete_steps(tmp_path) == [2, 4]
  _save(tmp_path, 6)
  shelf.add(6)
  shelf.promote([6])
  shelf.remove_old()
  assert steps.complete_steps(tmp_path) == [6]


def test_a_checkpoint_that_is_removed_is_forgotten(tmp_path):
  _save(tmp_path, 2, 4)
  shelf = _open(tmp_path, keep=1)
  shelf.promote([2, 4])
  shelf.remove_old()
  assert health.read(tmp_path).keys() == {4}
