# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the kernel says a silent process does."""

_STATES = {
    'T': 'it is stopped (SIGSTOP or Ctrl-Z; kill -CONT lets it go on)',
    't': 'it is stopped by a debugger',
    'D': 'it waits for a disk, a network file system or a driver',
    'R': 'it runs',
    'S': 'it sleeps: it waits for another process, or its threads do',
    'Z': 'it has ended',
}
_UNKNOWN = 'it is stopped, or its host or its file system hangs'


def words(pid: int) -> str:
  """Why it may be silent, for a person."""
  try:
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
      # The name before it is in brackets, and may hold anything.
      state = file.read().rpartition(')')[2].split()[0]
  except (OSError, IndexError):
    return _UNKNOWN
  return _STATES.get(state, _UNKNOWN)
