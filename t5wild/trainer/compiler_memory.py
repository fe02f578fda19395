# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Gives back to the system the memory that a compiler took and freed.

glibc keeps what is freed for the next allocation. After XLA that is hundreds of
MB, in pieces that a step's large arrays do not fit into: W1 would hold 350 MB
more at its peak (docs/performance.md).
"""

import ctypes


def give_back() -> bool:
  """Asks the C library to return free memory; whether it can (glibc).

  Takes about 0.1 s a GB freed, once a start.
  """
  try:
    trim = ctypes.CDLL(None).malloc_trim
  except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
    return False
  trim(0)
  return True
