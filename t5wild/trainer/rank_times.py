# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How long each process is busy on its host, and how fast its devices are.

Steps of a run take the same time everywhere, since all wait for the slowest.
So each process tells how long its own loop was busy, and now and then what a
small piece of work took on its devices, queued behind the steps: the loop never
waits for it. The times travel with the signs of life; process 0 reads them.
"""

from collections.abc import Callable
from concurrent import futures
import time

from absl import logging
import jax
import jax.numpy as jnp

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import loop
from t5wild.vitals import heartbeats
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import spikes
from t5wild.vitals import stragglers

_PROBE_PERIOD_SECONDS = 20.0
_PROBE_REPEATS = 4
_SIZE = {'cpu': 256}  # of the matrices; of other platforms
_SIZE_ELSEWHERE = 4096
_STALE_SECONDS = 30.0
_JUDGE_PERIOD_SECONDS = 5.0  # signs of life are a second apart
# Times of intervals vary with whatever else a host does.
_SLOW = spikes.Sensitivity(
    window_steps=31, warm_up_steps=5, deviations=10.0, least_rise=0.5
)


class RankTimes:
  """Tells this process's times; on process 0, judges those of all."""

  def __init__(
      self,
      run_dir: run_dir_lib.RunDir,
      *,
      tell: Callable[[float, float | None], None],
      add_event: Callable[..., None],
  ):
    """Starts a thread with the first interval.

    Args:
      run_dir: Where signs of life are.
      tell: Given (host seconds, device seconds) of this process.
      add_event: Given name, step, value, unit and text of what was found.
    """
    self._run_dir = run_dir
    self._tell = tell
    self._add_event = add_event
    self._process = jax.process_index()
    self._pool = futures.ThreadPoolExecutor(1, 'rank_times')
    self._probe = _Probe()
    self._slow = spikes.Detector(_SLOW)
    self._kinds = {
        'host_seconds': stragglers.Stragglers(),
        'device_seconds': stragglers.Stragglers(),
    }
    self._told: dict[str, dict[str, float]] = {}
    self._judge_at = 0.0
    self._writer: records.RecordWriter | None = None

  def log(self, step: int, interval: loop.Interval) -> None:
    """Takes an interval; waits for nothing."""
    if not interval.num_steps:
      return
    seconds = interval.seconds - interval.off_loop_seconds
    busy = (seconds - interval.device_wait_seconds) / interval.num_steps
    work = self._probe.start()
    self._pool.submit(
        self._look, step, seconds / interval.num_steps, busy,
        interval.metrics, work,
    )  # fmt: skip

  def _look(self, step, step_seconds, busy, metrics, work) -> None:
    try:
      device = self._probe.seconds_after(metrics, work)
      self._tell(busy, device)
      self._record(step, busy, device)
      if self._process == 0:
        self._judge_throughput(step, step_seconds)
        self._judge_ranks(step)
    except Exception:  # noqa: BLE001 -- a run does not live by its times
      logging.exception('The times of ranks could not be told')

  def _judge_throughput(self, step: int, seconds: float) -> None:
    spike = self._slow.add(seconds)
    if spike is not None:
      self._add_event(
          'slow_steps', step=step, value=seconds, unit='seconds',
          text=f'a step takes {seconds * 1e3:.1f} ms, usual '
          f'{spike.level * 1e3:.1f} ms',
      )  # fmt: skip

  def _judge_ranks(self, step: int) -> None:
    steady, now = time.monotonic(), time.time()
    if self._run_dir.is_bucket or steady < self._judge_at:
      return
    self._judge_at = steady + _JUDGE_PERIOD_SECONDS
    signs = [
        sign
        for sign in heartbeats.read_all(self._run_dir)
        if now - sign.seconds < _STALE_SECONDS
    ]
    for kind, judge in self._kinds.items():
      told = {
          f'process {sign.process} on {sign.host}': getattr(sign, kind)
          for sign in signs
          if getattr(sign, kind) is not None
      }
      if told == self._told.get(kind):  # nothing new was measured
        continue
      self._told[kind] = told
      for found in judge.add(told):
        self._add_event(
            'straggler', step=step, value=found.seconds, unit='seconds',
            text=f'{kind.replace("_", " ")}: {found}',
        )  # fmt: skip

  def _record(self, step: int, busy: float, device: float | None) -> None:
    """Each process has a file of its own; that of process 0 is the run's."""
    if self._run_dir.is_bucket:
      return
    if self._writer is None:
      self._writer = records.RecordWriter(
          self._run_dir.host_metrics_jsonl(self._process)
      )
    values = {'host_seconds': busy, 'device_seconds_of_a_probe': device}
    self._writer.write([
        records.Record(
            step, run_clock.now(), self._process, f'train/timing/{name}', value,
            'seconds',
        )  # fmt: skip
        for name, value in values.items()
        if value is not None
    ])

  def close(self) -> None:
    """Ends the thread after the last interval."""
    self._pool.shutdown(wait=True)
    if self._writer is not None:
      self._writer.close()


class _Probe:
  """The same small piece of work on each local device, every now and then."""

  def __init__(self):
    self._due = 0.0
    self._inputs: list[jax.Array] | None = None
    self._work = jax.jit(_multiply)

  def start(self) -> list[jax.Array] | None:
    """Queues it behind what the devices have to do; None if it is not due."""
    now = time.monotonic()
    if now < self._due:
      return None
    self._due = now + _PROBE_PERIOD_SECONDS
    if self._inputs is None:
      devices = jax.local_devices()
      size = _SIZE.get(devices[0].platform, _SIZE_ELSEWHERE)
      ones = jnp.ones((size, size), jnp.float32) / size
      self._inputs = [jax.device_put(ones, device) for device in devices]
      for one in self._inputs:
        self._work.lower(one).compile()
      return None  # what the first one takes is loading it
    return [self._work(one) for one in self._inputs]

  def seconds_after(self, metrics, work) -> float | None:
    """Seconds of the slowest device, once the steps before are done."""
    if work is None:
      return None
    for leaf in jax.tree.leaves(metrics):
      if isinstance(leaf, jax.Array) and not leaf.is_deleted():
        leaf.block_until_ready()
    start = time.perf_counter()
    jax.block_until_ready(work)
    return time.perf_counter() - start


def _multiply(x: jax.Array) -> jax.Array:
  for _ in range(_PROBE_REPEATS):
    x = x @ x
  return x
