# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time of each attempt of a run went: one file each, kept up to date.

Replaced every second, so that a process killed at any moment leaves its books
behind, a second old at most.
"""

from collections.abc import Mapping
import dataclasses
import glob
import os
import time

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import goodput
from t5wild.vitals import heartbeats
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import supervised

_PREFIX = 'attempt'
_ENDED = 'attempt/ended'
# How an attempt ended, as its books say it; a process that was killed has said
# nothing.
DONE = 'done'
STOPPED = 'stopped'  # by Ctrl-C or SIGTERM, in order
REFUSED = 'refused'  # its recipe was
FAILED = 'failed'
HUNG = 'hung'
IN_ORDER = frozenset({DONE, STOPPED, REFUSED})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attempt:
  """The books of one process of the run, from its start to its last second.

  Attributes:
    start: wall clock at its start, seconds since 1970.
    end: wall clock when the books were last written.
    seconds: seconds of each kind; they add up to `end - start`.
    first_step: updates in the state it began with.
    step: updates at the end.
    num_devices: of the whole run.
    price_per_device_hour: None where it was not told.
    number: of the supervisor's attempt; 0 without a supervisor.
    ended: how, e.g. `DONE`; None where it goes on, or was killed.
    rewound_steps: steps that it took back itself, all rewinds together.
    rewound_to: the lowest step that it went back to; None without a rewind.
  """

  start: float
  end: float
  seconds: Mapping[str, float]
  first_step: int
  step: int
  num_devices: int
  price_per_device_hour: float | None = None
  number: int = 0
  ended: str | None = None
  rewound_steps: int = 0
  rewound_to: int | None = None

  @property
  def made_steps(self) -> int:
    """Steps that it made, those made again included."""
    return self.step - self.first_step + self.rewound_steps

  @property
  def lowest_step(self) -> int:
    """Updates in the oldest state that it trained from."""
    if self.rewound_to is None:
      return self.first_step
    return min(self.first_step, self.rewound_to)


def open_ledger() -> goodput.Ledger:
  """Books from the start of the process on, where a supervisor told it."""
  age = supervised.take_age()
  if age is None:
    return goodput.Ledger()
  ledger = goodput.Ledger(start=time.monotonic() - age)
  ledger.add('startup', age)
  return ledger


class Books:
  """Writes the file of this process; only process 0 has one."""

  def __init__(
      self,
      run_dir: run_dir_lib.RunDir,
      *,
      process: int,
      num_devices: int,
      price_per_device_hour: float | None,
      attempt: int,
  ):
    """Names the file; writes nothing yet.

    Raises:
      ValueError: For a price below nothing.
    """
    if price_per_device_hour is not None and not price_per_device_hour >= 0:
      raise ValueError(
          f'price_per_device_hour is {price_per_device_hour!r}, expected 0 or '
          'more, or None: set watchdog.Watchdog.price_per_device_hour to what '
          'one device costs in an hour'
      )
    self._is_writer = process == 0
    self._folder = run_dir.time_ledgers
    self._name = f'{_PREFIX}_{time.time_ns() // 1_000_000}_{os.getpid()}.jsonl'
    self._facts = {
        'num_devices': float(num_devices),
        'number': float(attempt),
    }
    if price_per_device_hour is not None:
      self._facts['price_per_device_hour'] = price_per_device_hour

  def write(
      self,
      seconds: Mapping[str, float],
      *,
      first_step: int,
      step: int,
      hung: tuple[str, float] = ('', 0.0),
      ended: str | None = None,
      rewound: tuple[int, int] | None = None,
  ) -> None:
    """Replaces the file.

    Args:
      seconds: of each kind, as the ledger has them now.
      first_step: updates in the first state.
      step: updates now.
      hung: a kind, and how much of it was waiting for nothing.
      ended: how the attempt ended; None while it goes on.
      rewound: steps that were taken back, and the lowest it went back to.

    Raises:
      OSError: it cannot be written.
    """
    if not self._is_writer:
      return
    now = run_clock.now()
    seconds = dict(seconds)
    kind, lost = hung
    if lost:
      lost = min(lost, seconds[kind])
      seconds[kind] -= lost
      seconds[goodput.HUNG] = lost
    rows = {
        **self._facts,
        'start': now - sum(seconds.values()),
        'end': now,
        'first_step': float(first_step),
        'step': float(step),
    }
    if rewound is not None:
      rows['rewound_steps'], rows['rewound_to'] = map(float, rewound)
    lines = [
        records.to_line(records.Record(step, now, 0, f'attempt/{name}', value))
        for name, value in rows.items()
    ]
    lines += [
        records.to_line(
            records.Record(
                step, now, 0, f'goodput/{name}_seconds', value, 'seconds'
            )
        )
        for name, value in seconds.items()
    ]
    if ended is not None:
      lines.append(
          records.to_line(
              records.Record(step, now, 0, _ENDED, 1.0, text=ended)
          )
      )
    heartbeats.replace(os.path.join(self._folder, self._name), ''.join(lines))


def read(path: str | os.PathLike[str]) -> Attempt | None:
  """The books in a file; None if they are not whole."""
  facts: dict[str, float] = {}
  seconds: dict[str, float] = {}
  ended = None
  for record in records.read_records(path):
    group, name = record.name.split('/', 1)
    if record.name == _ENDED:
      ended = record.text
    elif group == 'attempt':
      facts[name] = record.value
    else:
      seconds[name.removesuffix('_seconds')] = record.value
  try:
    return Attempt(
        seconds=seconds,
        start=facts.pop('start'),
        end=facts.pop('end'),
        first_step=int(facts.pop('first_step')),
        step=int(facts.pop('step')),
        num_devices=int(facts.pop('num_devices')),
        number=int(facts.pop('number')),
        rewound_steps=int(facts.pop('rewound_steps', 0)),
        rewound_to=_step_or_none(facts.pop('rewound_to', None)),
        ended=ended,
        **facts,
    )
  except (KeyError, TypeError):
    return None


def _step_or_none(told: float | None) -> int | None:
  return None if told is None else int(told)


def read_all(run_dir: run_dir_lib.RunDir) -> list[Attempt]:
  """The books of all attempts of a run, in order of time."""
  pattern = os.path.join(
      glob.escape(run_dir.time_ledgers), f'{_PREFIX}_*.jsonl'
  )
  found = filter(None, map(read, glob.glob(pattern)))
  return sorted(found, key=lambda attempt: attempt.start)
