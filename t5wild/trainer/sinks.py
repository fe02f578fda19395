# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where records go: a JSONL file, TensorBoard, a progress line."""

from collections.abc import Callable, Sequence
import contextlib
import os
import sys
import threading
import time
from typing import Protocol, TextIO

from t5wild.vitals import records as records_lib
from t5wild.vitals import run_clock

LOSS = records_lib.LOSS
# Share of an interval that went into waiting for data; its text says for what.
DATA_WAIT_SHARE = 'timing/data_wait_share'
_FLUSH_SECONDS = 10
_SMOOTHING = 0.7  # weight of the past in the step time that remains from


class Sink(Protocol):
  """Takes records and texts; called from one background thread at a time."""

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Takes the records of one report."""

  def write_text(self, step: int, name: str, text: str) -> None:
    """Takes a text, such as the operative config."""

  def flush(self) -> None:
    """Waits until what was taken is out."""

  def close(self) -> None:
    """Flushes and lets go of files; more calls do nothing."""


class JsonlSink:
  """Appends records to a JSONL file; texts have files of their own."""

  def __init__(self, path: str):
    """Opens the file.

    Args:
      path: of a local file, e.g. `RunDir.metrics_jsonl`.
    """
    self._writer = records_lib.RecordWriter(path)

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Queues the records."""
    self._writer.write(records)

  def write_text(self, step: int, name: str, text: str) -> None:
    """Does nothing: records are numbers."""

  def flush(self) -> None:
    """Waits for the file."""
    self._writer.flush()

  def close(self) -> None:
    """Writes what is queued and closes the file."""
    self._writer.close()


