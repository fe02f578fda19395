# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is due after which step: a pure function of the step.

A step is the number of finished updates; a period of N means after every
N-th, None means never. Periods need not be multiples of one another, and a
resumed run has the same schedule as one that was never stopped.
"""

from collections.abc import Collection
import dataclasses
import itertools


@dataclasses.dataclass(frozen=True, kw_only=True)
class Due:
  """What to do after a step."""

  save: bool
  evaluate: bool
  log: bool
  stop: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cadence:
  """When to save, evaluate, log and stop.

  The last step does whatever the run does at all, so that nothing learnt since
  the last period is lost.

  Attributes:
    total_steps: The run stops at this step.
    eval_period: Steps between evaluations.
    stats_period: Steps between logs.
    save_period: Steps between checkpoints.
    checkpoint_steps: Steps that are saved besides.
  """

  total_steps: int
  eval_period: int | None = None
  stats_period: int | None = None
  save_period: int | None = None
  checkpoint_steps: Collection[int] = ()

  def __post_init__(self):
    """Refuses what can never be due."""
    if self.total_steps < 0:
      raise ValueError(
          f'total_steps is {self.total_steps}, expected at least 0: set '
          'TRAIN_STEPS'
      )
    for name in ('eval_period', 'stats_period', 'save_period'):
      period = getattr(self, name)
      if period is not None and period < 1:
        raise ValueError(
            f'{name} is {period!r}, expected None (never) or at least 1: set '
            f'it to the number of steps between two, or to None'
        )
    object.__setattr__(
        self, 'checkpoint_steps', frozenset(self.checkpoint_steps)
    )

  def due(self, step: int, *, is_last: bool = False) -> Due:
    """Returns what is due once `step` updates are finished.

    Args:
      step: Number of finished updates.
      is_last: Whether the run ends here, though it could go on.
    """
    last = is_last or step >= self.total_steps
    saves = self.save_period is not None or bool(self.checkpoint_steps)
    return Due(
        save=_divides(self.save_period, step)
        or step in self.checkpoint_steps
        or (last and saves),
        evaluate=_divides(self.eval_period, step)
        or (last and self.eval_period is not None),
        log=_divides(self.stats_period, step) or last,
        stop=last,
    )

  def next_due(self, step: int) -> int:
    """Returns the first step after `step` at which anything is due."""
    periods = (self.eval_period, self.stats_period, self.save_period)
    multiples = ((step // p + 1) * p for p in periods if p is not None)
    listed = (s for s in self.checkpoint_steps if s > step)
    at_the_end = max(step + 1, self.total_steps)
    return min(itertools.chain(multiples, listed, (at_the_end,)))


def _divides(period: int | None, step: int) -> bool:
  return period is not None and step % period == 0
