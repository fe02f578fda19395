# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers of a run over its steps, from whatever it left on disk."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import functools
import glob
import math
import os
import re

import numpy as np

from t5wild import run_dir as run_dir_lib
from t5wild.reports import event_files
from t5wild.reports import held_out
from t5wild.reports import record_columns
from t5wild.vitals import records as records_lib
from t5wild.vitals import redaction
from t5wild.vitals import time_ledgers

Column = record_columns.Column

# Every start of a training process writes this, at the step it starts from.
_START = 'train/timing/init_or_restore_seconds'
_OF_A_START = (
    _START,
    'train/timing/compile_seconds',
    'train/data/position_is_exact',
)
_END = 'goodput/fraction'
_DECODED = 'inference_eval'
_HOST_FILE = re.compile(r'metrics\.process_(\d+)\.jsonl\Z')


class NoRunError(ValueError):
  """There is no run where one was named; the message has three parts."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
  """One start of the training process.

  Attributes:
    step: finished updates it began with.
    seconds: wall clock time of its first record.
    last_seconds_before: clock of the last record of the process before; None
      for the first.
    last_step_before: the furthest step of the process before; None likewise.
  """

  step: int
  seconds: float
  last_seconds_before: float | None = None
  last_step_before: int | None = None

  @property
  def num_steps_again(self) -> int:
    """Updates that were done before and are done once more."""
    if self.last_step_before is None:
      return 0
    return max(0, self.last_step_before - self.step)


@dataclasses.dataclass(frozen=True)
class History:
  """All numbers of one run.

  Attributes:
    path: of the run.
    columns: by name, as they were written; see `series`.
    texts: by name, from event files.
    source: 'records' (metrics.jsonl) or 'events' (TensorBoard).
    num_broken_lines: lines of metrics.jsonl that are no records.
    num_torn_files: event files that end in the middle of an event.
    hosts: what other processes than the first have written, by their index.
    events: what befell the run, from events.jsonl.
  """

  path: str
  columns: dict[str, Column]
  source: str
  texts: dict[str, list[tuple[int, str]]] = dataclasses.field(
      default_factory=dict
  )
  num_broken_lines: int = 0
  num_torn_files: int = 0
  hosts: dict[int, dict[str, Column]] = dataclasses.field(default_factory=dict)
  events: Sequence[records_lib.Record] = ()

  def series(self, name: str) -> Column | None:
    """A name's numbers in order of steps, the latest record of each step.

    A run that was killed and resumed passes some steps twice.
    """
    column = self.columns.get(name)
    return None if column is None else in_order_of_steps(column)

  def matching(self, pattern: str) -> list[str]:
    """Names that a regular expression matches whole, in order."""
    return [name for name in self.columns if re.fullmatch(pattern, name)]

  @functools.cached_property
  def _timed(self) -> Sequence[Column]:
    """The columns whose records have a clock."""
    return [
        column
        for name, column in self.columns.items()
        if not name.startswith(held_out.PREFIX)
    ]

  @functools.cached_property
  def first_seconds(self) -> float:
    """Wall clock time of the earliest record."""
    return min(float(c.seconds.min()) for c in self._timed)

  @functools.cached_property
  def last_seconds(self) -> float:
    """Wall clock time of the latest record."""
    return max(float(c.seconds.max()) for c in self._timed)

  @functools.cached_property
  def last_step(self) -> int:
    """Updates that the latest process has finished, as far as was written."""
    since = self.starts[-1].seconds if self.starts else -math.inf
    reached = [
        int(column.steps[column.seconds >= since].max())
        for column in self._timed
        if column.seconds.max() >= since
    ]
    return max(reached, default=0)

  @functools.cached_property
  def starts(self) -> Sequence[Start]:
    """The starts of the training process, in order."""
    column = self.columns.get(_START)
    if column is None:
      return ()
    starts: list[Start] = []
    for step, seconds in zip(column.steps, column.seconds, strict=True):
      before = (None, None)
      if starts:
        before = self.last_between(starts[-1].seconds, float(seconds))
      starts.append(
          Start(
              step=int(step),
              seconds=float(seconds),
              last_seconds_before=before[0],
              last_step_before=before[1],
          )
      )
    return tuple(starts)

  @functools.cached_property
  def attempts(self) -> Sequence[time_ledgers.Attempt]:
    """The books of its processes, in order; none where they kept none."""
    return time_ledgers.read_all(run_dir_lib.RunDir(self.path))

  @functools.cached_property
  def ended(self) -> float | None:
    """When the latest process ended in order; None if it has not."""
    column = self.columns.get(_END)
    if column is None or column.seconds[-1] < self.last_seconds - 1:
      return None
    return float(column.seconds[-1])

  @functools.cached_property
  def clocks(self) -> Sequence[Column]:
    """One column of each set of records that were written together."""
    found = {}
    for name, column in self.columns.items():
      if name not in _OF_A_START and not name.startswith(held_out.PREFIX):
        ends = (float(column.seconds[0]), float(column.seconds[-1]))
        found.setdefault((len(column.steps), *ends), column)
    return tuple(found.values())

  def step_at(self, seconds: float) -> int:
    """Finished updates at a moment, as far as was written by then.

    Of the process that ran: a restart is behind the one before it.
    """
    since = [s.seconds for s in self.starts if s.seconds <= seconds + 1e-3]
    _, step = self.last_between(
        since[-1] if since else -math.inf, seconds + 1e-3
    )
    return step or 0

  def last_between(
      self, since: float, until: float
  ) -> tuple[float | None, int | None]:
    """Clock of the last record between two moments, and the step reached."""
    last, step = None, None
    for column in self.clocks:
      rows = np.flatnonzero(
          (column.seconds >= since) & (column.seconds < until)
      )
      if len(rows):
        last = max(last or 0.0, float(column.seconds[rows].max()))
        step = max(step or 0, int(column.steps[rows].max()))
    return last, step


def in_order_of_steps(column: Column) -> Column:
  """The latest record of each step, in order of steps."""
  order = np.argsort(column.steps, kind='stable')
  steps = column.steps[order]
  is_last = np.append(steps[1:] != steps[:-1], True) if len(steps) else order
  kept = order[is_last]
  return dataclasses.replace(
      column,
      steps=column.steps[kept],
      seconds=column.seconds[kept],
      values=column.values[kept],
  )


def read_history(path: str) -> History:
  """Reads a run, finished or not, broken or not.

  Args:
    path: of the run: a folder with metrics.jsonl, or one with event files.

  Raises:
    NoRunError: there is none, or nothing in it.
  """
  return Reader(path).read(is_last=True)


class Reader:
  """Reads a run again and again, and of its records only what is new."""

  def __init__(self, path: str):
    """Looks whether there is something to read.

    Raises:
      NoRunError: there is no such folder.
    """
    self._run = run_dir_lib.RunDir(path)
    _check(self._run)
    self._follower = record_columns.Follower(self._run.metrics_jsonl)

  def read(self, *, is_last: bool = False) -> History:
    """The run as it is now.

    Args:
      is_last: whether a half line at the end is told as broken; else it is
        taken for one that is being written.

    Raises:
      NoRunError: there is nothing in it yet.
    """
    run = self._run
    if os.path.isfile(run.metrics_jsonl):
      columns = self._follower.read(is_last=is_last)
      if columns.by_name:
        return History(
            path=run.path,
            columns={**columns.by_name, **held_out.read_columns(run.path)},
            source='records',
            num_broken_lines=columns.num_broken_lines,
            texts=_texts_beside(run),
            hosts=_other_hosts(run),
            events=_events(run),
        )
    return _from_event_files(run)


def _from_event_files(run: run_dir_lib.RunDir) -> History:
  try:
    events = event_files.read_events(run.path)
  except ModuleNotFoundError as error:
    raise NoRunError(
        f'The event files of {run.path!r} cannot be read: {error}.\n'
        '  expected: the tensorboard package.\n'
        '  do: pip install tensorboard'
    ) from error
  if not events.by_name:
    raise NoRunError(_empty(run))
  heads = sorted({name.split('/')[0] for name in events.by_name})
  if len(heads) > 1 and not set(heads) & set(event_files.COLLECTIONS):
    raise NoRunError(
        f'{run.path!r} holds several runs: {", ".join(heads[:6])}\n'
        '  expected: the folder of one.\n'
        f'  do: name it, e.g. {run.join(heads[0])}'
    )
  return History(
      path=run.path,
      columns=events.by_name,
      source='events',
      texts=events.texts,
      num_torn_files=events.num_torn_files,
  )


def _check(run: run_dir_lib.RunDir) -> None:
  if run.is_bucket:
    raise NoRunError(
        f'{run.path!r} is in a bucket.\n'
        '  expected: a run on a local disk.\n'
        '  do: copy what is read first, without checkpoints, e.g. '
        f'gcloud storage rsync -r -x "checkpoint_.*" {run.path} my_run'
    )
  if not os.path.isdir(run.path):
    folder = os.path.dirname(run.path) or '.'
    found = sorted(glob.glob(os.path.join(folder, '*', 'metrics.jsonl')))
    runs = [os.path.dirname(path) for path in found]
    beside = f' Beside it are: {", ".join(runs[:5])}.' if runs else ''
    raise NoRunError(
        f'There is no run at {run.path!r}\n'
        '  expected: the MODEL_DIR of a run, a folder with metrics.jsonl or '
        f'with event files of TensorBoard.{beside}\n'
        '  do: correct the path; the working directory is '
        f'{os.getcwd()!r}.'
    )


def _empty(run: run_dir_lib.RunDir) -> str:
  names = sorted(os.listdir(run.path))
  held = f'it holds {", ".join(names[:6])}' if names else 'it is empty'
  befell = [event for event in _events(run) if event.text]
  last = f'\n  the last event: {befell[-1].text}' if befell else ''
  return redaction.redacted(
      f'There are no records in {run.path!r}: {held}{last}\n'
      '  expected: metrics.jsonl with at least one record, or event files of '
      'TensorBoard with a number.\n'
      '  do: name the MODEL_DIR itself, or let the run pass its first '
      'evaluation or stats_period.'
  )


def _events(run: run_dir_lib.RunDir) -> list[records_lib.Record]:
  if not os.path.isfile(run.events_jsonl):
    return []
  return list(records_lib.read_records(run.events_jsonl))


def _texts_beside(
    run: run_dir_lib.RunDir,
) -> dict[str, list[tuple[int, str]]]:
  """What evaluation by decoding wrote as text, which records have no room for.
  """
  folder = run.join(_DECODED)
  if not os.path.isdir(folder):
    return {}
  try:
    texts = event_files.read_events(folder, is_only_texts=True).texts
  except ModuleNotFoundError:
    return {}
  return {f'{_DECODED}/{name}': found for name, found in texts.items()}


def _other_hosts(run: run_dir_lib.RunDir) -> dict[int, dict[str, Column]]:
  hosts = {}
  for name in sorted(os.listdir(run.path)):
    match = _HOST_FILE.match(name)
    if match:
      host = int(match.group(1))
      columns = record_columns.read_columns(run.join(name), host=host)
      hosts[host] = columns.by_name
  return hosts
