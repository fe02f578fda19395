# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The training loop: next batch, step, due actions."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import gc
import time
from typing import Any, Protocol

import jax

from t5wild.trainer import cadence as cadence_lib
from t5wild.trainer import preemption
from t5wild.trainer import step as step_lib

# One step runs while the next waits in the device's queue. Deeper queues hold
# more batches in device memory and make a stop take longer, for no speed.
MAX_STEPS_IN_FLIGHT = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
  """What happened since the last log: metrics, steps and where time went.

  Attributes:
    metrics: clu metrics of the interval, merged, on the device.
    num_steps: Number of steps merged.
    seconds: Wall time of the interval.
    data_wait_seconds: Part of it spent waiting for the next batch.
    device_wait_seconds: Part of it spent waiting for the device.
    dispatch_seconds: Part of it spent handing steps to the device.
    off_loop_seconds: Part of it spent in evaluation and blocking saves.
    data_waits: Seconds waited for data by what was waited for, as far as the
      feed tells.
  """

  metrics: Mapping[str, Any]
  num_steps: int
  seconds: float
  data_wait_seconds: float
  device_wait_seconds: float
  dispatch_seconds: float
  off_loop_seconds: float
  data_waits: Mapping[str, float] = dataclasses.field(default_factory=dict)


class DueActions(Protocol):
  """What the loop calls when `Cadence` says so; each takes the step."""

  def log(self, step: int, interval: Interval) -> None:
    """Hands the interval to a background writer."""

  def save(self, step: int) -> None:
    """Starts an asynchronous save of the state after `step`."""

  def evaluate(self, step: int) -> bool:
    """Evaluates; True asks the loop to stop."""

  def after_step(self, step: int, metrics: Mapping[str, Any]) -> bool:
    """Runs after every step, waits for nothing; True asks to stop.

    `metrics` are those of this step, on the device.
    """


class _Window:
  """Merges metrics on the device and times the interval on the host."""

  def __init__(self, feed: Iterator[Any]):
    self._in_flight = []
    # Any iterator is a feed; ours tells what it was that it waited for.
    self._take_waits = getattr(feed, 'take_waits', dict)
    self._reset()

  def _reset(self):
    self._metrics = None
    self._num_steps = 0
    self._start = time.perf_counter()
    self._seconds = dict.fromkeys(
        ('data_wait', 'dispatch', 'device_wait', 'off_loop'), 0.0
    )

  @contextlib.contextmanager
  def timed(self, kind: str):
    start = time.perf_counter()
    try:
      yield
    finally:
      self._seconds[kind] += time.perf_counter() - start

  def add(self, metrics) -> None:
    self._metrics = (
        metrics
        if self._metrics is None
        else step_lib.merge_metrics(self._metrics, metrics)
    )
    self._num_steps += 1
    self._in_flight.append(metrics)
    if len(self._in_flight) > MAX_STEPS_IN_FLIGHT:
      jax.block_until_ready(self._in_flight.pop(0))

  def drain(self) -> None:
    """Waits for the steps under way, so that their time is booked as theirs."""
    jax.block_until_ready(self._in_flight)
    self._in_flight.clear()

  def take(self) -> Interval:
    interval = Interval(
        metrics=self._metrics,
        num_steps=self._num_steps,
        seconds=time.perf_counter() - self._start,
        data_wait_seconds=self._seconds['data_wait'],
        device_wait_seconds=self._seconds['device_wait'],
        dispatch_seconds=self._seconds['dispatch'],
        off_loop_seconds=self._seconds['off_loop'],
        data_waits=self._take_waits(),
    )
    self._reset()
    return interval


def _next_batch(feed: Iterator[Any], step: int, total_steps: int):
  try:
    return next(feed)
  except StopIteration:
    raise ValueError(
        f'the training data ended before step {step}, expected enough for '
        f'{total_steps} steps: set num_epochs to None (repeat), lower '
        'TRAIN_STEPS or add data'
    ) from None


def _do_what_is_due(
    step: int,
    is_last: bool,
    *,
    cadence: cadence_lib.Cadence,
    actions: DueActions,
    window: _Window,
    ledger,
) -> bool:
  """Logs, saves, evaluates; returns whether the run ends here."""
  due = cadence.due(step, is_last=is_last)
  if due.log:
    with ledger.span('log'):
      actions.log(step, window.take())
  if due.save or due.evaluate:
    with window.timed('device_wait'), ledger.span('step'):
      window.drain()
  # Save before evaluating: a fault in evaluation must not cost the steps.
  if due.save:
    with window.timed('off_loop'), ledger.span('save'):
      actions.save(step)
  if due.evaluate:
    with window.timed('off_loop'), ledger.span('evaluate'):
      is_last |= actions.evaluate(step)
  if is_last and not due.stop:
    # The evaluation has ended the run: the rest of what a last step does.
    rest = cadence.due(step, is_last=True)
    if not due.log:
      with ledger.span('log'):
        actions.log(step, window.take())
    if rest.save and not due.save:
      with ledger.span('save'):
        actions.save(step)
  return is_last or due.stop


def run(
    *,
    step_fn: Callable[[Any], Mapping[str, Any]],
    feed: Iterator[Any],
    cadence: cadence_lib.Cadence,
    actions: DueActions,
    first_step: int,
    stop_signal: preemption.StopSignal,
    ledger,
    gc_period: int = 0,
) -> int:
  """Trains from `first_step` until the cadence, an action or a signal stops.

  Args:
    step_fn: Dispatches one update and returns its metrics on the device.
    feed: Global device batches in order.
    cadence: Says what is due after each step.
    actions: Does what is due.
    first_step: Number of updates already in the state.
    stop_signal: Asked after each step.
    ledger: Books time: `with ledger.span(name):`.
    gc_period: Collect garbage every so many steps, by hand; 0 leaves it to
      Python (T5X's meaning).

  Returns:
    The number of updates in the state at the end.

  Raises:
    preemption.Preempted: After the save that a stop signal asked for.
    ValueError: When the data ends too early.
  """
  window = _Window(feed)
  for step in range(first_step + 1, cadence.total_steps + 1):
    with window.timed('data_wait'), ledger.span('data_wait'):
      batch = _next_batch(feed, step, cadence.total_steps)
    with (
        window.timed('dispatch'),
        ledger.span('step'),
        jax.profiler.StepTraceAnnotation('train', step_num=step),
    ):
      metrics = step_fn(batch)
    with window.timed('device_wait'), ledger.span('step'):
      window.add(metrics)
    is_last = actions.after_step(step, metrics)
    is_last = _do_what_is_due(
        step, is_last, cadence=cadence, actions=actions, window=window,
        ledger=ledger,
    )  # fmt: skip
    if is_last:
      return step
    if stop_signal.reached(step):
      with ledger.span('save'):
        actions.save(step)
      raise preemption.Preempted(
          step, by_keyboard=stop_signal.by_keyboard
      )
    if gc_period and step % gc_period == 0:
      gc.collect()
  return max(first_step, cadence.total_steps)
