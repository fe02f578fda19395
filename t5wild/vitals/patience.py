# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How long each phase of a run may take before it counts as hung."""

from collections.abc import Iterable, Mapping
import difflib
import statistics

# What the loop does between two steps; measured by the steps themselves.
STEP = 'step'
_OF_STEPS = frozenset({'step', 'data_wait', 'log', 'other'})

# Seconds; of phases that have no step to measure them by. Generous: they differ
# by orders of magnitude from run to run, and ending a healthy run each time is
# worse than seeing a hang late. A run that knows better says so.
PHASE_SECONDS = {
    'startup': 1800.0,
    'init': 7200.0,
    'restore': 7200.0,
    'compile': 7200.0,
    'first_steps': 1800.0,  # before there is a median
    'evaluate': 21600.0,
    'save': 1800.0,
    'finish': 7200.0,
}
# So many durations make a median; the first steps of a process may load and
# connect what later ones reuse.
_FIRST_STEPS = 3


class Patience:
  """Bounds by phase; pure."""

  def __init__(
      self,
      *,
      multiple: float | None,
      min_seconds: float,
      phase_seconds: Mapping[str, float | None] | None = None,
  ):
    """Keeps the bounds.

    Args:
      multiple: Of the median step; None: no bound at all.
      min_seconds: Lowest bound of a step.
      phase_seconds: What differs from `PHASE_SECONDS`; None: no bound.

    Raises:
      ValueError: For what no bound can be.
    """
    if multiple is not None and not multiple > 1:
      raise ValueError(
          f'multiple is {multiple!r}, expected above 1, or None for no '
          'watchdog: half of all steps take longer than the median. Set '
          'watchdog.Watchdog.multiple to 10 or more.'
      )
    if not min_seconds > 0:
      raise ValueError(
          f'min_seconds is {min_seconds!r}, expected above 0: set '
          'watchdog.Watchdog.min_seconds to the shortest pause that counts as '
          'a hang'
      )
    given = dict(phase_seconds or {})
    for phase, seconds in given.items():
      if phase not in PHASE_SECONDS:
        near = difflib.get_close_matches(str(phase), PHASE_SECONDS, n=1)
        hint = f' (did you mean {near[0]!r}?)' if near else ''
        raise ValueError(
            f'phase_seconds has {phase!r}{hint}, expected phases of '
            f'{list(PHASE_SECONDS)}: correct watchdog.Watchdog.phase_seconds; '
            'steps are bounded by multiple and min_seconds'
        )
      if seconds is not None and not seconds > 0:
        raise ValueError(
            f'phase_seconds of {phase!r} is {seconds!r}, expected above 0, or '
            'None for any time: correct watchdog.Watchdog.phase_seconds'
        )
    self._multiple = multiple
    self._min_seconds = min_seconds
    self._phase_seconds = {**PHASE_SECONDS, **given}

  def group(self, phase: str, *, has_stepped: bool) -> str:
    """The phase whose bound applies where the ledger says `phase`."""
    if phase not in _OF_STEPS:
      return phase
    if phase == 'other' and not has_stepped:
      return 'startup'
    return STEP

  def bound(
      self, group: str, *, median: float | None, num_steps: int
  ) -> float | None:
    """Seconds without progress that a phase may take; None: any time."""
    if self._multiple is None:
      return None
    if group != STEP:
      return self._phase_seconds[group]
    if num_steps < _FIRST_STEPS:
      return self._phase_seconds['first_steps']
    return max(self._min_seconds, self._multiple * median)


def median(durations: Iterable[float]) -> float | None:
  """Median of what another thread may be adding to; None where it is empty."""
  while True:
    try:
      found = list(durations)
      break
    except RuntimeError:  # It grew meanwhile.
      continue
  return statistics.median(found) if found else None
