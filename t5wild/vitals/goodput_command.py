# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where a run's time and money went, over all restarts: `t5wild goodput`."""

import argparse
import collections
from collections.abc import Iterable, Sequence
import os
import sys
import time

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.vitals import goodput_report
from t5wild.vitals import heartbeats
from t5wild.vitals import lost_attempts
from t5wild.vitals import records
from t5wild.vitals import stalls
from t5wild.vitals import time_ledgers

_EXIT = lost_attempts.EXIT
# Ends of an attempt that are no failure of it, as a supervisor calls them.
_ASKED_FOR = frozenset({'done', 'preempted', 'stopped', 'user_error'})


def main(argv: Sequence[str] = ()) -> int:
  """Prints the report of a run; returns an exit code."""
  parser = argparse.ArgumentParser(prog='t5wild goodput', description=__doc__)
  parser.add_argument('run', metavar='RUN', help='its MODEL_DIR')
  parser.add_argument(
      '--price_per_device_hour', type=float, metavar='MONEY',
      help='in any currency; default: as gin told the run',
  )  # fmt: skip
  arguments = parser.parse_args(list(argv))
  price = arguments.price_per_device_hour
  if price is not None and not price >= 0:
    return _refuse(
        f'--price_per_device_hour is {price}, expected 0 or more: what one '
        'device costs in an hour'
    )
  run_dir = run_dir_lib.RunDir(arguments.run)
  events = lost_attempts.read_events(run_dir)
  now = heartbeats.runs_now(run_dir, now=time.time())
  attempts = lost_attempts.with_lost(
      time_ledgers.read_all(run_dir), events, now=now
  )
  if not attempts:
    is_there = os.path.isdir(run_dir.path)
    what = 'has no books of time' if is_there else 'is no folder here'
    return _refuse(
        f'{arguments.run!r} {what}: expected the MODEL_DIR of a run, with '
        f'files in {run_dir.time_ledgers}. Name the folder; a run on a bucket '
        'keeps its books in the --run_dir of t5wild supervise.'
    )
  report = goodput_report.make_report(
      attempts, causes=causes(events), price_per_device_hour=price,
      told_ends=lost_attempts.told_ends(events),
      stalls=stalls.of_others(events), now=now,
  )  # fmt: skip
  print(goodput_report.as_text(report))  # noqa: T201 -- the product
  return exit_codes.DONE.code


def causes(events: Iterable[records.Record]) -> dict[str, int] | None:
  """Kinds of failures to their number; None where no supervisor told any."""
  kinds = [
      record.name.removeprefix(_EXIT)
      for record in events
      if record.name.startswith(_EXIT)
  ]
  if not kinds:
    return None
  return dict(
      collections.Counter(kind for kind in kinds if kind not in _ASKED_FOR)
  )


def _refuse(text: str) -> int:
  print(f't5wild goodput: {text}', file=sys.stderr)  # noqa: T201 -- the product
  return exit_codes.BAD_CONFIG.code
