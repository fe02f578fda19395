# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds out that a whole process stood still: stopped, or its machine was.

Who is stopped cannot look at a clock. A thread that wakes far too late, in a
process that used no processor meanwhile, has been.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import time

from t5wild.vitals import goodput
from t5wild.vitals import records as records_lib
from t5wild.vitals import run_clock

EVENT = 'watchdog/stalled'
# A poll so late was not merely waiting for its turn.
LATE_SECONDS = 5.0
# Of the time that passed: a long call that holds Python's lock uses more.
_IDLE_SHARE = 0.1
_THREADS = ('self', 'thread-self')  # the main one, and who asks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stall:
  """One stretch of time in which the process did not run.

  Attributes:
    seconds: how long.
    suspended_seconds: part of it in which the machine was suspended.
    queued_seconds: part of it in which a thread was ready and got no processor.
    kind: what the ledger had booked it as.
    ended_at: wall clock at its end, seconds since 1970.
  """

  seconds: float
  suspended_seconds: float
  queued_seconds: float
  kind: str
  ended_at: float

  def __str__(self) -> str:
    """One line for a person."""
    what = (
        'it was stopped from outside (SIGSTOP, Ctrl-Z, a frozen container or '
        "virtual machine), or waited in one call that holds Python's lock"
    )
    if self.suspended_seconds > self.seconds / 2:
      what = 'its machine was suspended'
    elif self.queued_seconds > self.seconds / 2:
      what = 'it got no processor, since others used all of them'
    return (
        f'the whole process stood still for {self.seconds:.1f} s in '
        f'{self.kind!r} and used no processor: {what}'
    )


class Stalls:
  """Looks at the clocks, poll by poll; for one thread."""

  def __init__(self, ledger: goodput.Ledger):
    """Takes the ledger whose seconds are to be put right."""
    self._ledger = ledger
    self._booked: dict[str, float] = {}
    self._suspended = 0.0
    self._read()

  def _read(self) -> None:
    self._monotonic = time.monotonic()
    self._boot = run_clock.steady()
    self._cpu = time.process_time()
    self._queued = {name: _queued(name) for name in _THREADS}
    self._seconds = self._ledger.look()

  def poll(self) -> tuple[float, Stall | None]:
    """Call it all the time.

    Returns:
      How long ago the last call was, and the stall since then, if any.
    """
    monotonic, boot, cpu = self._monotonic, self._boot, self._cpu
    seconds, queued = self._seconds, self._queued
    self._read()
    gap = self._boot - boot
    if gap < LATE_SECONDS or self._cpu - cpu > gap * _IDLE_SHARE:
      return gap, None
    grown = {k: v - seconds.get(k, 0.0) for k, v in self._seconds.items()}
    kind = max(grown, key=grown.__getitem__)
    ran = self._monotonic - monotonic
    booked = min(ran, max(0.0, grown[kind]))
    self._booked[kind] = self._booked.get(kind, 0.0) + booked
    self._suspended += gap - ran
    return gap, Stall(
        seconds=gap, suspended_seconds=gap - ran, kind=kind,
        queued_seconds=max(
            self._queued[name] - queued[name] for name in _THREADS
        ),
        ended_at=run_clock.now(),
    )  # fmt: skip

  def corrected(self, seconds: Mapping[str, float]) -> dict[str, float]:
    """The ledger's seconds, with stalls as what they were; for any thread."""
    found = dict(seconds)
    stalled = self._suspended
    for kind, booked in list(self._booked.items()):
      found[kind] -= booked
      stalled += booked
    if stalled:
      found[goodput.STALLED] = stalled
    return found


def _queued(thread: str) -> float:
  """Seconds that a thread was ready to run and did not, in all."""
  try:
    with open(f'/proc/{thread}/schedstat', encoding='ascii') as file:
      return int(file.read().split()[1]) * 1e-9
  except (OSError, ValueError, IndexError):
    return 0.0


def of_others(
    events: Iterable[records_lib.Record],
) -> list[tuple[float, float]]:
  """When processes other than 0 stood still, and it did not; in wall clock.

  Process 0 keeps the books and has its own stalls in them already.
  """
  found = sorted(
      (event.seconds - event.value, event.seconds, event.host)
      for event in events
      if event.name == EVENT
  )
  own = [(start, end) for start, end, host in found if host == 0]
  free: list[tuple[float, float]] = []
  for start, end, host in found:
    if host != 0:
      start = max(start, free[-1][1]) if free else start
      free += _without(start, end, own)
  return free


def _without(
    start: float, end: float, taken: Iterable[tuple[float, float]]
) -> list[tuple[float, float]]:
  """What is left of a stretch of time; `taken` is in order."""
  left = []
  for begin, until in taken:
    if begin > start:
      left.append((start, min(begin, end)))
    start = max(start, until)
  left.append((start, end))
  return [(a, b) for a, b in left if b > a]
