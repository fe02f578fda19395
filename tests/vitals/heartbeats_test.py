# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Small files that are replaced whole, and what is left of them."""

import os
import time

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import heartbeats


def test_folders_are_made_below_a_run_directory_which_is_not(tmp_path):
  run = tmp_path / 'run'
  with pytest.raises(FileNotFoundError):
    heartbeats.replace(f'{run}/health.json', 'x', num_folders=0)
  with pytest.raises(FileNotFoundError):
    heartbeats.replace(f'{run}/time/books.jsonl', 'x')
  with pytest.raises(FileNotFoundError):
    heartbeats.replace(f'{run}/heartbeats/a/1.json', 'x', num_folders=2)
  assert not run.exists()
  run.mkdir()
  heartbeats.replace(f'{run}/time/books.jsonl', 'x')
  heartbeats.replace(f'{run}/heartbeats/a/1.json', 'x', num_folders=2)
  assert (run / 'heartbeats' / 'a' / '1.json').read_text() == 'x'


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  left = ['checkpoint_health.json.17.tmp', 'time/a.jsonl.17.tmp',
          'heartbeats/host/process_0.json.17.tmp']  # fmt: skip
  others = ['notes.tmp', 'checkpoint_1/state.17.tmp', 'time/young.17.tmp']
  for name in (*left, *others):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    if 'young' not in name:
      long_ago = time.time() - 100
      os.utime(tmp_path / name, (long_ago, long_ago))
  removed = heartbeats.remove_leftovers(run_dir)
  assert sorted(removed) == sorted(f'{tmp_path}/{name}' for name in left)
  assert all((tmp_path / name).exists() for name in others)
