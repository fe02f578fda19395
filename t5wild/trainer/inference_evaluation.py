# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of the state under training by decoding, reported task by task."""

from collections.abc import Callable, Mapping
import threading
import time
from typing import Any, Protocol

from t5wild.trainer import metrics_manager as metrics_manager_lib

TaskMetrics = Mapping[str, Mapping[str, float | str]]


class Pending(Protocol):
  """Metrics under way, see `evaluator.PendingMetrics`."""

  def result(self) -> TaskMetrics:
    """Waits for task -> metric -> value."""

  def when_done(self, function: Callable[[Any], None]) -> None:
    """Calls the function with them, in another thread."""


class InferenceReports:
  """Evaluates by decoding and writes `inference_eval/TASK/METRIC`.

  Metrics of text may take the host minutes. Unless something is decided by
  them, they are computed while training goes on, and written when they are
  there; the next evaluation, and the end of the run, wait for them.
  """

  def __init__(
      self,
      *,
      start: Callable[[], Pending],
      managers: Mapping[str, metrics_manager_lib.MetricsManager],
      close: Callable[[], None],
      is_awaited: bool = True,
      on_late_metrics: Callable[
          [int, dict[str, dict[str, float]]], None
      ] = lambda step, by_task: None,
  ):
    """Keeps the parts.

    Args:
      start: Predicts with the newest state, and starts the metrics.
      managers: Task name to the writer of `inference_eval/TASK`.
      close: Called when the run ends.
      is_awaited: Whether `evaluate` waits for the metrics, since what is done
        next depends on them.
      on_late_metrics: Else called with (step, task -> metric -> number) before
        the next evaluation or the end.
    """
    self._start = start
    self._managers = dict(managers)
    self._close = close
    self._is_awaited = is_awaited
    self._on_late_metrics = on_late_metrics
    self._unfinished: tuple[Pending, _Report] | None = None

  def evaluate(self, step: int) -> dict[str, dict[str, float]]:
    """Returns task -> metric -> number, or nothing where none is awaited."""
    self._finish()
    start = time.perf_counter()
    pending = self._start()
    if self._is_awaited:
      by_task = pending.result()
    seconds = time.perf_counter() - start
    report = _Report(step, seconds=seconds, managers=self._managers)
    if self._is_awaited:
      report.write(by_task)
      return _numbers(by_task)
    self._unfinished = (pending, report)
    pending.when_done(report.write)
    return {}

  def close(self) -> None:
    """Waits for the metrics, and ends the writers and the evaluator."""
    self._finish()
    for manager in self._managers.values():
      manager.close()
    self._close()

  def _finish(self) -> None:
    """Waits for the metrics under way, and tells them on every process."""
    if self._unfinished is None:
      return
    pending, report = self._unfinished
    self._unfinished = None
    by_task = pending.result()
    # The thread that has them may not have come to writing.
    report.write(by_task)
    self._on_late_metrics(report.step, _numbers(by_task))


class _Report:
  """The metrics of one step, written once by whoever has them first."""

  def __init__(
      self,
      step: int,
      *,
      seconds: float,
      managers: Mapping[str, metrics_manager_lib.MetricsManager],
  ):
    self.step = step
    self._seconds = seconds
    self._managers = managers
    self._lock = threading.Lock()
    self._is_written = False

  def write(self, by_task: TaskMetrics) -> None:
    with self._lock:
      if self._is_written:
        return
      self._is_written = True
      for task, metrics in by_task.items():
        self._write_task(task, metrics)

  def _write_task(self, task: str, metrics: Mapping[str, float | str]) -> None:
    manager = self._managers[task]
    texts = {n: v for n, v in metrics.items() if isinstance(v, str)}
    manager.write_scalars(
        self.step,
        {
            **_numbers({task: metrics})[task],
            'timing/evaluate_seconds': self._seconds,
        },
    )
    if texts:
      manager.write_texts(self.step, texts)


def _numbers(by_task: TaskMetrics) -> dict[str, dict[str, float]]:
  return {
      task: {n: v for n, v in metrics.items() if not isinstance(v, str)}
      for task, metrics in by_task.items()
  }
