# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Teacher-forced evaluation of the state under training, task by task."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import time
from typing import Any

from absl import logging

from t5wild.trainer import metrics_manager as metrics_manager_lib


class TrainingEvaluator:
  """Evaluates every task on its own batches and reports what it found."""

  def __init__(
      self,
      *,
      trainer: Any,
      datasets: Mapping[str, Iterable[Any]],
      to_device: Callable[[Any], Any],
      managers: Mapping[str, metrics_manager_lib.MetricsManager],
  ):
    """Keeps the parts; compiles nothing yet.

    Args:
      trainer: Has `eval_batches(name, batches)`.
      datasets: Task name to its host batches; each is iterated anew.
      to_device: Host batch to global device batch.
      managers: Task name to the writer of `training_eval/TASK`.
    """
    self._trainer = trainer
    self._datasets = dict(datasets)
    self._to_device = to_device
    self._managers = dict(managers)

  @property
  def tasks(self) -> tuple[str, ...]:
    """Names of the tasks, in order."""
    return tuple(self._datasets)

  def _device_batches(self, name: str) -> Iterator[Any]:
    for batch in self._datasets[name]:
      yield self._to_device(batch)

  def evaluate(self, step: int) -> dict[str, dict[str, float]]:
    """Returns task -> metric -> value, after writing them.

    Waits for the device: evaluation is part of what decides (actions, best
    checkpoint), so its numbers must be there before the loop goes on.
    """
    futures = {}
    for name in self._datasets:
      start = time.perf_counter()
      self._managers[name].start_duration_timer()
      metrics, num_batches = self._trainer.eval_batches(
          name, self._device_batches(name)
      )
      if not num_batches:
        logging.warning(
            'training_eval/%s has no batch: nothing evaluated. Lower its '
            'batch_size or give the split more examples.', name,
        )
        continue
      futures[name] = self._managers[name].submit(
          step,
          metrics,
          num_steps=num_batches,
          extra={
              'timing/evaluate_seconds': (
                  time.perf_counter() - start, 'seconds'
              )
          },
      )
    return {name: future.result() for name, future in futures.items()}

  def close(self) -> None:
    """Ends the writers."""
    for manager in self._managers.values():
      manager.close()
