# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The books of a run say how it ended."""

import contextlib
import os
import sys

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild import run_ends
from t5wild import training_plan
from t5wild.partitioning import compile_errors
from t5wild.trainer import preemption
from t5wild.vitals import goodput
from t5wild.vitals import records
from t5wild.vitals import time_ledgers
from t5wild.vitals import watchdog as watchdog_lib


@pytest.mark.parametrize(
    ('error', 'ended'),
    [
        (None, 'done'),
        (preemption.Preempted(3), 'stopped'),
        (preemption.Preempted(3, by_keyboard=True), 'stopped'),
        (KeyboardInterrupt(), 'stopped'),
        (training_plan.BadPlanError('total_steps'), 'refused'),
        (compile_errors.CudnnError('no plan'), 'refused'),
        (RuntimeError('of a device'), 'failed'),
    ],
)
def test_the_books_say_how_a_run_ended(tmp_path, error, ended):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  watchdog = watchdog_lib.Watchdog(run_dir, ledger=goodput.Ledger())
  with (
      contextlib.suppress(BaseException),
      watchdog,
      run_ends.told_to(watchdog, run_dir.path),
  ):
    if error is not None:
      raise error
  (attempt,) = time_ledgers.read_all(run_dir)
  assert attempt.ended == ended
  is_error = ended not in ('done', 'stopped')
  assert os.path.exists(run_dir.events_jsonl) == is_error
  if is_error:
    (record,) = records.read_records(run_dir.events_jsonl)
    assert record.name == 'run/error'
    assert record.text == f'{type(error).__name__}: {error}'


def test_the_words_of_an_error_are_on_record_without_secrets(tmp_path):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  watchdog = watchdog_lib.Watchdog(run_dir, ledger=goodput.Ledger())
  watchdog.begin(7)
  with (
      pytest.raises(RuntimeError),
      run_ends.told_to(watchdog, run_dir.path),
  ):
    raise RuntimeError('cannot log in with api_key = "SEKRIT"')
  (record,) = records.read_records(run_dir.events_jsonl)
  assert record.step == 7
  assert record.text == (
      'RuntimeError: cannot log in with api_key = "[hidden]"'
  )


@pytest.mark.parametrize(
    ('code', 'raised'),
    [(0, run_ends.LeftEarlyError), (None, run_ends.LeftEarlyError),
     (3, SystemExit)],
)  # fmt: skip
def test_a_recipe_that_leaves_with_0_has_not_done_its_run(
    code, raised, tmp_path
):
  run_dir = run_dir_lib.RunDir(str(tmp_path))
  watchdog = watchdog_lib.Watchdog(run_dir, ledger=goodput.Ledger())
  with pytest.raises(raised), watchdog, run_ends.told_to(watchdog, tmp_path):
    sys.exit(code)
  (attempt,) = time_ledgers.read_all(run_dir)
  assert attempt.ended == time_ledgers.FAILED
