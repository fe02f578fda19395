# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of a run's losses."""

import subprocess
import sys

import pytest

from t5wild import run_dir
from t5wild.reports import loss_curve
from t5wild.vitals import records as records_lib


@pytest.fixture
def run(tmp_path):
  run = run_dir.RunDir(str(tmp_path))
  writer = records_lib.RecordWriter(run.metrics_jsonl)
  for step in range(1, 30):
    for name, value in (('train', 5.0 / step), ('training_eval/x', 6.0 / step)):
      writer.write([
          records_lib.Record(step, 0.0, 0, f'{name}/{loss_curve.LOSS}', value),
          records_lib.Record(step, 0.0, 0, f'{name}/loss', 1000.0),
      ])
  writer.close()
  return run


def test_curves_are_per_token_and_training_comes_first(run):
  curves = loss_curve.read_curves(run.metrics_jsonl)
  assert list(curves) == ['train', 'training_eval/x']
  assert curves['train'][1].value == 2.5


def test_the_picture_is_a_png(run):
  pytest.importorskip('matplotlib')
  path = loss_curve.draw(
      run.path,
      compared=loss_curve.Compared(
          label='held out', points=[(0, 3.2), (20, 1.6)],
          level_label='unigram', level=3.15,
      ),
      title='quick',
  )
  assert path == run.loss_curve_png
  with open(path, 'rb') as picture:
    assert picture.read(8) == b'\x89PNG\r\n\x1a\n'


def test_a_run_without_losses_is_told_what_to_do(tmp_path):
  path = tmp_path / 'metrics.jsonl'
  path.write_text('')
  with pytest.raises(ValueError, match='no loss in .*expected.*stats_period'):
    loss_curve.read_curves(path)


def test_the_outer_wing_imports_with_jax_absent():
  code = (
      'import sys; sys.modules.update(dict.fromkeys('
      '["jax", "flax", "tensorflow", "seqio", "matplotlib"]));'
      'import t5wild.reports.loss_curve, t5wild.planner.formulas,'
      't5wild.hardware, t5wild.vitals, t5wild.exit_codes, t5wild.run_dir'
  )
  subprocess.run([sys.executable, '-c', code], check=True)
