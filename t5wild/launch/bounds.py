# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a supervisor waits for what."""

from collections.abc import Mapping
import dataclasses
import time


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


def slurm_seconds(
    environment: Mapping[str, str], *, stop: float
) -> float | None:
  """Seconds until SLURM ends this job; None where it does not say.

  Args:
    environment: of a task of the job.
    stop: seconds that a stop may take; with less left there is no point.
  """
  end = environment.get('SLURM_JOB_END_TIME', '')
  left = int(end) - time.time() if end.isdigit() else 0.0
  return left if left > stop else None
