# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a run, watches it, starts it again when that is worth it."""

from collections.abc import Callable
import dataclasses
import os
import signal
import socket
import time
from typing import BinaryIO

from t5wild import exit_codes
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import steps
from t5wild.launch import bounds as bounds_lib
from t5wild.launch import councils
from t5wild.launch import event_alerts
from t5wild.launch import events as events_lib
from t5wild.launch import failures
from t5wild.launch import job as job_lib
from t5wild.launch import local_group
from t5wild.launch import node_ledger
from t5wild.launch import restarts
from t5wild.launch import together
from t5wild.launch import watch
from t5wild.vitals import alerts
from t5wild.vitals import run_clock
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
      job: job_lib.Job,
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
    self._bounds = bounds
    self._say = say
    self._away = away
    self._shown = shown
    self._keep_open = () if lock is None else (lock,)
    self._asked: int | None = None  # the newest signal not passed on yet
    self._stopping = False
    self._began = time.monotonic()
    run_clock.start(job.run_dir)
    self._events = events_lib.Events(job.run_dir)
    self._attempt = 0
    if job.hosts is None:
      self._council = councils.Alone(
          job, policy=policy, events=self._events
      )
    else:
      self._council = together.Together(
          job, policy=policy, events=self._events, say=say
      )
    self._told_alive_at = self._began
    self._event_alerts = event_alerts.EventAlerts(job.run_dir, away.notify)
    self._tells_events = True  # of several hosts, one

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
      self._council.close()
      self._events.close()

  def _on_signal(self, number, frame) -> None:
    del frame
    self._asked = number

  def _run(self) -> int:
    ended = None
    decision = self._council.first(self._must_stop)
    while decision is not None and decision.restart:
      if ended is not None:
        self._tell_restart(ended, decision)
      elif decision.verdict:
        self._say(decision.verdict)
      if not self._sleep(decision.delay_seconds):
        break
      ended = self._one_attempt()
      if self._stopping:
        return self._stopped(ended)
      decision = self._council.after(ended, self._must_stop)
    if decision is None or decision.restart:
      self._stopping = True
      return self._stop(
          ended,
          'Stopped, as asked, between two attempts.',
          code=exit_codes.PREEMPTED.code,
      )
    return self._stop(
        ended, decision.verdict, code=decision.code, tells=decision.tells
    )

  def _tell_restart(
      self, ended: restarts.Ended, decision: restarts.Decision
  ) -> None:
    self._say(f'{ended.failure}\n{decision.verdict}')
    if not decision.tells:
      return
    self._events.add(
        'restart', decision.delay_seconds, unit='seconds', step=ended.step,
        text=decision.verdict, process=ended.failure.process,
    )  # fmt: skip
    self._away.notify('restart', f'{ended.failure}\n{decision.verdict}')

  def _stopped(self, ended: restarts.Ended) -> int:
    """Ends as asked, and tells whether the processes had saved by then."""
    failure = ended.failure
    if not failure.kind.is_failure:
      return self._stop(ended, 'Stopped, as asked.')
    kept = 'none' if ended.kept is None else f'that of step {ended.kept}'
    return self._stop(
        ended,
        f'Stopped, as asked, but not in good order: {failure}\nSteps after the '
        f'newest checkpoint ({kept}) are lost.',
        # Run again it goes on, where that is worth it: 75 says so to SLURM.
        code=exit_codes.PREEMPTED.code if failure.kind.restart else None,
    )

  def _stop(
      self,
      ended: restarts.Ended | None,
      verdict: str,
      *,
      code: int | None = None,
      tells: bool = True,
  ) -> int:
    self._council.leave(ended)
    has_failed = ended is not None and ended.failure.kind.is_failure
    if code is None:
      code = exit_codes.PREEMPTED.code if ended is None else ended.failure.code
    if has_failed:
      log = self._job.run_dir.attempt_log(
          self._attempt, self._job.label, ended.failure.process
      )
      verdict += f'\n  Its log: {log}'
    self._say(verdict)
    self._events.add('stopped', code, unit='exit_code',
                     step=ended and ended.step, text=verdict)  # fmt: skip
    if tells:
      self._away.notify('done' if code == 0 else 'stopped', verdict)
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
    seats = self._council.seats()
    self._attempt = seats.attempt
    self._tells_events = seats.first == 0
    if seats.first == 0:
      self._events.add('attempt', self._attempt, unit='attempt')
    told = supervised.Supervised(
        attempt=self._attempt,
        start=run_clock.now(),
        supervisor=os.getpid(),
        host=socket.gethostname(),
        label=self._job.label,
        folder=self._job.run_dir.path,
        fold=seats.fold,
        steady=run_clock.steady(),
        ahead=run_clock.ahead(),
    )
    group = local_group.LocalGroup(
        self._job.command,
        told=told,
        environments=seats.environments,
        coordinator=seats.coordinator,
        count=seats.count,
        first=seats.first,
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
      if self._tells_events:
        self._event_alerts.look()
    signs = group.signs()
    # Where checkpoints go elsewhere, what an attempt began with tells of them.
    kept = self._usable_steps() or [
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
        f'{self._council.exit_event}/{failure.kind.name}', failure.code,
        unit='exit_code', step=ended.step, text=failure.line,
        process=failure.process,
    )  # fmt: skip
    return ended

  def _usable_steps(self) -> list[int]:
    """Steps of the run's checkpoints that the next attempt may go on from."""
    run_dir = self._job.run_dir
    try:
      return steps.all_steps(run_dir.path)
    except (OSError, health.DamagedError):  # the next attempt tells
      return run_dir.local_checkpoint_steps()

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
    """Tells what befell the run and, now and then, how far it is."""
    if self._tells_events:
      self._event_alerts.look()
    period = self._away.alive_seconds
    now = time.monotonic()
    if period is None or now - self._told_alive_at < period:
      return
    self._told_alive_at = now
    reached = [sign.step for sign in group.signs()]
    if reached:
      self._away.notify(alerts.ALIVE, f'still training: step {min(reached)}')

  def late(self, process: int, seconds: float, line: str) -> None:
    """Notes a process that gives no sign of life, and is not ended yet."""
    text = f'process {process}: {line}; ended after {self._bounds.silent:.0f} s'
    self._say(text)
    self._events.add('late', seconds, unit='seconds', text=text,
                     process=process)  # fmt: skip
    self._away.notify('late', text)

  def peers_end(self) -> failures.Failure | None:
    """How the attempt ended on another host, if it did."""
    return self._council.peers_end()

  def wants_more(self) -> bool:
    """Whether hosts wait with which the run would be whole again."""
    if self._stopping or not self._council.wants_more():
      return False
    self._say('Hosts that were missing wait: all save, and start with them.')
    return True

  def detected(self, failure: failures.Failure) -> None:
    """Notes the moment at which something was seen to be wrong."""
    self._events.add(
        'detected', failure.code, unit='exit_code', text=str(failure),
        process=failure.process,
    )  # fmt: skip
