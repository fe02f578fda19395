# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run whose MODEL_DIR is moved, deleted or taken ends, and says so."""

import os
import pathlib
import shutil
import threading

import pytest

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild import training_claim
from t5wild import training_place
from t5wild.checkpoint_files import steps
from tests.end_to_end import runs


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
  monkeypatch.setattr(training_place, '_POLL_SECONDS', 0.02)
  monkeypatch.setattr(training_place, '_AGAIN_SECONDS', 0.02)


@pytest.fixture
def run(tmp_path):
  return tmp_path / 'run'


@pytest.fixture
def place(run):
  with training_claim.held(run_dir_lib.RunDir(str(run))) as place:
    yield place


def test_a_folder_that_stays_is_no_loss_nor_one_that_is_moved_and_linked(
    place, run, tmp_path
):
  assert place.loss() is None
  run.rename(tmp_path / 'elsewhere')
  run.symlink_to(tmp_path / 'elsewhere')
  assert place.loss() is None


def test_a_moved_folder_is_named_and_takes_the_last_state(
    place, run, tmp_path
):
  run.rename(tmp_path / 'moved')
  loss = place.loss()
  assert loss.rescue == str(tmp_path / 'moved')
  assert loss.what == f'{run} is gone: it was moved to {tmp_path}/moved'
  error = place.error(loss, step=7, is_saved=True)
  assert f'To go on: mv {tmp_path}/moved {run}; then start' in str(error)
  assert 'the state of step 7 is saved in' in str(error)
  events = (tmp_path / 'moved' / 'events.jsonl').read_text()
  assert 'run/place_lost' in events
  assert not run.exists()


def test_the_path_of_a_deleted_folder_takes_the_last_state(place, run):
  shutil.rmtree(run)
  loss = place.loss()
  assert loss.what == f'{run} is gone: it was deleted'
  assert loss.rescue == str(run)
  # What was under way may have made it anew.
  (run / 'time').mkdir(parents=True)
  assert place.loss().rescue == str(run)
  # Another run that saves there is not written to.
  (run / 'checkpoint_5').mkdir()
  (run / 'checkpoint_5' / steps.COMMIT_MARKER).touch()
  assert place.loss().rescue is None


def test_another_folder_in_its_place_is_not_written_to(place, run, tmp_path):
  run.rename(tmp_path / 'moved')
  run.mkdir()
  loss = place.loss()
  assert loss.what.startswith(f'another folder is at {run}: it was moved to')
  text = str(place.error(loss, step=7, is_saved=True))
  assert f'take away what is at {run}, mv {tmp_path}/moved {run}' in text


def test_a_lock_that_another_one_has_taken_is_a_loss(place, run):
  os.unlink(run / 'training.lock')
  assert place.loss() is None  # nobody else is there
  with open(run / 'training.lock', 'w') as file:
    file.write('pid 1 on other')
  loss = place.loss()
  assert loss.what == f'{run} is held by another one, pid 1 on other'
  assert loss.rescue is None
  error = place.error(loss, step=7, is_saved=False)
  assert 'the state of step 7 is lost' in str(error)


def test_a_loss_is_noticed_between_saves(place, run):
  noticed = threading.Event()
  with place.watched(noticed.set):
    assert not noticed.wait(0.2)
    shutil.rmtree(run)
    assert noticed.wait(10)


def test_a_mount_that_stalls_keeps_nobody_and_is_no_loss(
    place, monkeypatch, caplog
):
  goes_on = threading.Event()
  monkeypatch.setattr(training_place, '_LOOK_SECONDS', 0.1)
  monkeypatch.setattr(
      training_place, '_identity', lambda found: goes_on.wait(60)
  )
  assert place.loss() is None
  assert 'has not answered' in caplog.text
  threads = threading.active_count()
  assert place.loss() is None  # and waits for it no more
  assert threading.active_count() == threads
  goes_on.set()


def test_who_holds_nothing_looks_at_nothing(tmp_path):
  place = training_place.Place(run_dir_lib.RunDir(str(tmp_path / 'absent')))
  assert place.loss() is None
  with place.watched(lambda: pytest.fail('it looked')):
    pass


@pytest.mark.slow
def test_a_run_that_is_moved_saves_its_state_there_and_makes_no_other(tmp_path):
  run, moved = tmp_path / 'run', pathlib.Path(tmp_path / 'moved')
  with (tmp_path / 'log').open('w') as log:
    process = runs.start(run, log=log, TRAIN_STEPS=10**6,
                         checkpoints__SaveCheckpointConfig__period=10**5,
                         train_script__train__eval_period=10**5)  # fmt: skip
    runs.wait_for_step(run, 4, process)
    run.rename(moved)
    code = process.wait(runs.TIMEOUT_SECONDS)
  text = (tmp_path / 'log').read_text()
  assert code == exit_codes.RUN_DIR_LOST.code, text
  assert not run.exists()
  assert steps.latest_step(moved) == max(runs.losses(moved)) >= 4
  assert f'To go on: mv {moved} {run}' in text
