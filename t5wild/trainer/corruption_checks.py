# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Looks every so many steps whether all devices still compute the same.

In gin:

  from t5wild.trainer import corruption_checks
  train_script.train.corruption_cls = @corruption_checks.CorruptionChecks
  corruption_checks.CorruptionChecks.budget_percent = 0.5

A check is handed to the devices like a step, and read some steps later: the
loop waits for nothing. Every process reads the same sums, so all end at the
same step.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import os
import socket
import statistics
import time
from typing import Any

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np

from t5wild.partitioning import distributed
from t5wild.trainer import loop
from t5wild.trainer import replay as replay_lib
from t5wild.vitals import corruption

LOOK_AFTER = loop.MAX_STEPS_IN_FLIGHT + 1
# So many steps tell how long one takes, after the first of a process.
_MEASURED_STEPS = 12
_DETERMINISTIC = (
    'xla_gpu_deterministic_ops=true',
    'xla_gpu_exclude_nondeterministic_ops=true',
)
_GPU_TOLERANCE = 1e-3
_KEY = 2718


class SilentCorruptionError(Exception):
  """A device of this process computes something else than the others."""


class CorruptPeerError(SilentCorruptionError):
  """One of another process does."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched:
  """What of a run is checked, and whom it is told.

  Attributes:
    trainer: holds the state.
    model: whose gradient is replayed.
    partitioner: of the run.
    first_step: after which the run begins.
    quarantine: called with a step and `reason`: takes the checkpoints after it
      out of use, and returns their steps.
    record: called with a step and values.
  """

  trainer: Any
  model: Any
  partitioner: Any
  first_step: int
  quarantine: Callable[..., Sequence[int]]
  record: Callable[[int, Mapping[str, float]], None]


class CorruptionChecks:
  """Compares replicas of parameters, and replays gradients."""

  def __init__(
      self,
      watched: Watched,
      *,
      period: int | None = None,
      budget_percent: float = 1.0,
      replay: bool = True,
      replay_rows: int = 1,
      max_gathered_bytes: int = 4 << 30,
      tolerance: float | None = None,
  ):
    """Starts nothing yet.

    Args:
      watched: Handed in by the run; the rest is set in gin.
      period: Check after every so many steps; None: as often as the budget
        allows.
      budget_percent: Of the time, for checks.
      replay: Whether to replay gradients, too.
      replay_rows: Rows of the batch in a replay.
      max_gathered_bytes: Parameters that lie in parts are gathered for a replay
        on every device up to this size; larger ones are replayed by all devices
        together, on the same devices only.
      tolerance: Relative, of replayed gradients; 0: the same bits. None: 0
        where the platform repeats them, which a GPU does only under
        XLA_FLAGS=--xla_gpu_deterministic_ops=true; else 0.001.

    Raises:
      ValueError: For an argument that makes no sense.
    """
    _check(period, budget_percent, replay_rows)
    self._trainer = watched.trainer
    self._model = watched.model
    self._partitioner = watched.partitioner
    self._quarantine = watched.quarantine
    self._record = watched.record
    self._period = period
    self._budget_percent = budget_percent
    self._replays = replay
    self._num_rows = replay_rows
    self._max_gathered_bytes = max_gathered_bytes
    self._tolerance = _tolerance() if tolerance is None else tolerance
    self._agreed = watched.first_step
    self._check_seconds = 0.0
    self._step_times: list[float] = []
    self._pending: collections.deque = collections.deque()
    self._batch: Mapping[str, jax.Array] | None = None

  def prepare(self, batch: Mapping[str, jax.ShapeDtypeStruct]) -> None:
    """Compiles, measures, and says what is checked.

    Args:
      batch: Global batch of ShapeDtypeStructs.
    """
    params = self._trainer.train_state.params
    self._names = replay_lib.names_of(params)
    self._groups = replay_lib.groups_of(params)
    mesh = jax.tree.leaves(params)[0].sharding.mesh
    self._devices = list(mesh.devices.flat)
    self._sums = replay_lib.make_replica_sums(params)
    self._is_local = self._fits(params)
    if self._is_local:
      self._replay = replay_lib.make_local_replay(self._model, params)
    else:
      self._replay = replay_lib.ShardedReplay(
          self._model, params, partitioner=self._partitioner
      )
      # Each device takes part in the rows of its own.
      self._num_rows *= self._partitioner.data_mesh_size
    zeros = {
        name: jnp.zeros((self._num_rows, *x.shape[1:]), x.dtype)
        for name, x in batch.items()
    }
    rows = replay_lib.everywhere(zeros, mesh=mesh)
    self._sums.compile(params)
    if self._replays:
      self._replay.compile(*self._arguments(rows))
    # Compilers take their time; the first collective would not wait for one.
    distributed.barrier('compiled checks for silent corruption')
    jax.block_until_ready(self._run(rows))
    start = time.perf_counter()
    jax.block_until_ready(self._run(rows))
    self._check_seconds = time.perf_counter() - start
    logging.info('%s', self.describe())

  def describe(self) -> str:
    """What is checked, and what cannot be, for a person."""
    number = corruption.num_with_replicas(self._groups)
    parts = [
        f'{number} of {len(self._names)} parameters have replicas, whose bits '
        'are compared'
        if number
        else 'parameters are fully sharded, no replicas to compare: replay only'
    ]
    if self._replays:
      where = 'the same and on other devices'
      if not self._is_local:
        where = 'the same devices only (parameters are too large to gather)'
      elif len(self._devices) == 1:
        where = 'the same device, there is no other'
      parts.append(f'gradients of {self._num_rows} row(s) are replayed on '
                   f'{where}')  # fmt: skip
    when = (
        f'every {self._period} steps'
        if self._period
        else f'in {self._budget_percent:g} % of the time'
    )
    return (
        f'Silent corruption: {"; ".join(parts)}; {when}. A check takes '
        f'{self._check_seconds * 1000:.1f} ms.'
    )

  def seeing(self, step_fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `step_fn`, whose batches are seen."""

    def step(batch):
      self._batch = batch
      return step_fn(batch)

    return step

  def after_step(self, step: int) -> None:
    """Starts what is due, and judges what was started some steps ago.

    Raises:
      SilentCorruptionError: on every process, after the same step.
    """
    if step <= self._agreed:  # the run has gone back to an earlier state
      while self._pending:
        self._judge(*self._pending.popleft())
      self._agreed = step - 1
    if self._period is None:
      self._choose_period(step)
    elif step % self._period == 0:
      self._start(step)
    while self._pending and step >= self._pending[0][0] + LOOK_AFTER:
      self._judge(*self._pending.popleft())

  def finish(self, step: int) -> None:
    """Judges what is under way, and the last state's replicas.

    Raises:
      SilentCorruptionError: on every process.
    """
    while self._pending:
      self._judge(*self._pending.popleft())
    if step > self._agreed:
      self._judge(step, [self._sums(self._trainer.train_state.params)])

  def _fits(self, params: Any) -> bool:
    """Whether every device may hold all parameters."""
    leaves = jax.tree.leaves(params)
    if all(leaf.sharding.is_fully_replicated for leaf in leaves):
      return True
    size = sum(leaf.nbytes for leaf in leaves)
    return size <= self._max_gathered_bytes

  def _choose_period(self, step: int) -> None:
    """After some steps, all at once."""
    self._step_times.append(time.perf_counter())
    if len(self._step_times) < _MEASURED_STEPS:
      return
    times = self._step_times
    period = corruption.period_of(
        check_seconds=self._check_seconds,
        step_seconds=statistics.median(
            b - a for a, b in zip(times[1:], times[2:], strict=False)
        ),
        budget_percent=self._budget_percent,
    )
    self._period = distributed.meet(
        'period of corruption checks', value=period
    )[0]
    self._record(step, {'corruption/period_steps': float(self._period)})
    logging.info('%s', self.describe())

  def _start(self, step: int) -> None:
    rows = replay_lib.first_rows(self._batch, self._num_rows)
    self._pending.append((step, self._run(rows)))

  def _run(self, rows: Mapping[str, jax.Array]) -> list[Any]:
    """Sums of the parameters and of two replays, under way."""
    arguments = self._arguments(rows)
    found = [self._sums(arguments[0])]
    if self._replays:
      found += [self._replay(*arguments) for _ in range(2)]
    return found

  def _arguments(self, rows: Mapping[str, jax.Array]) -> tuple[Any, ...]:
    state = self._trainer.train_state
    # An array of this process alone is no argument of a program of all.
    key = np.asarray(jax.random.PRNGKey(_KEY))
    return state.params, state.flax_mutables or None, rows, key

  def _judge(self, step: int, sums: list[Any]) -> None:
    read = [replay_lib.read(self._names, one) for one in sums]
    findings = list(filter(None, self._findings(*read)))
    if not findings:
      self._agreed = step
      self._record(step, {'corruption/agreed': 1.0})
      return
    # Who is surely wrong is told before who may be.
    finding = next((one for one in findings if one.wrong), findings[0])
    self._fail(step, finding)

  def _findings(self, replicas, first=None, second=None):
    yield corruption.compare(
        replicas, self._groups, what='replicas of the parameters'
    )
    if first is None:
      return
    yield corruption.compare_runs(
        first, second, what='two runs of one gradient',
        tolerance=self._tolerance,
    )  # fmt: skip
    if self._is_local:
      everyone = [list(range(len(self._devices)))]
      yield corruption.compare(
          first, dict.fromkeys(first, everyone),
          what='gradients of the same rows', tolerance=self._tolerance,
      )  # fmt: skip

  def _fail(self, step: int, finding: corruption.Finding) -> None:
    devices = self._described()
    named = [devices[row] for row in finding.named()]
    steps = self._quarantine(
        self._agreed, reason=f'silent corruption, seen after step {step}'
    )
    text = corruption.message(
        finding, devices, step=step, agreed_step=self._agreed,
        quarantined=steps,
    )  # fmt: skip
    here = distributed.process_index()
    is_here = any(device.process == here for device in named)
    raise (SilentCorruptionError if is_here else CorruptPeerError)(text)

  def _described(self) -> list[corruption.Device]:
    """All devices, with the serials that their own processes know."""
    mine = [d for d in self._devices if d.process_index == jax.process_index()]
    told = distributed.meet(
        'devices that differ',
        value={
            'host': socket.gethostname(),
            'serials': dict(
                zip([d.id for d in mine], _serials(mine), strict=True)
            ),
        },
    )
    local: collections.Counter[int] = collections.Counter()
    found = []
    for device in self._devices:
      process = device.process_index
      found.append(
          corruption.Device(
              name=str(device),
              process=process,
              local=local[process],
              host=told[process]['host'],
              serial=told[process]['serials'].get(str(device.id), ''),
          )
      )
      local[process] += 1
    return found