class TensorBoardSink:
  """Writes TensorBoard events with tensorboardX.

  One folder per collection, as T5X has it: `MODEL_DIR/train` with the tag
  `loss` for the record `train/loss`.

  Events are written in the caller's thread: tensorboardX's own writer thread
  dies of a disk that is full, and then whoever writes waits for ever. After an
  OSError the next write begins a new file, since the old one may end in half an
  event; what that file still buffered is lost.
  """

  def __init__(self, directory: str, *, collection: str):
    """Opens the events file at the first write.

    Args:
      directory: folder of the collection, e.g. `RunDir.summaries('train')`.
      collection: records are named `COLLECTION/TAG`; others are left out.
    """
    self._directory = directory
    self._prefix = collection + '/'
    self._writer = None
    self._files = 0
    self._flushed = 0.0

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Writes the collection's records.

    Raises:
      OSError: the disk does not take them.
    """
    from tensorboardX import summary  # 0.3 s that only such a run pays

    for record in records:
      if record.name.startswith(self._prefix):
        tag = record.name.removeprefix(self._prefix)
        self._write(
            summary.scalar(tag, record.value), record.step, record.seconds
        )
    if time.monotonic() - self._flushed > _FLUSH_SECONDS:
      self.flush()

  def write_text(self, step: int, name: str, text: str) -> None:
    """Writes a text; TensorBoard reads it as Markdown."""
    from tensorboardX import summary

    self._write(summary.text(name, text), step, run_clock.now())

  def flush(self) -> None:
    """Waits for the events file."""
    self._flushed = time.monotonic()
    if self._writer is not None:
      with self._leaving_a_file_that_fails():
        self._writer.flush()

  def close(self) -> None:
    """Closes the events file."""
    if self._writer is not None:
      with self._leaving_a_file_that_fails():
        self._writer.close()
      self._writer = None

  def _write(self, summary, step: int, seconds: float) -> None:
    from tensorboardX.proto import event_pb2

    event = event_pb2.Event(summary=summary, step=step, wall_time=seconds)
    with self._leaving_a_file_that_fails():
      self._events().write_event(event)

  @contextlib.contextmanager
  def _leaving_a_file_that_fails(self):
    try:
      yield
    except OSError:
      self._writer = None
      raise

  def _events(self):
    if self._writer is None:
      from tensorboardX import event_file_writer

      os.makedirs(self._directory, exist_ok=True)
      # Unlike tensorboardX's own names, new within the same second too.
      suffix = f'.{os.getpid()}.{self._files}'
      self._files += 1
      self._writer = event_file_writer.EventsWriter(
          os.path.join(self._directory, 'events'), suffix
      )
    return self._writer


class ProgressSink:
  """Tells a person how the run is doing, one line a report.

  On a terminal the training line is rewritten in place; in a pipe or a file
  each report is a line of its own. Evaluations always keep theirs. The loss
  shown is per non-padding target token.
  """

  def __init__(
      self,
      *,
      total_steps: int,
      stream: TextIO | None = None,
      in_place: bool | None = None,
      mfu_note: str = '',
      on_loss: Callable[[int, float], None] | None = None,
  ):
    """Starts without a line.

    Args:
      total_steps: step at which the run ends.
      stream: None = standard error.
      in_place: whether to rewrite the line; None = if the stream is a terminal.
      mfu_note: shown after MFU, e.g. `of measured CPU peak`.
      on_loss: called with (step, loss) of each training report.
    """
    self._total_steps = total_steps
    self._stream = sys.stderr if stream is None else stream
    self._in_place = (
        self._stream.isatty() if in_place is None else in_place
    )
    self._mfu_note = f' {mfu_note}' if mfu_note else ''
    self._on_loss = on_loss
    self._step_seconds: float | None = None
    self._line_open = False
    self._lock = threading.Lock()

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Shows a report if it holds a loss."""
    self._show_inference(records)
    losses = [r for r in records if r.name.endswith('/' + LOSS)]
    for loss in losses:
      collection = loss.name.removesuffix('/' + LOSS)
      values = {
          r.name.removeprefix(collection + '/'): r.value
          for r in records
          if r.name.startswith(collection + '/') and r.step == loss.step
      }
      if collection == 'train':
        line = self._training_line(loss.step, values)
        self._show(line + _wait_for_data(records), keep=False)
        if self._on_loss is not None:
          self._on_loss(loss.step, loss.value)
      else:
        self._show(evaluation_line(loss.step, collection, values), keep=True)

  def _show_inference(self, records: Sequence[records_lib.Record]) -> None:
    """Shows the metrics of an evaluation by decoding."""
    by_task: dict[str, list[str]] = {}
    for record in records:
      kind, *task, metric = record.name.split('/')
      if kind == 'inference_eval' and task[-1:] != ['timing']:
        by_task.setdefault('/'.join((kind, *task)), []).append(
            f'{metric} {record.value:.4g}'
        )
    for name, values in by_task.items():
      line = (f'step {records[0].step}', name, *values)
      self._show('  '.join(line), keep=True)

  def write_text(self, step: int, name: str, text: str) -> None:
    """Does nothing: texts are for files."""

  def flush(self) -> None:
    """Flushes the stream."""
    self._stream.flush()

  def close(self) -> None:
    """Ends the line that is being rewritten."""
    with self._lock:
      if self._line_open:
        self._stream.write('\n')
        self._line_open = False
      self._stream.flush()

  def _training_line(self, step: int, values: dict[str, float]) -> str:
    parts = [f'step {step}/{self._total_steps}', f'loss {values[LOSS]:.4f}']
    tokens = values.get(
        'timing/nonpadding_tokens_per_second',
        values.get('timing/nonpadding_target_tokens_per_second'),
    )
    if tokens is not None:
      parts.append(f'{short_number(tokens)} tokens/s')
    if 'timing/mfu' in values:
      parts.append(f'MFU {100 * values["timing/mfu"]:.1f}%{self._mfu_note}')
    now = values.get('timing/step_seconds')
    if now is not None:
      past = now if self._step_seconds is None else self._step_seconds
      self._step_seconds = _SMOOTHING * past + (1 - _SMOOTHING) * now
      remaining = max(0, self._total_steps - step) * self._step_seconds
      parts.append(f'{clock_time(remaining)} left')
    return '  '.join(parts)

  def _show(self, line: str, *, keep: bool) -> None:
    with self._lock:
      if not self._in_place:
        self._stream.write(line + '\n')
      else:
        self._stream.write('\r\x1b[2K' + line + ('\n' if keep else ''))
        self._line_open = not keep
      self._stream.flush()


def _wait_for_data(records: Sequence[records_lib.Record]) -> str:
  """How long the loop waited for data, and for which; '' where it did not."""
  for record in records:
    if record.name.endswith(DATA_WAIT_SHARE):
      what = record.text.partition(';')[0].partition(' for ')[2]
      note = f' ({what})' if what else ''
      return f'  data wait {100 * record.value:.0f}%{note}'
  return ''


def evaluation_line(
    step: int, collection: str, values: dict[str, float]
) -> str:
  """A line on an evaluation, e.g. `step 50  training_eval/c4  loss 2.1`."""
  parts = [f'step {step}', collection, f'loss {values[LOSS]:.4f}']
  if 'accuracy' in values:
    parts.append(f'accuracy {values["accuracy"]:.4f}')
  return '  '.join(parts)


def short_number(value: float) -> str:
  """A number in four characters or so: 950, 12.3k, 4.5M."""
  for size, letter in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
    if abs(value) >= size:
      return f'{value / size:.1f}{letter}'
  return f'{value:.0f}'


def clock_time(seconds: float) -> str:
  """Hours, minutes and seconds as `H:MM:SS`, with days if there are any."""
  minutes, whole = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  days, hours = divmod(hours, 24)
  text = f'{hours}:{minutes:02d}:{whole:02d}'
  return f'{days}d {text}' if days else text
