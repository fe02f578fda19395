# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests for stacks.py."""

import threading

from t5wild.vitals import stacks


def test_stacks_are_written_while_a_thread_is_about_to_begin(
    tmp_path, monkeypatch
):
  beginning = threading.Thread(name='not yet')  # as `enumerate` lists it then
  threads = [*threading.enumerate(), beginning]
  monkeypatch.setattr(threading, 'enumerate', lambda: threads)
  path = tmp_path / 'stacks.txt'
  stacks.write(str(path), 'asked for')
  text = path.read_text()
  assert 'asked for' in text
  assert f'MainThread is 0x{threading.get_ident():016x}' in text
  assert 'not yet' not in text
