# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Several records of one fault as one: what is said once is said whole.

A process that dies leaves its own words, then its supervisor writes that it saw
the end, how it took it, that it starts again, and with which attempt.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
import dataclasses

from t5wild.vitals import records as records_lib

ERROR = 'run/error'  # the words of the error that ended a training
EXIT = 'supervisor/exit/'
DETECTED = 'supervisor/detected'
_RESTART = 'supervisor/restart'
_ATTEMPT = 'supervisor/attempt'
_AT_ONCE_SECONDS = 1.0
SOON_SECONDS = 60.0  # from an end to what the supervisor writes of it
_CHECKPOINT = 'checkpoint/'
# Of checkpoints, but not why an older one was taken.
_EVERYDAY = ('mirrored',)


def with_own_words(
    records: Iterable[records_lib.Record],
) -> list[records_lib.Record]:
  """In order of time, with a process's own words in the record of its exit."""
  ordered = sorted(records, key=lambda record: record.seconds)
  words: dict[int, str] = {}  # by the place of the exit
  told = set()
  exit_at = None
  for place in reversed(range(len(ordered))):
    record = ordered[place]
    if record.name.startswith(EXIT):
      exit_at = place
    elif (
        record.name == ERROR
        and exit_at is not None
        and ordered[exit_at].seconds - record.seconds <= SOON_SECONDS
    ):
      told.add(place)
      words.setdefault(exit_at, record.text)  # the last before it
  return [
      dataclasses.replace(
          record, text=f'{record.text} In its own words: {words[place]}'
      )
      if place in words
      else record
      for place, record in enumerate(ordered)
      if place not in told
  ]


def merged(records: Iterable[records_lib.Record]) -> list[records_lib.Record]:
  """The same, with the supervisor's other records of an exit in that one."""
  ordered = with_own_words(records)
  exits = [each for each in ordered if each.name.startswith(EXIT)]
  moments = [each.seconds for each in exits]
  kept = []
  next_attempts: dict[int, records_lib.Record] = {}  # by the exit's number
  for record in ordered:
    number = None
    if record.name in (DETECTED, _RESTART, _ATTEMPT):
      number = _exit_of(record, moments)
    if number is None:
      kept.append(record)
    elif record.name == _ATTEMPT:
      next_attempts.setdefault(number, record)
  followed = {
      id(exits[number]): attempt for number, attempt in next_attempts.items()
  }
  return [
      _with_what_followed(each, followed[id(each)])
      if id(each) in followed
      else each
      for each in kept
  ]


def why_older(
    records: Iterable[records_lib.Record], *, since: float, until: float
) -> str:
  """What was told of checkpoints between an end and the start after it."""
  told = [
      record.text
      for record in records
      if record.name.startswith(_CHECKPOINT)
      and record.name.removeprefix(_CHECKPOINT) not in _EVERYDAY
      and since <= record.seconds <= until
      and record.text
  ]
  return '; '.join(dict.fromkeys(told))


def _exit_of(
    record: records_lib.Record, moments: Sequence[float]
) -> int | None:
  """The number of the exit that a supervisor's record is about.

  Args:
    record: of the supervisor.
    moments: of all exits, in order.
  """
  if record.name == DETECTED:
    after = bisect.bisect_left(moments, record.seconds)
    is_soon = (
        after < len(moments)
        and moments[after] - record.seconds <= SOON_SECONDS
    )
    return after if is_soon else None
  before = bisect.bisect_right(moments, record.seconds) - 1
  return before if before >= 0 else None


def _with_what_followed(
    record: records_lib.Record, attempt: records_lib.Record
) -> records_lib.Record:
  after = attempt.seconds - record.seconds
  later = 'at once' if after < _AT_ONCE_SECONDS else f'{after:.0f} s later'
  return dataclasses.replace(
      record,
      text=f'{record.text.rstrip(".")}. Attempt {attempt.value:.0f} began '
      f'{later}',
  )
