# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a run, watches it, starts it again when that is worth it."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import os
import signal
import socket
import time
from typing import BinaryIO

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.launch import bounds as bounds_lib
from t5wild.launch import events as events_lib
from t5wild.launch import failures
from t5wild.launch import local_group
from t5wild.launch import node_ledger
from t5wild.launch import places as places_lib
from t5wild.launch import restarts
from t5wild.launch import watch
from t5wild.vitals import alerts
from t5wild.vitals import supervised

_POLL_SECONDS = 0.05
# What asks to stop, and what the processes are sent for it: they save.
PASSED_ON = {
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGUSR1: signal.SIGTERM,  # sbatch --signal=B:USR1@120
    signal.SIGHUP: signal.SIGTERM,  # the terminal is gone
    signal.SIGINT: signal.SIGINT,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
  """What to run.

  Attributes:
    command: with all its arguments.
    num_processes: on this host; several get the coordinator's flags.
    run_dir: a local folder for signs, logs and events.
    environment: of the processes.
    label: names this supervisor among those of the run.
    coordinator_port: of the first attempt; None: a free one, as later ones.
    spares: places beside those of the processes (of the devices, where there
      is one process), for what is left out.
    left_out: places that nobody takes.
    leave_out_after: failures in a row that speak against one place.
  """

  command: Sequence[str]
  num_processes: int = 1
  run_dir: run_dir_lib.RunDir
  environment: Mapping[str, str]
  label: str
  coordinator_port: int | None = None
  spares: int = 0
  left_out: Sequence[int] = ()
  leave_out_after: int = 3

  @functools.cached_property
  def devices(self) -> list[str]:
    """Names of this machine's devices, when it is first asked."""
    return places_lib.devices_of(self.environment)

  @property
  def num_places(self) -> int:
    """Processes and spares; devices, spares among them, of one process."""
    if self.num_processes > 1:
      return self.num_processes + self.spares
    return max(1, len(self.devices))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Away:
  """Who else hears of a run.

  Attributes:
    notify: (kind, text): tells a person.
    alive_seconds: between tidings that it is still training; None: none.
    ledger: remembers this host's failures for other runs.
  """

  notify: Callable[[str, str], bool]
  ledger: node_ledger.NodeLedger
  alive_seconds: float | None = None


class Supervisor:
  """Runs a job to its end, through failures."""

  def __init__(
      self,
      job: Job,
      *,
      policy: restarts.Policy,
      bounds: bounds_lib.Bounds,
      say: Callable[[str], None],
      shown: BinaryIO | None,
      away: Away,
      lock: int | None = None,
  ):
    """Starts nothing yet.

    Args:
      job: what to run.
      policy: whether to restart.
      bounds: how long to wait.
      say: tells a person at the terminal.
      shown: where the processes' output is shown.
      away: tells a person who is away, and other runs.
      lock: descriptor that the processes hold open as well.
    """
    self._job = job
    self._policy = policy
    self._bounds = bounds
    self._say = say
    self._away = away
    self._shown = shown
    self._keep_open = () if lock is None else (lock,)
    self._asked: int | None = None  # the newest signal not passed on yet
    self._stopping = False
    self._began = time.monotonic()
    self._events = events_lib.Events(job.run_dir)
    self._attempt = events_lib.last_attempt(job.run_dir)
    self._history: list[restarts.Ended] = []
    self._places = places_lib.Places(
        planned=job.num_places - job.spares,
        spares=job.spares,
        left_out=job.left_out,
    )
    self._in_places = 0  # ends of the history before the seating changed
    self._told_alive_at = self._began

  def run(self) -> int:
    """Runs until it is done or given up; returns the exit code."""
    previous = {
        number: signal.signal(number, self._on_signal)
        for number in PASSED_ON
        # nohup and a shell's background jobs ignore some, and go on doing so.
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
      return self._run()
    finally:
      for number, handler in previous.items():
        signal.signal(number, handler)
      self._events.close()

  def _on_signal(self, number, frame) -> None:
    del frame
    self._asked = number

  def _run(self) -> int:
    while True:
      ended = self._one_attempt()
      if self._stopping:
        return self._stop(ended, 'Stopped, as asked.')
      self._history.append(ended)
      decision = self._without_places() or restarts.decide(
          self._policy, self._history
      )
      if not decision.restart:
        return self._stop(ended, decision.verdict)
      self._say(f'{ended.failure}\n{decision.verdict}')
      self._events.add(
          'restart', decision.delay_seconds, unit='seconds', step=ended.step,
          text=decision.verdict, process=ended.failure.process,
      )  # fmt: skip
      self._away.notify('restart', f'{ended.failure}\n{decision.verdict}')
      if not self._sleep(decision.delay_seconds):
        self._stopping = True
        return self._stop(ended, 'Stopped, as asked, between two attempts.')

  def _without_places(self) -> restarts.Decision | None:
    """Leaves out a place that failures speak against; None: there is none."""
    limit = self._policy.max_restarts
    if limit is not None and len(self._history) > limit:
      return None
    recent = restarts.without_progress(self._history[self._in_places :])
    blamed = places_lib.to_blame(
        [ended.failure for ended in recent],
        seating=self._places.seating(),
        is_one_process=self._job.num_processes == 1,
        in_a_row=self._job.leave_out_after,
    )
    what = '' if blamed is None else self._places.leave_out(blamed)
    if not what:
      return None
    self._in_places = len(self._history)
    self._events.add('left_out', blamed, unit='place', text=what,
                     step=recent[-1].step)  # fmt: skip
    return restarts.Decision(
        restart=True,
        verdict=f'{recent[-1].failure.kind.name}: {what}; starting again',
    )

  def _stop(self, ended: restarts.Ended, verdict: str) -> int:
    code = ended.failure.code
    if ended.failure.kind.is_failure:
      log = self._job.run_dir.attempt_log(
          self._attempt, self._job.label, ended.failure.process
      )
      verdict += f'\n  Its log: {log}'
    self._say(verdict)
    self._events.add('stopped', code, unit='exit_code', step=ended.step,
                     text=verdict)  # fmt: skip
    self._away.notify('done' if code == 0 else 'stopped', verdict)
    if self._stopping and ended.failure.kind.is_failure:
      return exit_codes.PREEMPTED.code
    return 128 - code if code < 0 else code

  def _sleep(self, seconds: float) -> bool:
    """Waits; False where it is asked to stop meanwhile."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      if self._must_stop():
        return False
      time.sleep(_POLL_SECONDS)
    return not self._must_stop()

  def _must_stop(self) -> bool:
    limit = self._bounds.wall_time
    is_late = limit is not None and (
        time.monotonic() - self._began > limit - self._bounds.stop
    )
    return self._asked is not None or is_late

  def _one_attempt(self) -> restarts.Ended:
    """Starts all processes and returns when none is left."""
    self._attempt += 1
    seating = self._places.seating()
    environments = places_lib.environments(
        self._job.environment, seating, devices=self._job.devices,
        num_processes=self._job.num_processes, total=self._job.num_places,
    )  # fmt: skip
    count = len(environments)
    port = None
    if count > 1:
      is_first = not self._history
      port = (is_first and self._job.coordinator_port) or (
          local_group.free_port()
      )
    self._events.add('attempt', self._attempt, unit='attempt')
    told = supervised.Supervised(
        attempt=self._attempt,
        start=time.time(),
        supervisor=os.getpid(),
        host=socket.gethostname(),
        label=self._job.label,
        folder=self._job.run_dir.path,
        fold=seating.fold,
    )
    group = local_group.LocalGroup(
        self._job.command,
        told=told,
        environments=environments,
        port=port,
        shown=self._shown,
        keep_open=self._keep_open,
    )
    try:
      failure = watch.Watch(
          group, self, bounds=self._bounds
      ).until_the_end()
    finally:
      group.kill()
      group.close()
    signs = group.signs()
    # Where checkpoints go elsewhere, what an attempt began with tells of them.
    kept = self._job.run_dir.local_checkpoint_steps() or [
        sign.first_step for sign in signs if sign.first_step
    ]
    ended = restarts.Ended(
        failure=failure,
        step=max((sign.step for sign in signs), default=None),
        kept=max(kept, default=None),
    )
    trouble = self._away.ledger.add(failure, run=self._job.run_dir.path)
    if trouble:
      self._say(trouble)
    self._events.add(
        f'exit/{failure.kind.name}', failure.code, unit='exit_code',
        step=ended.step, text=failure.line, process=failure.process,
    )  # fmt: skip
    return ended

  @property
  def stopping(self) -> bool:
    """Whether the processes have been told to stop."""
    return self._stopping

  def take_signal(self) -> int | None:
    """A signal to pass on to the processes now, once each."""
    if self._asked is None and not self._stopping and self._must_stop():
      self._asked = signal.SIGTERM
      self._say('The wall time is nearly up: stopping in good order.')
    asked, self._asked = self._asked, None
    if asked is None:
      return None
    self._stopping = True
    return PASSED_ON[asked]

  def tell_alive(self, group: local_group.LocalGroup) -> None:
    """Tells, now and then, how far the run is."""
    period = self._away.alive_seconds
    now = time.monotonic()
    if period is None or now - self._told_alive_at < period:
      return
    self._told_alive_at = now
    steps = [sign.step for sign in group.signs()]
    if steps:
      self._away.notify(alerts.ALIVE, f'still training: step {min(steps)}')

  def detected(self, failure: failures.Failure) -> None:
    """Notes the moment at which something was seen to be wrong."""
    self._events.add(
        'detected', failure.code, unit='exit_code', text=str(failure),
        process=failure.process,
    )  # fmt: skip
