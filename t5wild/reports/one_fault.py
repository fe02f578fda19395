# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Several records of one fault as one: what is said once is said whole.

A process that dies leaves its own words, then its supervisor writes that it saw
the end, how it took it, that it starts again, and with which attempt.
"""

from __future__ import annotations

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
  kept = []
  for place, record in enumerate(ordered):
    if record.name == ERROR and _next_exit(ordered[place:], record):
      continue
    if record.name.startswith(EXIT):
      errors = [
          each.text
          for each in ordered[:place]
          if each.name == ERROR
          and _next_exit(ordered[ordered.index(each):], each) is record
      ]
      if errors:
        record = dataclasses.replace(
            record, text=f'{record.text} In its own words: {errors[-1]}'
        )
    kept.append(record)
  return kept


def merged(records: Iterable[records_lib.Record]) -> list[records_lib.Record]:
  """The same, with the supervisor's other records of an exit in that one."""
  ordered = with_own_words(records)
  exits = [each for each in ordered if each.name.startswith(EXIT)]
  kept = [
      each
      for each in ordered
      if each.name not in (DETECTED, _RESTART, _ATTEMPT)
      or _exit_of(each, exits) is None
  ]
  return [
      _with_what_followed(each, ordered, exits) if each in exits else each
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


def _next_exit(
    later: Sequence[records_lib.Record], record: records_lib.Record
) -> records_lib.Record | None:
  """The exit that a record was soon followed by."""
  for each in later:
    if each.seconds - record.seconds > SOON_SECONDS:
      return None
    if each.name.startswith(EXIT):
      return each
  return None


def _exit_of(
    record: records_lib.Record, exits: Sequence[records_lib.Record]
) -> records_lib.Record | None:
  """The exit that a supervisor's record is about."""
  if record.name == DETECTED:
    later = [each for each in exits if each.seconds >= record.seconds]
    return _next_exit(later, record)
  before = [each for each in exits if each.seconds <= record.seconds]
  return before[-1] if before else None


def _with_what_followed(
    record: records_lib.Record,
    ordered: Sequence[records_lib.Record],
    exits: Sequence[records_lib.Record],
) -> records_lib.Record:
  attempts = [
      each
      for each in ordered
      if each.name == _ATTEMPT and _exit_of(each, exits) is record
  ]
  if not attempts:
    return record
  after = attempts[0].seconds - record.seconds
  later = 'at once' if after < _AT_ONCE_SECONDS else f'{after:.0f} s later'
  return dataclasses.replace(
      record,
      text=f'{record.text.rstrip(".")}. Attempt {attempts[0].value:.0f} began '
      f'{later}',
  )