def _serials(devices: Sequence[jax.Device]) -> list[str]:
  if not devices or devices[0].platform != 'gpu':
    return [''] * len(devices)
  visible = os.environ.get('CUDA_VISIBLE_DEVICES', '')
  names = [name.strip() for name in visible.split(',') if name.strip()]
  places = [device.local_hardware_id for device in devices]
  return corruption.serials(
      [names[i] if i < len(names) else str(i) for i in places]
  )


def _tolerance() -> float:
  if jax.default_backend() != 'gpu':
    return 0.0
  flags = os.environ.get('XLA_FLAGS', '').lower()
  return 0.0 if any(f in flags for f in _DETERMINISTIC) else _GPU_TOLERANCE


def _check(period, budget_percent, replay_rows) -> None:
  for name, value in (('period', period), ('replay_rows', replay_rows)):
    if value is not None and (not isinstance(value, int) or value < 1):
      raise ValueError(
          f'{name} of CorruptionChecks is {value!r}, expected an integer of at '
          f'least 1: set corruption_checks.CorruptionChecks.{name}'
      )
  if not 0 < budget_percent <= 100:
    raise ValueError(
        f'budget_percent of CorruptionChecks is {budget_percent!r}, expected '
        'above 0 and at most 100: set it to the share of the time that checks '
        'may take'
    )
