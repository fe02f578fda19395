# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a run, watches it, starts it again when that is worth it."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import os
import signal
import socket
import time
from typing import BinaryIO

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.launch import events as events_lib
from t5wild.launch import failures
from t5wild.launch import local_group
from t5wild.launch import node_ledger
from t5wild.launch import restarts
from t5wild.vitals import alerts
from t5wild.vitals import supervised

_POLL_SECONDS = 0.05
_SIGNS_SECONDS = 0.5
_LAST_WORDS_SECONDS = 1.0
_LOST_PEER_TIMES = 5
# What asks to stop, and what the processes are sent for it: they save.
PASSED_ON = {
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGUSR1: signal.SIGTERM,  # sbatch --signal=B:USR1@120
    signal.SIGHUP: signal.SIGTERM,  # the terminal is gone
    signal.SIGINT: signal.SIGINT,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bounds:
  """How long a supervisor waits for what, in seconds.

  Attributes:
    grace: for the others to leave by themselves when one has failed.
    stop: for all to save and leave when they were told to stop.
    finish: for the others to leave when one is done.
    silent: without a sign of life a process counts as hung.
    start: for the first sign of life; None: any time.
    wall_time: of this supervisor in all; None: any. The processes are told to
      stop `stop` seconds before.
  """

  grace: float = 2.0
  stop: float = 120.0
  finish: float = 600.0
  silent: float = 300.0
  start: float | None = 1800.0
  wall_time: float | None = None

  def __post_init__(self):
    """Refuses what makes no sense."""
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if value is not None and not value > 0:
        raise ValueError(
            f'--{field.name}_seconds is {value}, expected above 0: set it to '
            'the longest time to wait'
        )
    if self.wall_time is not None and self.wall_time <= self.stop:
      raise ValueError(
          f'--wall_time_seconds is {self.wall_time}, --stop_seconds '
          f'{self.stop}: expected more wall time than a stop may take. Lower '
          '--stop_seconds or ask for more time.'
      )


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
  """

  command: Sequence[str]
  num_processes: int = 1
  run_dir: run_dir_lib.RunDir
  environment: Mapping[str, str]
  label: str
  coordinator_port: int | None = None


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
      bounds: Bounds,
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
      decision = restarts.decide(self._policy, self._history)
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
    count = self._job.num_processes
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
    )
    group = local_group.LocalGroup(
        self._job.command,
        count=count,
        told=told,
        environment=self._job.environment,
        port=port,
        shown=self._shown,
        keep_open=self._keep_open,
    )
    try:
      failure = _Watch(group, self).until_the_end()
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

  @property
  def bounds(self) -> Bounds:
    """How long to wait for what."""
    return self._bounds

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


class _Watch:
  """One attempt, from its start to the end of its last process."""

  def __init__(self, group: local_group.LocalGroup, supervisor: Supervisor):
    self._group = group
    self._supervisor = supervisor
    self._bounds = supervisor.bounds
    self._deadline: float | None = None
    self._why: failures.Failure | None = None
    self._num_ended = 0
    self._looked_at = time.monotonic()

  def until_the_end(self) -> failures.Failure:
    """Returns why it ended, its root cause."""
    while self._group.running():
      self._pass_signals_on()
      self._note_ends()
      self._note_silence()
      if self._deadline is not None and time.monotonic() > self._deadline:
        break
      time.sleep(_POLL_SECONDS)
    return self._conclude()

  def _pass_signals_on(self) -> None:
    number = self._supervisor.take_signal()
    if number is not None:
      self._group.signal(number)
      self._wait_at_most(self._bounds.stop)

  def _note_ends(self) -> None:
    ended = self._group.ended()
    for failure in ended[self._num_ended :]:
      if failure.kind is failures.DONE:
        self._wait_at_most(self._bounds.finish)
      elif failure.kind.is_failure:
        self._supervisor.detected(failure)
        # Told to stop, the others may be saving still.
        if not self._supervisor.stopping:
          self._wait_at_most(self._grace_after(failure))
      else:
        self._wait_at_most(self._bounds.stop)
    self._num_ended = len(ended)

  def _grace_after(self, failure: failures.Failure) -> float:
    """Who lost a peer may be the first to leave: the cause is still to come."""
    is_cause = failure.kind is not failures.LOST_PEER
    return self._bounds.grace * (1 if is_cause else _LOST_PEER_TIMES)

  def _note_silence(self) -> None:
    now = time.monotonic()
    if self._why or now - self._looked_at < _SIGNS_SECONDS:
      return
    self._looked_at = now
    self._supervisor.tell_alive(self._group)
    silent = self._group.silent(
        silent_seconds=self._bounds.silent, start_seconds=self._bounds.start
    )
    if silent is None:
      return
    index, line = silent
    self._why = failures.Failure(
        kind=failures.HANG, code=exit_codes.HUNG.code, process=index, line=line
    )
    self._supervisor.detected(self._why)
    self._group.abort()
    self._wait_at_most(_LAST_WORDS_SECONDS)

  def _wait_at_most(self, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    if self._deadline is None or deadline < self._deadline:
      self._deadline = deadline

  def _conclude(self) -> failures.Failure:
    if self._why is not None:
      return self._why
    running = self._group.running()
    self._note_ends()
    ended = self._group.ended()
    if running and not any(f.kind.is_failure for f in ended):
      return failures.Failure(
          kind=failures.HANG,
          code=exit_codes.HUNG.code,
          process=running[0],
          line='it did not leave in time when told to stop, or when the others '
          'were done',
      )
    return failures.root_cause(ended)
