# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How often the kernel has killed a process here for want of memory."""

_COUNTERS = ('/sys/fs/cgroup/memory.events', '/proc/vmstat')


def num_oom_kills() -> int:
  """The counters of this container and this machine, added up; 0 if none."""
  return sum(map(_read, _COUNTERS))


def _read(path: str) -> int:
  try:
    with open(path, encoding='ascii') as file:
      counters = dict(line.split() for line in file)
  except (OSError, ValueError):
    return 0
  return int(counters.get('oom_kill', 0))
