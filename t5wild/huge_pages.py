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

from t5wild import devices_seen

_VARIABLE = 'GLIBC_TUNABLES'
_SETTING = 'glibc.malloc.hugetlb'
_KERNEL = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')


def start_again() -> None:
  """Starts this process again with huge pages, where they are to be had.

  The process keeps its number, its arguments and its open files. Does nothing
  where the user has set glibc.malloc.hugetlb, where an accelerator is seen, or
  where the kernel gives huge pages to all or to nobody; nor once JAX is
  imported or a thread runs, since what they have done would be lost.
  """
  if devices_seen.accelerator() or not _is_fresh():
    return  # nothing was measured beside an accelerator
  environment = with_huge_pages(os.environ)
  if environment is None:
    return
  os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def with_huge_pages(
    environment: Mapping[str, str], *, kernel: pathlib.Path = _KERNEL
) -> dict[str, str] | None:
  """The environment of a process that has them; None = leave it as it is.

  Args:
    environment: of the process.
    kernel: the file in which Linux says to whom it gives huge pages.
  """
  settings = environment.get(_VARIABLE, '')
  if _SETTING in settings or given_to(kernel) != 'madvise':
    return None
  joined = ':'.join(filter(None, (settings, f'{_SETTING}=1')))
  return {**environment, _VARIABLE: joined}


def given_to(kernel: pathlib.Path = _KERNEL) -> str | None:
  """Whom Linux gives them to: 'always', 'madvise' (who asks), 'never'.

  None: no Linux, or one without them.
  """
  try:
    return kernel.read_text().partition('[')[2].partition(']')[0] or None
  except OSError:
    return None


def _is_fresh() -> bool:
  script = sys.orig_argv[1:2]
  return (
      script not in ([], ['-'])  # then standard input was the program
      and 'jax' not in sys.modules
      and threading.active_count() == 1
  )
