# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's `train` and `eval` of a trainer, for code written against T5X.

The training loop of a run uses neither.
"""

from collections.abc import Iterator, Mapping
from concurrent import futures
import os

import jax

from t5wild.trainer import metrics_manager as metrics_manager_lib
from t5wild.trainer import sinks
from t5wild.trainer import step as step_lib

Batch = step_lib.Batch


class T5XLoops:
  """Steps over an iterator, and their metrics; a part of `BaseTrainer`."""

  @property
  def train_metrics_manager(self) -> metrics_manager_lib.MetricsManager:
    """Writes the metrics of `train`."""
    return self._manager('train')

  @property
  def eval_metrics_managers(
      self,
  ) -> dict[str, metrics_manager_lib.MetricsManager]:
    """Write the metrics of `eval`, by name of the data set."""
    return {n: self._manager(f'training_eval/{n}') for n in self._eval_names}

  def _manager(self, name: str) -> metrics_manager_lib.MetricsManager:
    if name not in self._managers:
      events = ()
      if self._summary_dir and jax.process_index() == 0:
        folder = os.path.join(self._summary_dir, name)
        events = (sinks.TensorBoardSink(folder, collection=name),)
      self._managers[name] = metrics_manager_lib.MetricsManager(
          name, sinks=events, host=jax.process_index()
      )
    return self._managers[name]

  def train(
      self,
      batch_iter: Iterator[Batch],
      num_steps: int,
      start_step: int | None = None,
  ) -> futures.Future:
    """Trains for a number of steps and reports their metrics.

    Args:
      batch_iter: Batches: global ones on the devices, or this host's rows.
      num_steps: Number of updates.
      start_step: Number of updates in the state, if known.

    Returns:
      A future of metric name -> value.
    """
    if start_step is None:
      start_step = int(self.train_state.step)
    self.train_metrics_manager.start_duration_timer(self.train_state.step)
    merged = {}
    for step in range(start_step, start_step + num_steps):
      batch = self._on_devices(next(batch_iter))
      with jax.profiler.StepTraceAnnotation('train', step_num=step):
        metrics = self.train_step(batch)
      merged = step_lib.merge_metrics(merged, metrics) if merged else metrics
    return self.train_metrics_manager.submit(
        start_step + num_steps, merged, num_steps=num_steps
    )

  def eval(
      self, batch_iters: Mapping[str, Iterator[Batch]]
  ) -> dict[str, dict[str, float]]:
    """Evaluates the state and reports the metrics.

    Args:
      batch_iters: Name of the data set -> its batches.

    Returns:
      Name of the data set -> metric name -> value.
    """
    step = int(self.train_state.step)
    reports = {}
    for name, batches in batch_iters.items():
      manager = self.eval_metrics_managers[name]
      manager.start_duration_timer()
      metrics, num_batches = self.eval_batches(
          name, map(self._on_devices, batches)
      )
      reports[name] = manager.submit(
          step, metrics or {}, num_steps=num_batches
      )
    return {name: report.result() for name, report in reports.items()}

  def _on_devices(self, batch: Batch) -> Batch:
    is_ready = not isinstance(batch, Mapping) or all(
        isinstance(x, jax.Array) for x in jax.tree.leaves(batch)
    )
    return batch if is_ready else self._partitioner.global_batch(batch)
