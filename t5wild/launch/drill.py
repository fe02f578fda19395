# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Harms a supervised run from outside, and measures how it recovers.

For a person to try on a recipe of their own, while it trains; what is lost is
what came after the newest checkpoint.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import os
import random
import signal
import socket
import time

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import heartbeats
from t5wild.vitals import records

FAULTS: Mapping[str, int] = {
    'kill': signal.SIGKILL,
    'kill0': signal.SIGKILL,  # of process 0, which the others meet at
    'stop': signal.SIGSTOP,  # a hang; the watchdog's bound must come first
    'term': signal.SIGTERM,  # preempted: it saves
    'abort': signal.SIGABRT,
    'flip': signal.SIGKILL,  # after a byte of the newest checkpoint is flipped
    'truncate': signal.SIGKILL,  # after half of its largest file is gone
}
_POLL_SECONDS = 0.1
_HARMS_FILES = ('flip', 'truncate')


class NoRunError(ValueError):
  """There is no supervised run to harm."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
  """What a fault led to.

  Attributes:
    fault: one of `FAULTS`.
    process: whom it hit.
    step: how far the run was.
    detected_seconds: until the supervisor or a watchdog saw it; None where
      nobody did, which is right for `term`.
    next_step_seconds: until a step was finished by the next attempt.
    lost_steps: steps that the next attempt had to make again.
  """

  fault: str
  process: int
  step: int
  detected_seconds: float | None
  next_step_seconds: float
  lost_steps: int


def living(run_dir: run_dir_lib.RunDir) -> list[heartbeats.Heartbeat]:
  """Signs of the processes of a supervised run that are alive on this host.

  Raises:
    NoRunError: There is none.
  """
  signs = heartbeats.read_all(run_dir, host=socket.gethostname())
  found = [s for s in signs if s.supervisor and _is_alive(s.pid)]
  if not found:
    raise NoRunError(
        f'{run_dir.path} has no supervised process alive on '
        f'{socket.gethostname()} ({len(signs)} signs of life): expected a run '
        'under `t5wild supervise` on this host. Start one, and name its '
        'MODEL_DIR (or its --run_dir).'
    )
  return found


def harm(
    run_dir: run_dir_lib.RunDir,
    fault: str,
    *,
    rng: random.Random,
    timeout_seconds: float,
    send: Callable[[int, int], None] = os.kill,
) -> Result:
  """Sends a fault to one process, and waits until the run has recovered.

  Args:
    run_dir: of the run.
    fault: one of `FAULTS`.
    rng: chooses the process.
    timeout_seconds: how long a recovery may take.
    send: `os.kill`.

  Raises:
    NoRunError: There is no run.
    TimeoutError: It has not recovered.
  """
  found = living(run_dir)
  victim = found[0] if fault == 'kill0' else rng.choice(found)
  if fault in _HARMS_FILES:
    harm_file(largest_file(run_dir), fault, rng=rng)
  begin = time.time()
  send(victim.pid, FAULTS[fault])
  while True:
    after = [
        sign
        for sign in heartbeats.read_all(run_dir, host=victim.host)
        if sign.attempt > victim.attempt and sign.step > sign.first_step
    ]
    if after:
      break
    if time.time() - begin > timeout_seconds:
      raise TimeoutError(
          f'{fault} of process {victim.process} after step {victim.step}: no '
          f'step was finished again within {timeout_seconds:.0f} s; expected '
          'the supervisor to start the run anew. Look at its output and at '
          f'{run_dir.events_jsonl}.'
      )
    time.sleep(_POLL_SECONDS)
  reached = max(
      (e.step for e in _events(run_dir, begin, ('supervisor/exit/',))),
      default=victim.step,
  )
  seen = _events(run_dir, begin, ('supervisor/detected', 'watchdog/hang'))
  return Result(
      fault=fault,
      process=victim.process,
      step=victim.step,
      detected_seconds=(
          min(e.seconds for e in seen) - begin if seen else None
      ),
      next_step_seconds=time.time() - begin,
      lost_steps=max(0, reached - after[0].first_step),
  )


def largest_file(run_dir: run_dir_lib.RunDir) -> str:
  """The largest file of the newest checkpoint: it holds arrays.

  Raises:
    NoRunError: There is no checkpoint on this machine.
  """
  steps = run_dir.local_checkpoint_steps()
  if not steps:
    raise NoRunError(
        f'{run_dir.path} has no checkpoint on this machine: expected one to '
        'harm. Wait for the first save, or drill other faults.'
    )
  paths = [
      os.path.join(folder, name)
      for folder, _, names in os.walk(run_dir.checkpoint(max(steps)))
      for name in names
  ]
  return max(paths, key=os.path.getsize)


def harm_file(path: str, fault: str, *, rng: random.Random) -> None:
  """Flips one bit of a file, or cuts it in half."""
  size = os.path.getsize(path)
  if fault == 'truncate':
    os.truncate(path, size // 2)
    return
  with open(path, 'r+b') as file:
    file.seek(rng.randrange(size))
    byte = file.read(1)
    file.seek(-1, os.SEEK_CUR)
    file.write(bytes([byte[0] ^ 1 << rng.randrange(8)]))


def table(results: Sequence[Result]) -> str:
  """Markdown, as docs/reliability.md has it."""
  rows = ['| fault | process | after step | seen after | next step after '
          '| steps made again |', '|---|---|---|---|---|---|']  # fmt: skip
  for one in results:
    seen = one.detected_seconds
    rows.append(
        f'| {one.fault} | {one.process} | {one.step} | '
        f'{"-" if seen is None else f"{seen:.1f} s"} | '
        f'{one.next_step_seconds:.1f} s | {one.lost_steps} |'
    )
  return '\n'.join(rows)


def _events(run_dir, since: float, names: tuple[str, ...]):
  if not os.path.exists(run_dir.events_jsonl):
    return []
  return [
      event
      for event in records.read_records(run_dir.events_jsonl)
      if event.seconds >= since and event.name.startswith(names)
  ]


def _is_alive(pid: int) -> bool:
  try:
    os.kill(pid, 0)
  except OSError:
    return False
  return True
