# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A ledger that books the wall time of a run under kinds, by spans."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import difflib
import threading
import time

from t5wild.vitals import records as records_lib
from t5wild.vitals import run_clock

KINDS = (
    'startup',  # imports, configuration, device and process start
    'compile',
    'init',  # compiling and making a first state from scratch
    'restore',
    'data_wait',  # the loop waits for its next batch
    'step',  # dispatching a step, and waiting for the device
    'log',
    'evaluate',
    'save',  # only what blocks the loop
    'finish',  # waiting for savers and writers at the end
)
OTHER = 'other'
HUNG = 'hung'  # what a watchdog takes off the kind that was open
STALLED = 'stalled'  # the whole process stood still: stopped, or suspended
PRODUCTIVE = ('step',)
_MAX_LOOKS = 100


class Ledger:
  """Books wall time: each second between start and now under one kind.

  Spans nest: the inner one's time is not the outer one's. What no span covers
  is `other`. Made for one thread (the loop's): a span opened on another
  thread is refused, since two threads' seconds do not add up to wall time.
  """

  def __init__(
      self,
      *,
      kinds: Sequence[str] = KINDS,
      clock: Callable[[], float] = time.monotonic,
      start: float | None = None,
  ):
    """Starts the ledger.

    Args:
      kinds: names that spans may have.
      clock: seconds, never running backwards.
      start: reading of `clock` at which the run began; None = now.
    """
    self._clock = clock
    self._thread = threading.get_ident()
    now = clock()
    self._start = now if start is None else start
    self._mark = self._start
    self._version = 0
    self._open: list[str] = [OTHER]
    self._seconds = dict.fromkeys((*kinds, OTHER), 0.0)
    self._taken = dict(self._seconds)

  @contextlib.contextmanager
  def span(self, kind: str) -> Iterator[None]:
    """Books the time of a `with` block under `kind`."""
    self._check(kind)
    self._book()
    self._open.append(kind)
    try:
      yield
    finally:
      self._book()
      self._open.pop()

  def add(self, kind: str, seconds: float) -> None:
    """Moves seconds already booked as `other` (or unbooked) to `kind`.

    For times known only from elsewhere, such as a compilation's.
    """
    self._check(kind)
    self._book()
    self._seconds[kind] += seconds
    self._seconds[self._open[-1]] -= seconds

  def seconds(self) -> dict[str, float]:
    """Seconds of each kind since the start; they add up to the wall time."""
    if threading.get_ident() == self._thread:
      self._book()
    return dict(self._seconds)

  def open_kind(self) -> str:
    """The kind that is being booked now; for any thread."""
    return self._open[-1]

  def look(self) -> dict[str, float]:
    """As `seconds`, from any thread, the span under way included."""
    for _ in range(_MAX_LOOKS):
      version, mark, kind = self._version, self._mark, self._open[-1]
      seconds = dict(self._seconds)
      # Booked meanwhile: what was read does not belong together.
      if version == self._version and not version % 2:
        break
    seconds[kind] += self._clock() - mark
    return seconds

  def take(self) -> dict[str, float]:
    """Seconds of each kind since the last `take`, or the start."""
    now = self.seconds()
    taken = {kind: now[kind] - self._taken[kind] for kind in now}
    self._taken = now
    return taken

  def goodput(self, *, productive: Sequence[str] = PRODUCTIVE) -> float:
    """Share of the wall time that went to productive kinds."""
    seconds = self.seconds()
    total = sum(seconds.values())
    return sum(seconds[kind] for kind in productive) / total if total else 0.0

  def records(
      self, *, step: int, host: int, now: float | None = None
  ) -> list[records_lib.Record]:
    """The ledger as records `goodput/KIND_seconds` and `goodput/fraction`."""
    now = run_clock.now() if now is None else now
    rows = [
        records_lib.Record(
            step, now, host, f'goodput/{kind}_seconds', value, 'seconds'
        )
        for kind, value in self.seconds().items()
    ]
    rows.append(
        records_lib.Record(
            step, now, host, 'goodput/fraction', self.goodput(), ''
        )
    )
    return rows

  def _book(self) -> None:
    now = self._clock()
    self._version += 1  # odd while the parts do not fit, for `look`
    self._seconds[self._open[-1]] += now - self._mark
    self._mark = now
    self._version += 1

  def _check(self, kind: str) -> None:
    if kind not in self._seconds or kind == OTHER:
      known = [name for name in self._seconds if name != OTHER]
      near = difflib.get_close_matches(kind, known, n=1)
      hint = f' Did you mean {near[0]!r}?' if near else ''
      raise ValueError(
          f'{kind!r} is no kind of time; expected one of {known}.{hint} Add '
          'new ones with Ledger(kinds=...).'
      )
    if threading.get_ident() != self._thread:
      raise RuntimeError(
          f'a span {kind!r} was opened on thread '
          f'{threading.current_thread().name!r}; expected the thread that made '
          'the ledger; give each thread a ledger of its own.'
      )
