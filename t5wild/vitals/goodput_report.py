# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time and money of a run went, over all its attempts. Pure."""

import collections
from collections.abc import Collection, Mapping, Sequence
import dataclasses

from t5wild.vitals import goodput
from t5wild.vitals import time_ledgers

LOST = 'lost_work'  # steps that a later attempt made again
DOWN = 'down'  # between two attempts
_ORDER = (
    'step', LOST, goodput.HUNG, goodput.STALLED, DOWN, 'startup', 'init',
    'restore', 'compile', 'data_wait', 'evaluate', 'save', 'log', 'finish',
    goodput.OTHER,
)  # fmt: skip
_SECONDS_PER_HOUR = 3600.0
# Books are written each second; so old, their process is gone.
_SILENT_SECONDS = 30.0
_KILLED = 'cut off'
_GOES_ON = 'going on'
# What an attempt does before its first step.
_BEFORE_STEPS = ('startup', 'init', 'restore', 'compile')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
  """The books of a run.

  Attributes:
    seconds: wall seconds by kind; they add up to the run's wall time.
    device_seconds: the same, each times the devices that it kept.
    num_attempts: how often the run was started.
    causes: kind of failure to how often, where a supervisor wrote it down.
    ends: how an attempt ended to how many did, by their books.
    num_failures: attempts that ended unasked.
    lost_steps: updates made more than once.
    steps: updates in the newest state.
    up_seconds: of all attempts together.
    recovery_seconds: from the end of an attempt that had more to do to the
      next one's steps.
    price_per_device_hour: None where nobody said.
  """

  seconds: Mapping[str, float]
  device_seconds: Mapping[str, float]
  num_attempts: int
  causes: Mapping[str, int]
  ends: Mapping[str, int]
  num_failures: int
  lost_steps: int
  steps: int
  up_seconds: float
  recovery_seconds: Sequence[float]
  price_per_device_hour: float | None


def make_report(
    attempts: Sequence[time_ledgers.Attempt],
    *,
    causes: Mapping[str, int] | None = None,
    told_ends: Collection[int] | None = None,
    price_per_device_hour: float | None = None,
    stalls: Sequence[tuple[float, float]] = (),
    now: float | None = None,
) -> Report:
  """Adds up the attempts of a run.

  Args:
    attempts: in order of time; at least one.
    causes: kinds of failures, from the supervisor's events; None without one.
      Attempts that no supervisor started, or whose supervisor died with them,
      are judged by their books.
    told_ends: numbers of the attempts that `causes` judges; None: of all.
    price_per_device_hour: None takes what the newest attempt was told.
    stalls: from when to when another process stood still, in wall clock; all
      others waited for it in their steps.
    now: wall clock, by which the newest attempt goes on still or was killed;
      None: it goes on, if its books say of no end.
  """
  seconds: collections.Counter[str] = collections.Counter()
  device_seconds: collections.Counter[str] = collections.Counter()

  def book(kind: str, amount: float, num_devices: int) -> None:
    seconds[kind] += amount
    device_seconds[kind] += amount * num_devices

  useful = _useful_steps(attempts)
  for attempt, kept in zip(attempts, useful, strict=True):
    made = attempt.made_steps
    for kind, amount in _seconds(attempt, stalls).items():
      if kind == 'step' and made:
        book(LOST, amount * (made - kept) / made, attempt.num_devices)
        amount *= kept / made
      book(kind, amount, attempt.num_devices)
  recovery = []
  recovering = 0.0
  failed = [_has_failed(attempt) for attempt in attempts]
  if attempts[-1].ended is None:
    failed[-1] = now is not None and now - attempts[-1].end > _SILENT_SECONDS
  for before, after in zip(attempts, attempts[1:], strict=False):
    down = max(0.0, after.start - before.end)
    book(DOWN, down, after.num_devices)
    if before.ended in (time_ledgers.DONE, time_ledgers.REFUSED):
      recovering = 0.0
      continue
    recovering += down
    recovering += sum(after.seconds.get(kind, 0.0) for kind in _BEFORE_STEPS)
    if 'step' in after.seconds:  # else the next one goes on recovering
      recovery.append(recovering)
      recovering = 0.0
  if price_per_device_hour is None:
    price_per_device_hour = attempts[-1].price_per_device_hour
  return Report(
      seconds=dict(seconds),
      device_seconds=dict(device_seconds),
      num_attempts=len(attempts),
      causes=dict(causes or {}),
      ends=collections.Counter(
          attempt.ended or (_KILLED if has_failed else _GOES_ON)
          for attempt, has_failed in zip(attempts, failed, strict=True)
      ),
      num_failures=_num_failures(attempts, failed, causes, told_ends),
      lost_steps=sum(a.made_steps for a in attempts) - sum(useful),
      steps=next((a.step for a in reversed(attempts) if a.step), 0),
      up_seconds=sum(sum(a.seconds.values()) for a in attempts),
      recovery_seconds=recovery,
      price_per_device_hour=price_per_device_hour,
  )


