# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A ladder as a PNG: runs, the law through them, and the run foretold."""

from __future__ import annotations

import numpy as np

from t5wild.experiments import findings

_POINTS = 80
_ROOM = 1.4  # beyond the ends, as a factor


def draw(found: findings.Findings, path: str) -> None:
  """Writes the picture."""
  import matplotlib

  matplotlib.use('Agg')  # no screen is needed
  from matplotlib import pyplot

  figure, (by_tokens, by_compute) = pyplot.subplots(
      1, 2, figsize=(10, 4.2), layout='constrained', sharey=True
  )
  try:
    _tokens(found, by_tokens)
    _compute(found, by_compute)
    by_tokens.set_ylabel('loss')
    _number_axes(by_tokens, by_compute)
    # By their ending nobody knows the format of files on their way.
    figure.savefig(path, dpi=120, format='png')
  finally:
    pyplot.close(figure)


def _number_axes(*both) -> None:
  """Losses as plain numbers, and no words between powers of ten."""
  from matplotlib import ticker

  for axes in both:
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    for set_formatter in (
        axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter
    ):  # fmt: skip
      set_formatter(ticker.FormatStrFormatter('%.3g'))


def _tokens(found: findings.Findings, axes) -> None:
  target = found.target
  places = _between([r.tokens for r in found.runs] + [target.tokens])
  for size in dict.fromkeys(r.size for r in found.runs):
    runs = [r for r in found.runs if r.size == size]
    count = runs[0].num_parameters
    (line,) = axes.plot(
        places, found.law.loss(np.full_like(places, count), places), lw=1
    )
    axes.plot(
        [r.tokens for r in runs], [r.result.value for r in runs], 'o',
        color=line.get_color(), label=f'{count:,} parameters',
    )  # fmt: skip
  whole = np.full_like(places, target.num_parameters)
  axes.fill_between(
      places, *found.law.band(whole, places), color='grey', alpha=0.2, lw=0
  )
  axes.plot(places, found.law.loss(whole, places), '--', color='grey', lw=1)
  _mark(found, axes, target.tokens)
  axes.set(xscale='log', yscale='log', xlabel='tokens')
  axes.legend(fontsize=8)


def _compute(found: findings.Findings, axes) -> None:
  places = _between([r.flops for r in found.runs] + [found.target.flops])
  best = found.law.best_split(
      places,
      flops_per_parameter_and_token=found.flops_per_parameter_and_token,
  )
  for size in dict.fromkeys(r.size for r in found.runs):
    runs = [r for r in found.runs if r.size == size]
    axes.plot([r.flops for r in runs], [r.result.value for r in runs], 'o')
  axes.plot(
      places, found.law.loss(*best), color='black', lw=1,
      label='law, lowest for the compute',
  )  # fmt: skip
  if found.power_law is not None:
    axes.plot(
        places, found.power_law.loss(places), ':', color='grey',
        label='plain power of compute',
    )  # fmt: skip
  _mark(found, axes, found.target.flops)
  axes.set(xscale='log', xlabel='operations')
  axes.legend(fontsize=8)


def _mark(found: findings.Findings, axes, place: float) -> None:
  predicted = found.predicted
  axes.errorbar(
      [place], [predicted.value], fmt='D', mfc='none', color='tab:pink',
      yerr=[[predicted.value - predicted.low],
            [predicted.high - predicted.value]], capsize=4,
      label=f'foretold: {predicted}',
  )  # fmt: skip
  measured = found.target.result.value
  if measured is not None:
    axes.plot(
        [place], [measured], '*', ms=12, color='tab:red',
        label=f'came to: {measured:.4g}',
    )  # fmt: skip


def _between(values) -> np.ndarray:
  return np.geomspace(min(values) / _ROOM, max(values) * _ROOM, _POINTS)
