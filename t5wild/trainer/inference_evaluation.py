# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of the state under training by decoding, reported task by task."""

from collections.abc import Callable, Mapping
import time

from t5wild.trainer import metrics_manager as metrics_manager_lib


class InferenceReports:
  """Evaluates by decoding and writes `inference_eval/TASK/METRIC`."""

  def __init__(
      self,
      *,
      evaluate: Callable[[], Mapping[str, Mapping[str, float | str]]],
      managers: Mapping[str, metrics_manager_lib.MetricsManager],
      close: Callable[[], None],
  ):
    """Keeps the parts.

    Args:
      evaluate: Gives task -> metric -> value of the newest state.
      managers: Task name to the writer of `inference_eval/TASK`.
      close: Called when the run ends.
    """
    self._evaluate = evaluate
    self._managers = dict(managers)
    self._close = close

  def evaluate(self, step: int) -> dict[str, dict[str, float]]:
    """Returns task -> metric -> number, after handing them to the writers."""
    start = time.perf_counter()
    by_task = self._evaluate()
    seconds = time.perf_counter() - start
    numbers = {}
    for task, metrics in by_task.items():
      numbers[task] = {
          name: value
          for name, value in metrics.items()
          if not isinstance(value, str)
      }
      texts = {n: v for n, v in metrics.items() if isinstance(v, str)}
      manager = self._managers[task]
      manager.write_scalars(
          step, {**numbers[task], 'timing/evaluate_seconds': seconds}
      )
      if texts:
        manager.write_texts(step, texts)
    return numbers

  def close(self) -> None:
    """Ends the writers and the evaluator."""
    for manager in self._managers.values():
      manager.close()
    self._close()
