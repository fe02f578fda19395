# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The one record format of a run: a JSON object a line, written and read.

A line is `{"step": 100, "seconds": 1764445463.1, "host": 0, "name":
"train/loss", "value": 2.5, "unit": "nats"}`. JSON has no word for numbers that
are not finite, so those are the strings "NaN", "Infinity" and "-Infinity". An
event has a `"text"` besides, where a number does not say it all.
"""

from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import json
import logging
import math
import os
import queue
import threading

# What progress, plots and reports show as the loss, within a collection.
LOSS = 'loss_per_nonpadding_target_token'

_STOP = object()
_NON_FINITE = {'NaN', 'Infinity', '-Infinity'}


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
  """One number that a run reports.

  Attributes:
    step: number of finished updates it belongs to.
    seconds: wall clock time, seconds since 1970.
    host: index of the process that wrote it.
    name: slash-separated, e.g. `train/loss`, `training_eval/TASK/accuracy`.
    value: the number.
    unit: e.g. `seconds`, `bytes`, `tokens/second`; empty if it has none.
    text: what an event says in words; most records have none.
  """

  step: int
  seconds: float
  host: int
  name: str
  value: float
  unit: str = ''
  text: str = ''


def to_line(record: Record) -> str:
  """A record as one line of JSON, with its line end."""
  fields = dataclasses.asdict(record)
  if not record.text:
    del fields['text']
  value = float(record.value)
  if math.isnan(value):
    fields['value'] = 'NaN'
  elif math.isinf(value):
    fields['value'] = 'Infinity' if value > 0 else '-Infinity'
  else:
    fields['value'] = int(value) if value.is_integer() else value
  return json.dumps(fields, separators=(',', ':')) + '\n'


def from_line(line: str) -> Record | None:
  """The record of a line; None if the line is no whole record."""
  try:
    fields = json.loads(line)
    value = fields['value']
    if isinstance(value, str) and value not in _NON_FINITE:
      return None
    return Record(
        step=int(fields['step']),
        seconds=float(fields['seconds']),
        host=int(fields['host']),
        name=str(fields['name']),
        value=float(value),
        unit=str(fields['unit']),
        text=str(fields['text']) if 'text' in fields else '',
    )
  except (ValueError, TypeError, KeyError):
    return None


def read_records(path: str | os.PathLike[str]) -> Iterator[Record]:
  """Yields the whole records of a file in their order.

  Lines that are no records (a killed process may leave half of one) are
  skipped, and told once at the end.
  """
  skipped = 0
  with open(path, encoding='utf-8', errors='replace') as lines:
    for line in lines:
      record = from_line(line)
      if record is None:
        skipped += bool(line.strip())
      else:
        yield record
  if skipped:
    logging.warning('%s: skipped %d lines that are no records', path, skipped)


def series(
    records: Iterable[Record], name: str, *, host: int = 0
) -> list[Record]:
  """The history of one name, in order of steps, one record a step.

  A run that was killed and resumed passes some steps twice: the later record
  counts.
  """
  by_step = {
      record.step: record
      for record in records
      if record.name == name and record.host == host
  }
  return [by_step[step] for step in sorted(by_step)]


class RecordWriter:
  """Appends records to a file from a thread of its own.

  The caller never waits for the disk. Lines are written whole by single
  appending writes; a half line left by a killed process is closed first, so it
  spoils no record of ours. A disk that refuses to take records is reported
  (once until it takes them again), the records are counted in `dropped`, and
  the run goes on. A file that is moved or removed meanwhile, as by a rotation
  of logs, is begun anew in the same folder, wherever that is by then.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Creates the file and its folder if absent, and starts the thread.

    Args:
      path: of a local file.

    Raises:
      OSError: the file cannot be opened for writing.
    """
    self.path = os.fspath(path)
    self.dropped = 0
    folder, self._name = os.path.split(self.path)
    os.makedirs(folder or '.', exist_ok=True)
    self._folder = os.open(folder or '.', os.O_RDONLY | os.O_DIRECTORY)
    try:
      self._file = self._open()
    except OSError:
      os.close(self._folder)
      raise
    self._close_half_line()
    self._queue: queue.SimpleQueue = queue.SimpleQueue()
    self._closed = False
    self._failing = False
    self._thread = threading.Thread(
        target=self._run, name='record_writer', daemon=True
    )
    self._thread.start()

  def write(self, records: Iterable[Record]) -> None:
    """Queues records; returns at once."""
    if self._closed:
      raise ValueError(
          f'the record writer of {self.path} is closed; expected an open one; '
          'write before close().'
      )
    self._queue.put(list(records))

  def flush(self) -> None:
    """Waits until all that was queued is written, or was refused."""
    done = threading.Event()
    self._queue.put(done)
    done.wait()

  def close(self) -> None:
    """Writes what is queued and ends the thread; more calls do nothing."""
    if self._closed:
      return
    self._closed = True
    self._queue.put(_STOP)
    self._thread.join()
    os.close(self._file)
    os.close(self._folder)

  def _open(self) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    return os.open(self._name, flags, 0o644, dir_fd=self._folder)

  def _begin_anew_if_gone(self) -> None:
    is_there = False
    with contextlib.suppress(FileNotFoundError):
      there = os.stat(self._name, dir_fd=self._folder)
      is_there = os.path.samestat(there, os.fstat(self._file))
    if is_there:
      return
    try:
      file = self._open()
    except FileNotFoundError:
      return  # the folder is removed: the run's own watch tells
    os.close(self._file)
    self._file = file
    self._close_half_line()
    logging.warning(
        '%s was moved or removed: what is reported from here on is in a new '
        'file.',
        self.path,
    )

  def _close_half_line(self) -> None:
    size = os.fstat(self._file).st_size
    if size and os.pread(self._file, 1, size - 1) != b'\n':
      os.write(self._file, b'\n')

  def _run(self) -> None:
    while True:
      item = self._queue.get()
      if item is _STOP:
        return
      if isinstance(item, threading.Event):
        item.set()
      else:
        self._append(item)

  def _append(self, records: list[Record]) -> None:
    data = ''.join(map(to_line, records)).encode()
    try:
      self._begin_anew_if_gone()
      written = os.write(self._file, data)
      if written < len(data):
        # A disk that fills up takes part of it: close the half line and keep
        # what was whole.
        self._close_half_line()
        raise OSError(f'wrote {written} of {len(data)} bytes')
      self._failing = False
    except OSError as error:
      self.dropped += len(records)
      if not self._failing:
        logging.error(
            '%s does not take records (%s); the run goes on without them: '
            'free some space, or point MODEL_DIR elsewhere.',
            self.path,
            error,
        )
      self._failing = True
