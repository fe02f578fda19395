# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Each checkpoint is given once, and the wait for the next one ends."""

import threading
import time

import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.evaluating import watch


def _save(run, step):
  """A folder that counts as a complete checkpoint."""
  unfinished = run / f'unfinished_{step}'
  (unfinished / 'state').mkdir(parents=True)
  unfinished.rename(run / f'checkpoint_{step}')


def _found(run, *, mode='all', **arguments):
  cfg = configs.RestoreCheckpointConfig(path=str(run), mode=mode)
  return [
      int(path.rsplit('_', 1)[1])
      for path in watch.watch_checkpoints(cfg, **arguments)
  ]


def test_without_a_wait_there_are_those_that_are_there(tmp_path):
  for step in (10, 9, 100):
    _save(tmp_path, step)
  assert _found(tmp_path) == [9, 10, 100]
  assert _found(tmp_path, mode='latest') == [100]


def test_no_checkpoint_is_an_error_unless_one_is_waited_for(tmp_path):
  with pytest.raises(steps.NotACheckpointError, match='no complete'):
    _found(tmp_path)
  assert _found(tmp_path, wait_seconds=0.2, poll_seconds=0.1) == []


def test_those_that_come_are_given_until_the_last_step(tmp_path):
  _save(tmp_path, 1)

  def save_more():
    for step in (2, 3):
      time.sleep(0.3)
      _save(tmp_path, step)

  saver = threading.Thread(target=save_more)
  saver.start()
  start = time.monotonic()
  found = _found(
      tmp_path, wait_seconds=60.0, poll_seconds=0.1, total_steps=3
  )
  saver.join()
  assert found == [1, 2, 3]
  assert time.monotonic() - start < 30  # it waited for none after the last


def test_the_wait_ends_when_none_comes(tmp_path):
  _save(tmp_path, 1)
  found = _found(tmp_path, wait_seconds=0.3, poll_seconds=0.1, total_steps=9)
  assert found == [1]
