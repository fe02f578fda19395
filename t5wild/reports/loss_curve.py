# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the loss curves of a run as a PNG from its metrics.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import os
from typing import Any

from t5wild import run_dir
from t5wild.vitals import records as records_lib

LOSS = records_lib.LOSS
_UNIT = 'loss, nats per non-padding target token'
_COMPARED = 'tab:green'
Curves = dict[str, list[records_lib.Record]]


def read_curves(path: str | os.PathLike[str]) -> Curves:
  """Loss per non-padding target token by collection, training first.

  Args:
    path: of a metrics.jsonl.

  Raises:
    ValueError: the file holds no loss.
  """
  records = [
      record
      for record in records_lib.read_records(path)
      if record.name.endswith('/' + LOSS)
  ]
  names = dict.fromkeys(record.name for record in records)
  if not names:
    raise ValueError(
        f'no loss in {os.fspath(path)!r}; expected records named '
        f"'train/{LOSS}'; let the run pass its first stats_period."
    )
  ordered = sorted(names, key=lambda n: (not n.startswith('train/'), n))
  return {
      name.removesuffix('/' + LOSS): records_lib.series(records, name)
      for name in ordered
  }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compared:
  """A loss of another unit, and the level of that unit to hold it against.

  Attributes:
    label: of the loss, with its unit.
    points: (step, loss).
    level_label: of the level, with the same unit.
    level: a loss, e.g. the unigram entropy of the text.
  """

  label: str
  points: Sequence[tuple[int, float]]
  level_label: str
  level: float


def draw(
    model_dir: str,
    *,
    path: str | None = None,
    compared: Compared | None = None,
    title: str = '',
) -> str:
  """Writes the picture and returns its path.

  Args:
    model_dir: of the run.
    path: of the picture; None = `loss_curve.png` in the run's folder.
    compared: what is drawn beside the losses, in a colour of its own.
    title: above the picture; '' = none.
  """
  import matplotlib  # heavy, and only pictures need it

  matplotlib.use('Agg')
  from matplotlib import pyplot

  run = run_dir.RunDir(model_dir)
  path = run.loss_curve_png if path is None else path
  figure, axes = pyplot.subplots(figsize=(7, 4.2), dpi=130)
  try:
    for name, curve in read_curves(run.metrics_jsonl).items():
      axes.plot(
          [record.step for record in curve],
          [record.value for record in curve],
          label=name if compared is None else f'{name}, nats per target token',
          linewidth=1.2 if name == 'train' else 1.8,
          marker=None if len(curve) > 1 and name == 'train' else 'o',
          markersize=4,
      )
    if compared is not None:
      _draw_compared(axes, compared)
    axes.set_xlabel('step')
    axes.set_ylabel(_UNIT if compared is None else 'loss, nats')
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    if title:
      axes.set_title(title)
    figure.tight_layout()
    figure.savefig(path)
  finally:
    pyplot.close(figure)
  return path


def _draw_compared(axes: Any, compared: Compared) -> None:
  steps, losses = zip(*compared.points, strict=True)
  axes.plot(
      steps, losses,
      label=compared.label,
      color=_COMPARED, linestyle='--', marker='s', markersize=4, linewidth=1.2,
  )  # fmt: skip
  axes.axhline(compared.level, color=_COMPARED, linestyle=':', linewidth=1.2)
  axes.annotate(
      f'{compared.level_label} {compared.level:.2f}',
      (1.0, compared.level),
      xycoords=('axes fraction', 'data'),
      ha='right',
      va='bottom',
      fontsize=8,
      color=_COMPARED,
  )
