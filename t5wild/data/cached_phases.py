# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Phases of a mixture: its rates change at a step, and nothing is lost.

Each phase has windows of its own. It begins with the very row of its step:
examples of rows that the phase before did not hand out come first in the order
of their task, whenever the new rates ask for it. So the position of a run is a
window, a row, and where each phase before ended.
"""

from collections.abc import Callable, Sequence

from t5wild.data import cached_windows

Ended = tuple[tuple[int, int], ...]


class Phases:
  """The windows of each phase, made from where those before it ended."""

  def __init__(
      self,
      make_windows: Callable[
          [int, cached_windows.Rest | None], cached_windows.Windows
      ],
      *,
      steps: Sequence[int],
  ):
    """Makes nothing yet.

    Args:
      make_windows: (number of the phase, what the one before it left) -> its
        windows.
      steps: from which each phase after the first begins, ascending.
    """
    self._make_windows = make_windows
    self.steps = tuple(steps)
    self._made: dict[Ended, cached_windows.Windows] = {}

  def windows(self, ended: Ended) -> cached_windows.Windows:
    """The windows of the phase that follows those that ended.

    Args:
      ended: for each of them, the window and row that came next.
    """
    if ended not in self._made:
      rest = None
      if ended:
        number, row = ended[-1]
        rest = self.windows(ended[:-1]).rest_after(number, row=row)
      self._made[ended] = self._make_windows(len(ended), rest)
    return self._made[ended]

  def num_begun(self, step: int) -> int:
    """How many phases have ended when the batch of a step is read."""
    return sum(first <= step for first in self.steps)
