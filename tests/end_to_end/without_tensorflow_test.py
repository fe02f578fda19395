# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training, and the benchmark, where neither TensorFlow nor seqio is.

Nodes with accelerators often have neither.
"""

import subprocess
import sys

import pytest

from t5wild import exit_codes
from tests import multiprocess
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_RECIPE = runs.RECIPE.with_name('synthetic.gin')
_BLOCK = """
import sys
for name in (
    'seqio', 'tensorflow', 'tensorflow_datasets', 'tensorflow_text', 't5'
):
  sys.modules[name] = None
"""
_TRAIN = """
from t5wild import train
sys.exit(train.run(['t5wild train', *sys.argv[1:]]))
"""
_BENCHMARK = """
import runpy
runpy.run_path('tools/benchmark.py', run_name='__main__')
"""


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run(
      [sys.executable, '-c', _BLOCK + program, *arguments],
      env=multiprocess.process_environment(devices_per_process=1),
      cwd=multiprocess.ROOT,
      capture_output=True,
      text=True,
      check=False,
      timeout=runs.TIMEOUT_SECONDS,
  )


def test_a_run_trains_on_synthetic_batches_saves_and_resumes(tmp_path):
  for steps in (4, 6):
    done = _run(
        _TRAIN,
        f'--gin_file={_RECIPE}',
        f'--gin.MODEL_DIR={tmp_path / "run"}',
        f'--gin.TRAIN_STEPS={steps}',
    )
    assert done.returncode == exit_codes.DONE.code, done.stderr
    assert (tmp_path / 'run' / f'checkpoint_{steps}').is_dir()
  assert 'at step 4' in done.stderr
  assert sorted(runs.losses(tmp_path / 'run')) == [2, 4, 6]


def test_the_benchmark_measures_a_step():
  done = _run(_BENCHMARK, 'step', '--runs=1', '--small')
  assert done.returncode == 0, done.stderr
  assert '"' in done.stdout
