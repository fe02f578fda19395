# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Has the C library ask for huge pages, which a CPU's training step needs.

XLA's CPU client takes the memory of a step's intermediate results anew in every
step. In pages of 4 KiB the kernel's handing out of them is a quarter of the
time of a step (docs/performance.md); in huge pages next to nothing. Where Linux
gives huge pages only to who asks ("madvise", the default of most
distributions), glibc 2.35 and later asks if told so before it starts.
"""

from collections.abc import Mapping
import os
import pathlib
import sys
import threading

_VARIABLE = 'GLIBC_TUNABLES'
_SETTING = 'glibc.malloc.hugetlb'
_KERNEL = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')
# Their memory is the device's own; nothing was measured beside one.
_ACCELERATORS = ('/dev/nvidiactl', '/dev/accel0', '/dev/vfio/0', '/dev/kfd')


def start_again() -> None:
  """Starts this process again with huge pages, where they are to be had.

  The process keeps its number, its arguments and its open files. Does nothing
  where the user has set glibc.malloc.hugetlb, where an accelerator is seen, or
  where the kernel gives huge pages to all or to nobody; nor once JAX is
  imported or a thread runs, since what they have done would be lost.
  """
  environment = with_huge_pages(os.environ)
  if environment is None or not _is_fresh():
    return
  os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def with_huge_pages(
    environment: Mapping[str, str],
    *,
    kernel: pathlib.Path = _KERNEL,
    accelerators: tuple[str, ...] = _ACCELERATORS,
) -> dict[str, str] | None:
  """The environment of a process that has them; None = leave it as it is.

  Args:
    environment: of the process.
    kernel: the file in which Linux says to whom it gives huge pages.
    accelerators: files that are there where an accelerator is.
  """
  settings = environment.get(_VARIABLE, '')
  if _SETTING in settings or any(map(os.path.exists, accelerators)):
    return None
  try:
    if '[madvise]' not in kernel.read_text():
      return None
  except OSError:  # no Linux, or one built without them
    return None
  joined = ':'.join(filter(None, (settings, f'{_SETTING}=1')))
  return {**environment, _VARIABLE: joined}


def _is_fresh() -> bool:
  script = sys.orig_argv[1:2]
  return (
      script not in ([], ['-'])  # then standard input was the program
      and 'jax' not in sys.modules
      and threading.active_count() == 1
  )
