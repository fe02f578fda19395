# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/experiments.md, and prints what they foretell.

  python tools/draw_ladders.py docs/pictures

Beside each picture is the table of its runs, `ladder_NAME.csv`, as `t5wild
ladder --gin_file=ladders/NAME.gin` wrote it.
"""

import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from t5wild.experiments import findings
from t5wild.experiments import ladder as ladder_lib
from t5wild.experiments import ladder_picture
from t5wild.experiments import points
from t5wild.experiments import results

_TABLES = pathlib.Path(__file__).resolve().parents[1] / 'docs/pictures'


def rungs_of(path: pathlib.Path) -> list[ladder_lib.Rung]:
  """The runs of a table; the one foretold comes last."""
  with path.open(encoding='utf-8', newline='') as file:
    return [
        ladder_lib.Rung(
            size=row['size'],
            num_parameters=int(row['parameters']),
            num_steps=int(row['steps']),
            tokens=float(row['tokens']),
            flops=float(row['flops']),
            point=(point := points.Point(bindings={'run': row['run']})),
            result=results.Result(
                point=point,
                status=row['status'],
                value=float(row['loss']),
                seconds=float(row['seconds']),
            ),
        )
        for row in csv.DictReader(file)
    ]


def draw(folder: pathlib.Path) -> None:
  """Writes one PNG for each ladder, and says what it foretells."""
  for table in sorted(_TABLES.glob('ladder_*.csv')):
    found = findings.find(rungs_of(table), metric='loss')
    ladder_picture.draw(found, str(folder / f'{table.stem}.png'))
    print(table.stem, *found.lines, sep='\n')  # noqa: T201 -- the product


if __name__ == '__main__':
  draw(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else 'docs/pictures'))
