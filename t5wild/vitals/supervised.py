# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a supervisor tells the processes it starts, in one variable."""

from collections.abc import Mapping, MutableMapping
import dataclasses
import json
import os
import socket
import time

from t5wild.vitals import run_clock

VARIABLE = 'T5WILD_SUPERVISED'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Supervised:
  """One attempt of a supervised run.

  Attributes:
    attempt: its number, from 1 on over all supervisors of the run.
    start: when it was started, seconds since 1970.
    supervisor: process id of the supervisor.
    host: name of the supervisor's machine; its processes may be on others.
    label: names the supervisor among all of the run: its host, and its rank
      where a launcher starts several on one host.
    folder: local folder where signs of life, stacks and events go; it is the
      run directory unless that is a bucket.
    steady: `run_clock.steady` when it was started, on the supervisor's machine;
      0: not told.
    ahead: of it, the clock by which the supervisor dates its events.
    fold: how many planned places each one of now stands for; a batch is taken
      apart into so many times more microbatches.
  """

  attempt: int
  start: float
  supervisor: int
  host: str
  label: str
  folder: str
  steady: float = 0.0
  ahead: float = 0.0
  fold: int = 1

  def to_environment(self) -> dict[str, str]:
    """The variable for a process of this attempt."""
    return {VARIABLE: json.dumps(dataclasses.asdict(self))}

  @property
  def clock_ahead(self) -> float | None:
    """The supervisor's, where this machine is its own; None elsewhere."""
    is_here = self.steady and self.host == socket.gethostname()
    return self.ahead if is_here else None

  def supervisor_is_gone(self) -> bool:
    """Whether nobody watches this process any more, as far as can be seen."""
    if self.host != socket.gethostname():
      return False
    try:
      os.kill(self.supervisor, 0)
    except ProcessLookupError:
      return True
    except PermissionError:
      return False
    return False


def from_environment(
    environment: Mapping[str, str] | None = None,
) -> Supervised | None:
  """What the supervisor said; None where there is none."""
  environment = os.environ if environment is None else environment
  text = environment.get(VARIABLE, '')
  return Supervised(**json.loads(text)) if text else None


def take_age(
    environment: MutableMapping[str, str] | None = None,
) -> float | None:
  """Seconds since this process was started; once: a second run began later."""
  environment = os.environ if environment is None else environment
  told = from_environment(environment)
  if told is None or not told.start:
    return None
  later = dataclasses.replace(told, start=0.0)
  environment.update(later.to_environment())
  if told.clock_ahead is None:
    return max(0.0, time.time() - told.start)
  return max(0.0, run_clock.steady() - told.steady)
