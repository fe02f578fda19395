# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attempts that ended before they had books, by their supervisor's events."""

from collections.abc import Iterable, Iterator, Sequence
import os

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals import time_ledgers

EXIT = 'supervisor/exit/'
_ATTEMPT = 'supervisor/attempt'
# How an attempt ended, by the kind that a supervisor tells; a kind that is
# absent is a failure.
_ENDED = {
    'done': time_ledgers.DONE,
    'preempted': time_ledgers.STOPPED,
    'stopped': time_ledgers.STOPPED,
    'user_error': time_ledgers.REFUSED,
    'hang': time_ledgers.HUNG,
    'killed': None,  # cut off
}
# By default a supervisor ends who has given no sign for so long.
_SILENT_SECONDS = 300.0


def read_events(run_dir: run_dir_lib.RunDir) -> list[records_lib.Record]:
  """All events of a run, in the order of the file; none without one."""
  if not os.path.exists(run_dir.events_jsonl):
    return []
  return list(records_lib.read_records(run_dir.events_jsonl))


def with_lost(
    attempts: Sequence[time_ledgers.Attempt],
    events: Iterable[records_lib.Record],
    *,
    now: float | None = None,
) -> list[time_ledgers.Attempt]:
  """Adds the attempts that kept no books; all in order of time.

  Their seconds are booked as `startup`: from their start to the exit that the
  supervisor told, or, where it was killed with them, to the last event of
  theirs.

  Args:
    attempts: Those with books.
    events: Of the run.
    now: wall clock, by which the newest may be starting still; None: its last
      sign is its end.
  """
  booked = {attempt.number for attempt in attempts}
  lost = [
      _lost(mine, attempts, now if is_newest else None)
      for mine, is_newest in _by_attempt(events)
      if int(mine[0].value) not in booked
  ]
  return sorted([*attempts, *lost], key=lambda attempt: attempt.start)


def told_ends(events: Iterable[records_lib.Record]) -> frozenset[int]:
  """Numbers of the attempts whose end a supervisor told."""
  return frozenset(
      int(mine[0].value)
      for mine, _ in _by_attempt(events)
      if any(event.name.startswith(EXIT) for event in mine)
  )


def _by_attempt(
    events: Iterable[records_lib.Record],
) -> Iterator[tuple[list[records_lib.Record], bool]]:
  """The events since the start of each attempt; whether it is the newest."""
  groups: list[list[records_lib.Record]] = []
  for event in sorted(events, key=lambda event: event.seconds):
    if event.name == _ATTEMPT:
      groups.append([event])
    elif groups:
      groups[-1].append(event)
  for group in groups:
    yield group, group is groups[-1]


def _lost(
    mine: Sequence[records_lib.Record],
    attempts: Sequence[time_ledgers.Attempt],
    now: float | None,
) -> time_ledgers.Attempt:
  start = mine[0].seconds
  exits = [event for event in mine if event.name.startswith(EXIT)]
  end, ended = mine[-1].seconds, None
  if exits:
    end = exits[0].seconds
    kind = exits[0].name.removeprefix(EXIT)
    ended = _ENDED.get(kind, time_ledgers.FAILED)
  elif now is not None and 0 <= now - end < _SILENT_SECONDS:
    end = now
  # The same devices as of the attempt that is nearest in time.
  near = min(
      attempts, key=lambda attempt: abs(attempt.start - start), default=None
  )
  return time_ledgers.Attempt(
      start=start,
      end=end,
      seconds={'startup': end - start},
      first_step=0,
      step=0,
      num_devices=near.num_devices if near else 0,
      price_per_device_hour=near.price_per_device_hour if near else None,
      number=int(mine[0].value),
      ended=ended,
  )
