# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The compilation cache as a user gets it: on, in a folder, with a size limit.

In processes of their own, since JAX opens its cache once a process, and this
one may have another.
"""

import json
import os
import pathlib
import subprocess
import sys

_PROGRAM = """
import json
from t5wild import compilation_cache
folder = compilation_cache.start()
import jax
jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8)))
print(json.dumps({'folder': folder, **compilation_cache.counts()}))
"""


def _start(**environment):
  kept = {
      name: value
      for name, value in os.environ.items()
      if not name.startswith(('JAX_COMPILATION', 'T5WILD_COMPILATION'))
  }
  done = subprocess.run(
      [sys.executable, '-W', 'error', '-c', _PROGRAM],
      env=kept | {'JAX_PLATFORMS': 'cpu'} | environment,
      capture_output=True,
      text=True,
      check=True,
  )
  return json.loads(done.stdout.splitlines()[-1])


def test_what_one_process_compiled_the_next_one_reads_or_mends(tmp_path):
  first = _start(XDG_CACHE_HOME=str(tmp_path))
  assert pathlib.Path(first['folder']) == tmp_path / 't5wild' / 'compilation'
  assert first['hits'] == 0
  assert first['misses'] > 0
  second = _start(XDG_CACHE_HOME=str(tmp_path))
  assert second['misses'] == 0
  assert second['hits'] == first['misses']
  harmed = next(pathlib.Path(first['folder']).glob('*-cache'))
  harmed.write_bytes(harmed.read_bytes()[:100])
  third = _start(XDG_CACHE_HOME=str(tmp_path))
  assert third['misses'] == 1
  assert third['hits'] == first['misses'] - 1
  assert harmed.stat().st_size > 100


def test_the_cache_can_be_turned_off(tmp_path):
  told = _start(XDG_CACHE_HOME=str(tmp_path), T5WILD_COMPILATION_CACHE='off')
  assert told == {'folder': None, 'hits': 0, 'misses': 0}
  assert not list(tmp_path.iterdir())

