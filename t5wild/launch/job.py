# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a supervisor is to run, and with which other hosts."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools

from t5wild import run_dir as run_dir_lib
from t5wild.launch import places as places_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hosts:
  """How the supervisors of several hosts find one another.

  Attributes:
    planned: hosts that a run has when all is well; further ones are spares.
    least: fewer go on with nothing; the run then ends with a verdict.
    address: of this host, where the others reach its coordinator.
    silent_seconds: without a sign of a supervisor its host counts as lost.
    gather_seconds: how long hosts that are missing are waited for.
  """

  planned: int
  least: int = 1
  address: str
  silent_seconds: float = 60.0
  gather_seconds: float = 300.0

  def __post_init__(self):
    """Refuses what makes no sense."""
    if not 1 <= self.least <= self.planned:
      raise ValueError(
          f'--min_hosts is {self.least} of --hosts={self.planned}, expected 1 '
          f'to {self.planned}: the fewest hosts worth going on with'
      )
    for name in ('silent', 'gather'):
      seconds = getattr(self, f'{name}_seconds')
      if not seconds > 0:
        raise ValueError(
            f'--host_{name}_seconds is {seconds}, expected above 0: set it to '
            'the longest time to wait for a host'
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
    spares: places beside those of the processes (of the devices, where there
      is one process), for what is left out.
    left_out: places that nobody takes.
    leave_out_after: failures in a row that speak against one place or host.
    hosts: None where this supervisor decides alone.
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
  hosts: Hosts | None = None

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
