# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An inspection as one PNG, for messages and papers."""

from collections.abc import Callable
import functools
import os
from typing import Any

import numpy as np

from t5wild.inspecting import drawn_rows
from t5wild.inspecting import inspection
from t5wild.inspecting import statistics as statistics_lib

_COLUMNS = 3
_INCHES = (4.6, 3.0)  # of one panel
# Of examples in a row, neighbours apart; told apart by colour-blind eyes too.
COLOURS = ('#3b6fb6', '#d9822b', '#3f9c74', '#a35fa8')
_NOTHING = (0.93, 0.94, 0.95)


def draw(
    found: inspection.Inspection, path: str | os.PathLike[str]
) -> None:
  """Writes the picture."""
  import matplotlib  # heavy, and only pictures need it

  matplotlib.use('Agg')
  from matplotlib import pyplot

  panels = _panels(found)
  lines = -(-len(panels) // _COLUMNS)
  figure, grid = pyplot.subplots(
      lines, _COLUMNS, dpi=110, squeeze=False,
      figsize=(_COLUMNS * _INCHES[0], lines * _INCHES[1] + 0.5),
  )  # fmt: skip
  try:
    axes = list(grid.flat)
    for panel in panels:
      panel(axes.pop(0))
    for unused in axes:
      unused.set_axis_off()
    # A title in mathematics' signs would be another's.
    figure.suptitle(found.subject.title.replace('$', r'\$'))
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    figure.savefig(path)
  finally:
    pyplot.close(figure)


def _panels(found: inspection.Inspection) -> list[Callable[[Any], None]]:
  statistics = found.statistics
  sides = [side.name for side in found.rows[0]]
  return [
      *(functools.partial(_lengths, each) for each in statistics.lengths),
      functools.partial(_fill, statistics),
      functools.partial(_ranks, statistics),
      *(functools.partial(_rows, found, place) for place in range(len(sides))),
      *(functools.partial(_mask, each) for each in found.masks),
  ]


def _lengths(lengths: statistics_lib.Lengths, axes: Any) -> None:
  counts, edges = lengths.histogram()
  axes.bar(edges[:-1], counts, np.diff(edges), align='edge', color=COLOURS[0])
  if lengths.limit is not None and lengths.limit <= edges[-1]:
    axes.axvline(lengths.limit, color='#b3261e', label='limit')
    axes.legend(frameon=False)
  axes.set_title(f'{lengths.name}: tokens')
  axes.set_ylabel('examples')


def _fill(statistics: statistics_lib.Statistics, axes: Any) -> None:
  names = list(next(iter(statistics.fill.values()))[1])
  width = 0.8 / len(names)
  for index, name in enumerate(names):
    values = [fill[name] for _, fill in statistics.fill.values()]
    places = np.arange(len(values)) + (index - (len(names) - 1) / 2) * width
    bars = axes.bar(places, values, width, color=COLOURS[index], label=name)
    axes.bar_label(bars, [f'{value:.0%}' for value in values], fontsize=8)
  axes.set_xticks(range(len(statistics.fill)), list(statistics.fill))
  axes.set_ylim(0, 1.3)
  axes.set_title('fill of rows')
  axes.legend(frameon=False, fontsize=8)


def _ranks(statistics: statistics_lib.Statistics, axes: Any) -> None:
  for each, colour in zip(statistics.tokens, COLOURS, strict=False):
    counts = np.sort(each.counts[each.counts > 0])[::-1]
    axes.loglog(np.arange(1, counts.size + 1), counts, color=colour,
                label=each.name)  # fmt: skip
  axes.set_title('tokens by rank')
  axes.set_ylabel('count')
  axes.legend(frameon=False)


def _rows(found: inspection.Inspection, place: int, axes: Any) -> None:
  sides = [sides[place] for sides in found.rows]
  image = np.stack([_strip(side) for side in sides])
  axes.imshow(image, aspect='auto', interpolation='nearest')
  axes.set_title(f'{sides[0].name}: rows (pale: no loss, grey: padding)')
  axes.set_yticks(range(len(sides)))


def _strip(side: drawn_rows.Side) -> np.ndarray:
  """Colours of a row: float [length, 3]."""
  from matplotlib import colors

  parts = []
  for span in side.spans:
    colour = np.array(_NOTHING)
    if span.segment:
      colour = np.array(
          colors.to_rgb(COLOURS[(span.segment - 1) % len(COLOURS)])
      )
      if not span.has_loss and side.name == 'decoder':
        colour = 0.45 * colour + 0.55
    parts.append(np.tile(colour, (span.size, 1)))
    if span.segment:
      parts[-1][0] *= 0.35  # where it begins
  return np.concatenate(parts)


def _mask(mask: drawn_rows.Mask, axes: Any) -> None:
  axes.imshow(coloured(mask), extent=(0, mask.shape[1], mask.shape[0], 0),
              aspect='auto', interpolation='nearest')  # fmt: skip
  axes.set_title(f'{mask.title} (row 0)')


def coloured(mask: drawn_rows.Mask) -> np.ndarray:
  """A mask in the colours of its examples: float [queries, keys, 3]."""
  from matplotlib import colors

  table = np.array([_NOTHING, *map(colors.to_rgb, COLOURS)])
  numbers = mask.segments
  return table[np.where(numbers > 0, (numbers - 1) % len(COLOURS) + 1, 0)]
