# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rounds: attempts that the supervisors of several hosts have agreed on.

Each is a file that is made once and never changed. Whoever makes it decides for
all, since only one can: the others read what it says.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import json
import os
import re
from typing import Any

from t5wild import run_dir as run_dir_lib
from t5wild.launch import failures
from t5wild.launch import restarts

_NAME = re.compile(r'round_(\d+)\.json\Z')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
  """A host that takes part in a round.

  Attributes:
    host: its name.
    incarnation: of its supervisor.
  """

  host: str
  incarnation: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Round:
  """What was agreed.

  Attributes:
    number: 1 for the first of the run.
    attempt: the number that its processes are told.
    planned: hosts that the run has when all is well.
    members: in the order of their processes; none: the run ends.
    processes: of each host.
    coordinator: `host:port` of process 0.
    left_out: hosts that nothing is started on.
    ends: how the rounds before ended, in order.
    seated_at: how many of them came before the members last changed.
    proposer: host that made it.
    text: what was decided, for a person.
    delay_seconds: before it starts.
    code: exit code where the run ends.
  """

  number: int
  attempt: int
  planned: int
  members: Sequence[Member] = ()
  processes: int = 1
  coordinator: str = ''
  left_out: Sequence[str] = ()
  ends: Sequence[restarts.Ended] = ()
  seated_at: int = 0
  proposer: str
  text: str = ''
  delay_seconds: float = 0.0
  code: int | None = None

  @property
  def fold(self) -> int:
    """How many planned hosts each of its own stands for."""
    return self.planned // max(1, len(self.members))

  def index_of(self, host: str, incarnation: str) -> int | None:
    """Place of a supervisor among the members; None where it has none."""
    wanted = Member(host=host, incarnation=incarnation)
    return self.members.index(wanted) if wanted in self.members else None


def seats_for(
    ready: Sequence[str], *, before: Sequence[str], planned: int
) -> list[str]:
  """Which hosts take part, in the order of their processes. Pure.

  Who had a seat keeps it; spares take the seats of those that are gone; where
  there are too few, as many as divide the planned number go on, so that each
  batch divides as before.

  Args:
    ready: hosts that can.
    before: members of the round before, in order.
    planned: hosts when all is well.
  """
  spares = [host for host in ready if host not in before]
  seats = []
  for host in before:
    if host in ready:
      seats.append(host)
    elif spares:
      seats.append(spares.pop(0))
  seats += spares
  number = max(
      (n for n in range(1, planned + 1) if n <= len(seats) and not planned % n),
      default=0,
  )
  return seats[:number]


def ended_to_json(ended: restarts.Ended) -> dict[str, Any]:
  """How an attempt ended, as JSON can hold it."""
  return {
      **dataclasses.asdict(ended.failure),
      'kind': ended.failure.kind.name,
      'step': ended.step,
      'kept': ended.kept,
  }


def ended_from_json(told: dict[str, Any]) -> restarts.Ended:
  """The inverse."""
  told = dict(told)
  step, kept = told.pop('step'), told.pop('kept')
  kinds = {kind.name: kind for kind in failures.KINDS}
  kind = kinds.get(told.pop('kind'), failures.UNKNOWN)
  return restarts.Ended(
      failure=failures.Failure(kind=kind, **told), step=step, kept=kept
  )


def read(run_dir: run_dir_lib.RunDir, number: int) -> Round | None:
  """A round; None where it is not agreed on yet, or cannot be read now."""
  try:
    with open(run_dir.host_round(number), encoding='utf-8') as file:
      told = json.load(file)
  except (OSError, ValueError):
    return None
  told['members'] = [Member(**one) for one in told['members']]
  told['ends'] = [ended_from_json(one) for one in told['ends']]
  return Round(**told)


def newest(run_dir: run_dir_lib.RunDir) -> Round | None:
  """The newest round of a run; None before the first."""
  try:
    names = os.listdir(os.path.dirname(run_dir.host_round(1)))
  except FileNotFoundError:
    return None
  numbers = [int(m.group(1)) for m in map(_NAME.match, names) if m]
  return read(run_dir, max(numbers)) if numbers else None


def agree(run_dir: run_dir_lib.RunDir, proposed: Round) -> Round | None:
  """Makes a round, unless somebody was faster; returns what is agreed on.

  Raises:
    OSError: the file system has no hard links, or cannot be written.
  """
  told = dataclasses.asdict(proposed)
  told['ends'] = [ended_to_json(ended) for ended in proposed.ends]
  path = run_dir.host_round(proposed.number)
  os.makedirs(os.path.dirname(path), exist_ok=True)
  temporary = f'{path}.{proposed.proposer}.{os.getpid()}.tmp'
  with open(temporary, 'w', encoding='utf-8') as file:
    json.dump(told, file)
    file.flush()
    os.fsync(file.fileno())
  try:
    # One of two wins, on NFS as well; readers see whole files alone.
    with contextlib.suppress(FileExistsError):
      os.link(temporary, path)
  finally:
    os.unlink(temporary)
  return read(run_dir, proposed.number)
