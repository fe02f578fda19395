# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the loss curves of a run as a PNG from its metrics.jsonl."""

import os

from t5wild import run_dir
from t5wild.vitals import records as records_lib

LOSS = records_lib.LOSS
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


def draw(
    model_dir: str,
    *,
    path: str | None = None,
    levels: dict[str, float] | None = None,
    title: str = '',
) -> str:
  """Writes the picture and returns its path.

  Args:
    model_dir: of the run.
    path: of the picture; None = `loss_curve.png` in the run's folder.
    levels: losses to draw as horizontal lines, by label, e.g. the unigram
      entropy of the text.
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
          label=name,
          linewidth=1.2 if name == 'train' else 1.8,
          marker=None if len(curve) > 1 and name == 'train' else 'o',
          markersize=4,
      )
    for label, level in (levels or {}).items():
      axes.axhline(level, color='gray', linestyle='--', linewidth=1)
      axes.annotate(
          f'{label} {level:.2f}',
          (1.0, level),
          xycoords=('axes fraction', 'data'),
          ha='right',
          va='bottom',
          fontsize=8,
          color='gray',
      )
    axes.set_xlabel('step')
    axes.set_ylabel('loss, nats per non-padding target token')
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    if title:
      axes.set_title(title)
    figure.tight_layout()
    figure.savefig(path)
  finally:
    pyplot.close(figure)
  return path
