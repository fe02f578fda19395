# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests for huge_pages.py."""

import os
import pathlib
import subprocess
import sys

import pytest

from t5wild import devices_seen
from t5wild import huge_pages

_MADVISE = 'always [madvise] never'
_HERE = (
    huge_pages.with_huge_pages({}) is not None
    and devices_seen.accelerator() is None
)
_needs_madvise = pytest.mark.skipif(
    not _HERE,
    reason='this kernel does not give huge pages to who asks, or there is an '
    'accelerator here',
)

# Tells how it runs, after asking to be started again.
_PROGRAM = """
import os, sys
print('pid', os.getpid(), flush=True)
from t5wild import huge_pages
huge_pages.start_again()
print(os.environ['GLIBC_TUNABLES'], sys.argv[1:], os.getpid(), os.fstat(0))
"""
_FAULTS = """
import resource
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
held = bytearray(256 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture
def kernel(tmp_path):
  path = tmp_path / 'enabled'
  path.write_text(_MADVISE)
  return path


def _ask(environment, kernel):
  return huge_pages.with_huge_pages(environment, kernel=kernel)


def test_settings_of_the_user_stay_beside_ours(kernel):
  assert _ask({'A': 'b'}, kernel) == {
      'A': 'b', 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1',
  }
  assert _ask({'GLIBC_TUNABLES': 'x=1'}, kernel) == {
      'GLIBC_TUNABLES': 'x=1:glibc.malloc.hugetlb=1'
  }


def test_what_the_user_said_of_huge_pages_is_not_overruled(kernel):
  assert _ask({'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=0'}, kernel) is None


@pytest.mark.parametrize(
    'text', ['[always] madvise never', 'always madvise [never]', None]
)
def test_nothing_is_changed_where_nothing_is_to_be_had(kernel, text):
  kernel.unlink() if text is None else kernel.write_text(text)
  assert _ask({}, kernel) is None


@pytest.mark.parametrize(
    ('text', 'told'),
    [('[always] madvise never', 'always'), (_MADVISE, 'madvise'), ('', None)],
)
def test_whom_they_are_given_to_is_read_from_the_kernel(kernel, text, told):
  kernel.write_text(text)
  assert huge_pages.given_to(kernel) == told


def _run(arguments, **keywords):
  environment = {k: v for k, v in os.environ.items() if k != 'GLIBC_TUNABLES'}
  environment |= keywords.pop('env', {})
  return subprocess.run(
      [sys.executable, *arguments], env=environment, capture_output=True,
      text=True, check=True, **keywords,
  ).stdout


@_needs_madvise
def test_a_process_starts_again_once_as_itself(tmp_path):
  program = tmp_path / 'program.py'
  program.write_text(_PROGRAM)
  lines = _run([program, '--a', 'b c']).splitlines()
  pid = lines[0]
  assert lines[:2] == [pid, pid]  # begun twice, with one number
  assert len(lines) == 3
  assert lines[2].startswith("glibc.malloc.hugetlb=1 ['--a', 'b c'] ")
  assert pid.split()[1] in lines[2]


@_needs_madvise
def test_a_program_read_from_standard_input_is_not_started_again():
  root = pathlib.Path(huge_pages.__file__).parents[1]
  text = _PROGRAM.replace("['GLIBC_TUNABLES']", ".get('GLIBC_TUNABLES')")
  lines = _run(['-'], input=text, cwd=root).splitlines()
  assert len(lines) == 2
  assert lines[1].startswith('None ')


@_needs_madvise
def test_memory_comes_in_huge_pages():
  # 256 MiB are 65,536 small pages and 128 huge ones, of which the kernel has as
  # many as its memory is whole: beside other work not all.
  with_them = huge_pages.with_huge_pages(os.environ) or {}
  assert int(_run(['-c', _FAULTS])) > 60_000
  assert min(
      int(_run(['-c', _FAULTS], env=with_them)) for _ in range(3)
  ) < 40_000
