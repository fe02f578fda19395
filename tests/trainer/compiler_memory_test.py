# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a compiler freed does not stay with the process."""

import ctypes
import pathlib

import pytest

from t5wild.trainer import compiler_memory

_PIECE = 64 * 1024  # small enough for the heap, which does not shrink by itself


def _resident_bytes() -> int:
  pages = pathlib.Path('/proc/self/statm').read_text().split()[1]
  return int(pages) * 4096


def test_what_was_freed_in_pieces_is_given_back():
  libc = ctypes.CDLL(None)
  if not hasattr(libc, 'malloc_trim'):
    pytest.skip('the C library is not glibc, which alone has malloc_trim')
  libc.malloc.restype = ctypes.c_void_p
  libc.malloc.argtypes = [ctypes.c_size_t]
  libc.free.argtypes = [ctypes.c_void_p]
  pieces = [libc.malloc(_PIECE) for _ in range(1600)]
  for piece in pieces:
    ctypes.memset(piece, 1, _PIECE)
  held = pieces.pop()  # the last one keeps the heap from shrinking
  for piece in pieces:
    libc.free(piece)
  before = _resident_bytes()
  assert compiler_memory.give_back()
  assert before - _resident_bytes() > 0.8 * 1600 * _PIECE
  libc.free(held)


def test_a_c_library_without_it_is_left_alone(monkeypatch):
  monkeypatch.setattr(ctypes, 'CDLL', lambda name: object())
  assert not compiler_memory.give_back()
