# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One process of several that fails alone ends with its own error."""

import time

import pytest

from t5wild import exit_codes
from tests import multiprocess

_RUN = """
import sys
from t5wild import command_line
from t5wild.partitioning import distributed
command_line._LEAVE_SECONDS = SECONDS

def run():
  distributed.start()
  if distributed.process_index() in FAILING:
    END
  distributed.barrier('step', 2)
  return 0

sys.exit(command_line.leaving_alone(run))
"""
_RAISE = "raise ValueError(f'mine: {distributed.process_index()}')"


def _ended(failing, end, *, seconds):
  script = _RUN.replace('SECONDS', str(seconds)).replace('END', end)
  return multiprocess.run_processes(
      script.replace('FAILING', repr(failing)), 2, check=False
  )


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    ('end', 'code'),
    [
        (_RAISE, exit_codes.FAILED.code),
        # A wrong disk of its own; code of a recipe.
        pytest.param('return 2', 2, marks=pytest.mark.slow),
        pytest.param('sys.exit(5)', 5, marks=pytest.mark.slow),
    ],
)
def test_who_fails_alone_does_not_wait_for_the_others(end, code):
  begin = time.monotonic()
  first, second = _ended((1,), end, seconds=1)
  assert second.returncode == code
  assert time.monotonic() - begin < 60  # JAX alone: 300
  assert first.returncode != exit_codes.DONE.code
  if end is _RAISE:
    assert second.stderr.splitlines()[-1] == 'ValueError: mine: 1'


@pytest.mark.multiprocess
def test_who_fail_together_each_tell_their_error_once():
  outputs = _ended((0, 1), _RAISE, seconds=60)
  for index, output in enumerate(outputs):
    assert output.returncode == exit_codes.FAILED.code
    assert output.stderr.count(f'ValueError: mine: {index}') == 1
