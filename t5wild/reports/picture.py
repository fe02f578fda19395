# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A report's curves as one PNG, for messages and papers."""

from __future__ import annotations

from collections.abc import Sequence
import os

import numpy as np

from t5wild.reports import contents as contents_lib
from t5wild.reports import money_table
from t5wild.reports import panels as panels_lib

_COLUMNS = 2
_INCHES = (6.0, 2.9)  # of one panel


def draw(contents: contents_lib.Contents, path: str | os.PathLike[str]) -> None:
  """Writes the picture."""
  import matplotlib  # heavy, and only pictures need it

  matplotlib.use('Agg')
  from matplotlib import pyplot

  has_map = contents.heat_map is not None
  rows = money_table.rows(contents)
  num = len(contents.panels) + has_map + bool(rows)
  lines = max(1, -(-num // _COLUMNS))
  figure, grid = pyplot.subplots(
      lines,
      _COLUMNS,
      figsize=(_COLUMNS * _INCHES[0], lines * _INCHES[1] + 0.6),
      dpi=110,
      squeeze=False,
  )
  try:
    axes = list(grid.flat)
    for panel in contents.panels:
      _draw_panel(axes.pop(0), panel)
    if has_map:
      _draw_map(figure, axes.pop(0), contents.heat_map)
    if rows:
      _draw_time(axes.pop(0), rows)
    for unused in axes:
      unused.set_axis_off()
    figure.suptitle(f'{contents.name}: {contents.state}')
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    figure.savefig(path)
  finally:
    pyplot.close(figure)


def _draw_panel(axes, panel: panels_lib.Panel) -> None:
  if panel.is_stacked:
    _draw_stack(axes, panel)
  else:
    for line in panel.lines:
      curve = line.curve
      marker = '.' if len(curve.steps) < 40 else None
      axes.plot(
          curve.steps, curve.values, label=line.label, linewidth=1,
          marker=marker,
      )  # fmt: skip
      if curve.not_finite:
        steps = [step for step, _ in curve.not_finite]
        top = curve.values.max() if len(curve.values) else 1.0
        axes.plot(
            steps, np.full(len(steps), top), 'x', color='red', markersize=4
        )
    if panel.is_log:
      axes.set_yscale('log')
  unit = f', {panel.unit}' if panel.unit else ''
  axes.set_title(f'{panel.title}{unit}', fontsize=10)
  axes.grid(alpha=0.25)
  _number(axes)
  if len(panel.lines) > 1:
    axes.legend(frameon=False, fontsize=7)


def _number(axes) -> None:
  """Plain numbers: 542M and 600, no powers and nothing to be added to all."""
  from matplotlib import ticker

  low, high = axes.get_ylim()
  if axes.get_yscale() == 'log':
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter('%g'))
    if high < 10 * low:
      axes.yaxis.set_minor_formatter(ticker.FormatStrFormatter('%g'))
  elif max(abs(low), abs(high)) >= 1e4:
    axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=''))
  else:
    axes.yaxis.set_major_formatter(ticker.ScalarFormatter(useOffset=False))


def _draw_stack(axes, panel: panels_lib.Panel) -> None:
  """Parts of a whole; they were recorded at the same steps."""
  curves = [line.curve for line in panel.lines]
  thinned = all(len(curve.means) for curve in curves)
  steps = [c.mean_steps if thinned else c.steps for c in curves]
  values = [c.means if thinned else c.values for c in curves]
  axes.stackplot(
      steps[0],
      [np.interp(steps[0], s, v) for s, v in zip(steps, values, strict=True)],
      labels=[line.label for line in panel.lines],
      alpha=0.6,
  )


def _draw_map(figure, axes, heat_map: panels_lib.HeatMap) -> None:
  values = np.where(np.isfinite(heat_map.values), heat_map.values, np.nan)
  with np.errstate(divide='ignore'):
    logs = np.log10(np.where(values > 0, values, np.nan))
  image = axes.imshow(
      logs,
      aspect='auto',
      interpolation='nearest',
      extent=(heat_map.steps[0], heat_map.steps[-1], len(heat_map.groups), 0),
  )
  every = max(1, len(heat_map.groups) // 12)
  axes.set_yticks(
      np.arange(0, len(heat_map.groups), every) + 0.5,
      heat_map.groups[::every],
      fontsize=6,
  )
  axes.set_title(f'{heat_map.title} (powers of ten)', fontsize=10)
  figure.colorbar(image, ax=axes)


def _draw_time(axes, rows: Sequence[money_table.Row]) -> None:
  total = sum(row.hours for row in rows)
  unit, of_hour = next(
      (unit, of_hour)
      for unit, of_hour in (('hours', 1), ('minutes', 60), ('seconds', 3600))
      if total * of_hour > 2 or unit == 'seconds'
  )
  left = 0.0
  for row in rows:
    axes.barh(
        0, row.hours * of_hour, left=left, color=row.colour,
        label=f'{row.label} {row.share:.1%}',
    )  # fmt: skip
    left += row.hours * of_hour
  axes.set_yticks([])
  # The legend stands above the bar, a line for two kinds.
  axes.set_ylim(-0.5, 0.8 + 0.36 * -(-len(rows) // 2))
  axes.set_xlabel(unit)
  axes.set_title('Where the time went', fontsize=10)
  axes.legend(frameon=False, fontsize=7, ncols=2, loc='upper left')
