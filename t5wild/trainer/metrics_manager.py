# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns metrics on the device into records, in a thread of its own."""

from collections.abc import Mapping, Sequence
from concurrent import futures
import contextlib
import dataclasses
import functools
import logging
import os
import time
from typing import Any

from clu import values as clu_values
import jax
import numpy as np

from t5wild.trainer import metric_values
from t5wild.trainer import sinks as sinks_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals import run_clock

MetricsMap = metric_values.MetricsMap
_MEND_OF_A_DISK = ': free some space, or point MODEL_DIR elsewhere.'


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepCost:
  """What MFU is computed from.

  Attributes:
    flops_per_step: model operations of a step (`planner.formulas`), over all
      devices.
    peak_flops_per_second: of all devices together; None = unknown chip, no MFU.
  """

  flops_per_step: float
  peak_flops_per_second: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Report:
  """One report as the loop handed it in."""

  step: int
  metrics: MetricsMap | Sequence[MetricsMap]
  num_steps: int
  duration_seconds: float | None
  data_wait_seconds: float | None
  other_seconds: float
  extra: Mapping[str, tuple[Any, ...]]
  submitted: float


class MetricsManager:
  """Fetches, finishes and writes metrics without making the loop wait.

  Everything that touches the device or a sink runs in one background thread, in
  order. It speaks clu's `summary_writer` protocol (`write_scalars`,
  `write_texts`) as T5X's did, so that a `summarize_config_fn` can use it.
  """

  def __init__(
      self,
      name: str,
      summary_dir: str | None = None,
      *,
      sinks: Sequence[sinks_lib.Sink] = (),
      host: int = 0,
      cost: StepCost | None = None,
  ):
    """Starts the thread and the duration timer.

    Args:
      name: collection the records belong to: `train`, `training_eval/TASK`.
      summary_dir: folder of TensorBoard events, of a folder NAME in it; as T5X
        has it, in the place of a sink. Written by the first process.
      sinks: where records go; empty on processes other than the first. They may
        be shared by managers, and are closed by who made them.
      host: index of this process.
      cost: None = no MFU.
    """
    self.name = name
    self.summary_dir = None
    self._own_sinks = ()
    if summary_dir is not None:
      self.summary_dir = os.path.join(summary_dir, name)
      if jax.process_index() == 0:
        self._own_sinks = (
            sinks_lib.TensorBoardSink(self.summary_dir, collection=name),
        )
    self._sinks = (*sinks, *self._own_sinks)
    self._host = host
    self._cost = cost
    self._pool = futures.ThreadPoolExecutor(1, f'metrics_{name}')
    self._pending: list[futures.Future] = []
    self._mark = time.perf_counter()
    self._failing: set[int] = set()

  @property
  def summary_writer(self) -> 'MetricsManager':
    """The writer to hand to a `summarize_config_fn`."""
    return self

  def set_cost(self, cost: StepCost | None) -> None:
    """Sets what MFU is computed from, once shapes are known."""
    self._cost = cost

  def start_duration_timer(self, block_on: Any = ()) -> None:
    """Lets the next report's duration begin once `block_on` is computed.

    Call after whatever is no training: compiling, evaluating, saving. Returns
    at once.
    """
    called = time.perf_counter()

    def mark():
      _wait(block_on)
      self._mark = time.perf_counter() if _leaves(block_on) else called

    self._start(mark)

  def submit(
      self,
      step: int,
      metrics: MetricsMap | Sequence[MetricsMap],
      *,
      num_steps: int,
      duration_seconds: float | None = None,
      data_wait_seconds: float | None = None,
      other_seconds: float = 0.0,
      extra: Mapping[str, tuple[Any, ...]] | None = None,
  ) -> futures.Future:
    """Reports an interval of steps; returns at once.

    Args:
      step: number of finished updates.
      metrics: clu metrics, on device: one mapping merged over the interval, or
        one per step, which are merged on the host.
      num_steps: steps in the interval.
      duration_seconds: wall time of the interval; None = from the moment the
        previous report's metrics were computed (or the duration timer was
        started) to the moment these are.
      data_wait_seconds: part of it that the loop waited for data; None = do not
        split the time.
      other_seconds: part of it that the loop spent neither waiting for data nor
        in steps (writing, callbacks).
      extra: name -> (value, unit), or (value, unit, text), written as they are.

    Returns:
      A future of name -> value, without the collection's name. It holds the
      error if the steps failed on the device.
    """
    report = _Report(
        step=int(step),
        metrics=metrics,
        num_steps=num_steps,
        duration_seconds=duration_seconds,
        data_wait_seconds=data_wait_seconds,
        other_seconds=other_seconds,
        extra=extra or {},
        submitted=run_clock.now(),
    )
    return self._start(functools.partial(self._finish, report))

  def write_metrics_summary(self, metrics, step, num_steps) -> futures.Future:
    """Reports an interval of steps; T5X's name, order and result.

    Returns:
      A future of name -> clu value of the metrics handed in, and of no other.
    """
    report = self.submit(int(step), metrics, num_steps=num_steps)
    # The one thread has finished the report when it comes to this.
    return self._start(
        lambda: {
            name: clu_values.Scalar(value)
            for name, value in report.result().items()
            if name in metrics
        }
    )

  def write_scalar(self, key, val, step):
    """Writes one number; T5X's name and order."""
    self.write_scalars(step, {key: val})

  def write_scalars(self, step, scalars):
    """Writes numbers, which may still be on their way on the device."""
    now = run_clock.now()

    def write():
      values = {k: _as_float(jax.device_get(v)) for k, v in scalars.items()}
      self._write(int(step), now, values, {})

    self._start(write)

  def write_texts(self, step, texts):
    """Writes texts, such as the operative config."""

    self._start(functools.partial(self._write_texts, step, texts))

  def _write_texts(self, step, texts) -> None:
    for name, text in texts.items():
      for sink in self._sinks:
        with self._going_on_without(sink):
          sink.write_text(int(step), name, text)

  def flush(self) -> None:
    """Waits until all reports are out; raises the first error of theirs."""
    pending, self._pending = self._pending, []
    for future in pending:
      future.result()
    for sink in self._sinks:
      with self._going_on_without(sink):
        sink.flush()

  def close(self) -> None:
    """Ends the thread after its last report; given sinks stay open."""
    self._pool.shutdown(wait=True)
    for sink in self._own_sinks:
      sink.close()

  def _start(self, job) -> futures.Future:
    self._pending = [f for f in self._pending if not _succeeded(f)]
    future = self._pool.submit(job)
    self._pending.append(future)
    return future

  def _finish(self, report: _Report) -> dict[str, float]:
    _wait(report.metrics)
    now = time.perf_counter()
    duration = report.duration_seconds
    if duration is None:
      duration = now - self._mark
    self._mark = now
    merged = metric_values.merge_on_host(report.metrics)
    finished = metric_values.finish(
        merged, duration_seconds=duration, num_steps=report.num_steps
    )
    self._write_texts(report.step, metric_values.texts(finished))
    values = metric_values.numbers(finished)
    values.update(metric_values.rates(merged, duration_seconds=duration))
    values.update(self._step_times(report, duration))
    values.update(metric_values.memory_bytes())
    values.update({name: each[0] for name, each in report.extra.items()})
    units = {name: each[1] for name, each in report.extra.items()}
    texts = {
        name: text
        for name, (_, _, *texts) in report.extra.items()
        for text in texts
    }
    self._write(report.step, report.submitted, values, units, texts)
    return values

  def _step_times(self, report: _Report, duration: float) -> dict[str, float]:
    steps = report.num_steps
    if not steps or report.data_wait_seconds is None or duration <= 0:
      return {}
    step_seconds = duration / steps
    wait = min(report.data_wait_seconds / steps, step_seconds)
    other = min(report.other_seconds / steps, step_seconds - wait)
    times = {
        'timing/step_seconds': step_seconds,
        'timing/data_wait_seconds': wait,
        'timing/other_seconds': other,
        'timing/device_seconds': step_seconds - wait - other,
    }
    if self._cost is not None:
      flops = self._cost.flops_per_step / step_seconds
      times['timing/model_flops_per_second'] = flops
      if self._cost.peak_flops_per_second:
        times['timing/mfu'] = flops / self._cost.peak_flops_per_second
    return times

  def _write(self, step, seconds, values, units, texts=None) -> None:
    records = [
        records_lib.Record(
            step,
            seconds,
            self._host,
            f'{self.name}/{name}',
            value,
            units[name] if name in units else metric_values.unit_of(name),
            (texts or {}).get(name, ''),
        )
        for name, value in values.items()
    ]
    for sink in self._sinks:
      with self._going_on_without(sink):
        sink.write(records)

  @contextlib.contextmanager
  def _going_on_without(self, sink):
    """Keeps a sink's troubles from ending the run; tells them once."""
    try:
      yield
      self._failing.discard(id(sink))
    except Exception as error:  # a sink may stop no run
      if id(sink) not in self._failing:
        is_disk = isinstance(error, OSError)
        logging.error(
            '%s does not take what is written (%s: %s); the run goes on '
            'without it%s',
            type(sink).__name__,
            type(error).__name__,
            error,
            _MEND_OF_A_DISK if is_disk else '.',
            exc_info=not is_disk,
        )
      self._failing.add(id(sink))


def _as_float(value) -> float:
  return float(np.asarray(value).reshape(()))


def _leaves(tree) -> list:
  return jax.tree_util.tree_leaves(tree)


def _wait(tree) -> None:
  """Waits for arrays; those donated since were computed before that."""
  for leaf in _leaves(tree):
    if isinstance(leaf, jax.Array) and not leaf.is_deleted():
      leaf.block_until_ready()


def _succeeded(future: futures.Future) -> bool:
  return future.done() and future.exception() is None
