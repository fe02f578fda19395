# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A curve as one line of text."""

from __future__ import annotations

import numpy as np

_BARS = '▁▂▃▄▅▆▇█'
NOT_FINITE = '×'


def sparkline(
    steps: np.ndarray,
    values: np.ndarray,
    *,
    width: int,
    worst: str = 'highest',
) -> str:
  """At most `width` characters, from the first step to the last.

  Args:
    steps: increasing, [points].
    values: [points]; a part with one that is not finite is drawn as a cross.
    width: characters.
    worst: which value of a part is drawn, so that nothing odd is hidden:
      'highest' or 'lowest'.
  """
  if worst not in ('highest', 'lowest'):
    raise ValueError(
        f"worst = {worst!r}; expected 'highest' or 'lowest'; take the one that "
        'would be a fault.'
    )
  if not len(values) or width < 1:
    return ''
  width = min(width, len(values))
  span = max(1, int(steps[-1] - steps[0]))
  part = np.minimum((steps - steps[0]) * width // span, width - 1)
  choose = np.max if worst == 'highest' else np.min
  cells = []
  for number in range(width):
    mine = values[part == number]
    if not len(mine):
      cells.append(None)
    elif not np.isfinite(mine).all():
      cells.append(np.nan)
    else:
      cells.append(float(choose(mine)))
  finite = [cell for cell in cells if cell is not None and np.isfinite(cell)]
  low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
  return ''.join(_character(cell, low, high) for cell in cells)


def _character(cell: float | None, low: float, high: float) -> str:
  if cell is None:
    return ' '
  if not np.isfinite(cell):
    return NOT_FINITE
  if high == low:
    return _BARS[0]
  return _BARS[round((cell - low) / (high - low) * (len(_BARS) - 1))]
