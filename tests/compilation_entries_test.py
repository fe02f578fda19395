# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the compilation cache gives back is whole, and of the program asked for.

JAX's own store of files is used as it is; only what it is handed differs.
"""

import errno
import importlib
import importlib.util
import zlib

from absl import logging
from jax._src import lru_cache
import pytest

from t5wild import compilation_entries

_KEY = 'jit__train_step-0123'
_PROGRAM = zlib.compress(bytes(range(256)) * 40)
_OTHER = zlib.compress(bytes(range(1, 256)) * 40)


def _open(folder, *, takes_unsealed=False, max_size=10**6):
  return compilation_entries.SealedEntries(
      lru_cache.LRUCache(str(folder), max_size=max_size),
      takes_unsealed=takes_unsealed,
  )


def _warnings(monkeypatch):
  told = []
  monkeypatch.setattr(
      logging, 'warning', lambda line, *values: told.append(line % values)
  )
  return told


def _file(folder):
  return folder / f'{_KEY}-cache'


def _cut_off(folder):
  whole = _file(folder).read_bytes()
  _file(folder).write_bytes(whole[: len(whole) // 2])


def _flip(folder):
  changed = bytearray(_file(folder).read_bytes())
  changed[100] ^= 4
  _file(folder).write_bytes(bytes(changed))


def _empty(folder):
  _file(folder).write_bytes(b'')


def _of_another_program(folder):
  _open(folder).put('jit_other-4567', _OTHER)
  other = folder / 'jit_other-4567-cache'
  _file(folder).write_bytes(other.read_bytes())


@pytest.mark.parametrize('harm', [_cut_off, _flip, _empty, _of_another_program])
def test_what_is_not_the_program_is_told_and_then_replaced(
    harm, tmp_path, monkeypatch
):
  told = _warnings(monkeypatch)
  _open(tmp_path).put(_KEY, _PROGRAM)
  assert _open(tmp_path).get(_KEY) == _PROGRAM
  assert not told
  harm(tmp_path)
  entries = _open(tmp_path)
  assert entries.get(_KEY) is None
  assert 'jit__train_step' in told[0]
  entries.put(_KEY, _PROGRAM)
  assert _open(tmp_path).get(_KEY) == _PROGRAM


def test_an_entry_that_jax_wrote_itself_is_taken_where_that_is_said(tmp_path):
  lru_cache.LRUCache(str(tmp_path), max_size=-1).put(_KEY, _PROGRAM)
  assert _open(tmp_path).get(_KEY) is None
  entries = _open(tmp_path, takes_unsealed=True, max_size=-1)
  assert entries.get(_KEY) == _PROGRAM
  # JAX compiles what it read only where that was of no use.
  entries.put(_KEY, _OTHER)
  assert _open(tmp_path).get(_KEY) == _OTHER


def test_a_sealed_entry_is_read_by_jax_alone(tmp_path):
  _open(tmp_path).put(_KEY, _PROGRAM)
  entry = lru_cache.LRUCache(str(tmp_path), max_size=-1).get(_KEY)
  assert zlib.decompress(entry) == zlib.decompress(_PROGRAM)


def test_an_entry_whose_writer_was_killed_keeps_nothing_out(tmp_path):
  _open(tmp_path).put(_KEY, _PROGRAM)
  (tmp_path / f'{_KEY}-atime').unlink()
  _open(tmp_path).put('jit_other-4567', _OTHER)
  assert _open(tmp_path).get('jit_other-4567') == _OTHER


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_folder_that_fails_is_told_once_in_words_of_our_own(
    number, tmp_path, monkeypatch
):
  told = _warnings(monkeypatch)
  entries = _open(tmp_path)

  def fail(key, value=None):
    if value is not None:
      _file(tmp_path).write_bytes(value[:10])
    raise OSError(number, 'No space left on device')

  monkeypatch.setattr(entries._base, 'get', fail)
  monkeypatch.setattr(entries._base, 'put', fail)
  assert entries.get(_KEY) is None
  entries.put(_KEY, _PROGRAM)
  (line,) = told
  assert errno.errorcode[number] in line
  assert 'No space left' not in line
  assert not _file(tmp_path).exists()


def test_a_lock_that_nobody_gives_back_is_waited_for_once(
    tmp_path, monkeypatch
):
  told = _warnings(monkeypatch)
  entries = _open(tmp_path)
  entries._base.lock_timeout_secs = 0.01
  holder = lru_cache.filelock.FileLock(tmp_path / '.lockfile')
  with holder:
    assert entries.get(_KEY) is None
  entries.put(_KEY, _PROGRAM)
  assert entries.get(_KEY) is None
  assert len(told) == 1
  assert not _file(tmp_path).exists()


def test_a_jax_of_other_inner_names_is_a_warning_and_no_end(monkeypatch):
  told = _warnings(monkeypatch)
  monkeypatch.setattr(compilation_entries, 'jax_cache', None)
  compilation_entries.start(takes_unsealed=True)
  assert 'not sealed' in told[0]


@pytest.mark.parametrize('is_there', [True, False])
def test_the_module_is_imported_whatever_jax_calls_its_cache(
    is_there, monkeypatch
):
  inner = importlib.import_module('jax._src.compilation_cache')
  if not is_there:
    monkeypatch.delattr(inner, 'get_file_cache')
  spec = importlib.util.spec_from_file_location(
      'imported_again', compilation_entries.__file__
  )
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  assert (module.jax_cache is not None) is is_there