def _seconds(
    attempt: time_ledgers.Attempt, stalls: Sequence[tuple[float, float]]
) -> dict[str, float]:
  """An attempt's books, less what its steps waited for who stood still."""
  seconds = dict(attempt.seconds)
  waited = sum(
      max(0.0, min(end, attempt.end) - max(start, attempt.start))
      for start, end in stalls
  )
  waited = min(waited, seconds.get('step', 0.0))
  if waited:
    seconds['step'] -= waited
    seconds[goodput.STALLED] = seconds.get(goodput.STALLED, 0.0) + waited
  return seconds


def _has_failed(attempt: time_ledgers.Attempt) -> bool:
  return attempt.ended not in time_ledgers.IN_ORDER


def _num_failures(
    attempts: Sequence[time_ledgers.Attempt],
    failed: Sequence[bool],
    causes: Mapping[str, int] | None,
    told_ends: Collection[int] | None,
) -> int:
  """As a supervisor told them, and those of attempts that had none."""
  by_books = sum(
      has_failed
      for attempt, has_failed in zip(attempts, failed, strict=True)
      if causes is None
      or not attempt.number
      or (told_ends is not None and attempt.number not in told_ends)
  )
  return by_books + sum((causes or {}).values())


def _useful_steps(attempts: Sequence[time_ledgers.Attempt]) -> list[int]:
  """Of each attempt, the steps that no later one made again."""
  useful = []
  until = None
  for attempt in reversed(attempts):
    end = attempt.step if until is None else min(attempt.step, until)
    useful.append(max(0, end - attempt.lowest_step))
    # One that made none has none again, and may not know where it began.
    if attempt.made_steps:
      first = attempt.lowest_step
      until = first if until is None else min(until, first)
  return useful[::-1]


def as_text(report: Report) -> str:
  """The report as a table for a person."""
  total = sum(report.seconds.values())
  price = report.price_per_device_hour
  knows_devices = any(report.device_seconds.values())
  if not knows_devices:
    price = None
  lines = [_head(report), '']
  lines.append(
      f'{"":<12}{"hours":>12}{"%":>8}' + ('' if price is None else
                                            f'{"money":>12}')
  )  # fmt: skip
  known = [kind for kind in _ORDER if kind in report.seconds]
  others = sorted(set(report.seconds) - set(_ORDER))
  for kind in (*known, *others):
    lines.append(
        _row(
            kind, report.seconds[kind], total, price,
            report.device_seconds[kind],
        )  # fmt: skip
    )
  lines.append(
      _row('total', total, total, price, sum(report.device_seconds.values()))
  )
  lines += ['', *_tail(report)]
  if not knows_devices:
    lines.append('No money: no attempt came so far as to tell its devices.')
  elif price is None:
    lines.append(
        'No money: give --price_per_device_hour, or set '
        'watchdog.Watchdog.price_per_device_hour in gin.'
    )
  return '\n'.join(lines)


def _row(kind, seconds, total, price, device_seconds) -> str:
  share = 100 * seconds / total if total else 0.0
  text = f'{kind:<12}{seconds / _SECONDS_PER_HOUR:>12.4f}{share:>8.1f}'
  if price is not None:
    text += f'{device_seconds / _SECONDS_PER_HOUR * price:>12.2f}'
  return text


def _head(report: Report) -> str:
  causes = ', '.join(
      f'{kind} {number}' for kind, number in sorted(report.causes.items())
  )
  told = f' ({causes})' if causes else ''
  ends = ', '.join(f'{n} {end}' for end, n in sorted(report.ends.items()))
  return (
      f'{_count(report.num_attempts, "attempt")} ({ends}), '
      f'{_count(report.num_failures, "failure")}{told}, '
      f'{_count(report.steps, "step")}, {report.lost_steps} of them made again'
  )


def _count(number: int, noun: str) -> str:
  return f'{number} {noun}' + ('' if number == 1 else 's')


def _tail(report: Report) -> list[str]:
  if not report.num_failures:
    return ['No failure.']
  between = report.up_seconds / report.num_failures
  lines = [
      f'mean time between failures  {between / _SECONDS_PER_HOUR:.4f} h'
  ]
  if report.recovery_seconds:
    mean = sum(report.recovery_seconds) / len(report.recovery_seconds)
    lines.append(f'mean time to the next step  {mean:.1f} s')
  return lines
