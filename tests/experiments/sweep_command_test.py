# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The command: what it leaves, what it refuses, and as an array job."""

import csv
import os
import pathlib
import sys

import gin
import pytest

from t5wild import exit_codes
from t5wild.experiments import array_job
from t5wild.experiments import points as points_lib
from t5wild.experiments import recipes
from t5wild.experiments import runner
from t5wild.experiments import sweep_command
from tests.experiments import made_sweep
from tests.partitioning import slurm_cluster

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_GIN = """
from __gin__ import dynamic_registration
from t5wild.experiments import designs
from t5wild.experiments import sweep
sweep.Sweep:
  recipe = 'made.gin'
  metric = 'training_eval/made/loss'
  values = {'x': [3, 1, 2]}
"""


@pytest.fixture(autouse=True)
def made(monkeypatch, tmp_path):
  """Trains by the stand-in, in a folder with `sweep.gin`."""
  monkeypatch.setenv('PYTHONPATH', str(_ROOT))
  monkeypatch.setattr(recipes, 'check', lambda recipe, points: {'texts': ''})
  monkeypatch.setattr(runner, 'TRAIN', made_sweep.PROGRAM)
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'sweep.gin').write_text(_GIN)
  yield
  gin.clear_config()


def _sweep(*flags):
  gin.clear_config()
  return sweep_command.main(['--gin_file=sweep.gin', '--output=out', *flags])


def _rows():
  with open('out/sweep.csv', encoding='utf-8') as file:
    return list(csv.DictReader(file))


def test_the_command_leaves_a_table_and_a_page(capsys):
  assert _sweep() == exit_codes.DONE.code
  out = capsys.readouterr().out
  assert 'Best: --gin.x=1' in out and '3 done.' in out
  assert [row['x'] for row in _rows()] == ['1', '2', '3']
  assert os.path.getsize('out/sweep.html') > 1000
  # A flag changes the sweep as it changes any recipe.
  assert _sweep('--gin.sweep.Sweep.goal=max') == 0
  assert [row['x'] for row in _rows()] == ['3', '2', '1']


def test_a_sweep_with_runs_that_failed_ends_with_a_failure(capsys):
  values = "--gin.sweep.Sweep.values={'x': [1, 'boom']}"
  assert _sweep(values) == exit_codes.FAILED.code
  assert '1 done, 1 failed' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('flags', 'told'),
    [
        (['--gin.sweep.Sweep.valuess={}'], "did you mean 'values'"),
        (['--gin.sweep.Sweep.values={}'], 'nothing differs'),
        (['--gin.sweep.Sweep.metric=lost'], 'training_eval/made/loss'),
        (['--table'], "no experiment in 'out'"),
        (['--index=3'], 'expected: 0 to 2'),
        (['--gin.sweep.Sweep.num_parallel=0'], 'num_parallel is 0'),
        (
            ["--gin.sweep.Sweep.environments=[{'A': '1'}, {'A': '2'}]"],
            '2 environments for 1 runs',
        ),
        (
            [
                '--array',
                '--gin.sweep.Sweep.method=@designs.SuccessiveHalving()',
                '--gin.designs.SuccessiveHalving.first_steps=1',
                '--gin.designs.SuccessiveHalving.last_steps=9',
                '--gin.designs.SuccessiveHalving.first=@designs.Grid()',
            ],
            'cannot be an array job',
        ),
    ],
)
def test_bad_input_is_answered_in_three_parts(capsys, flags, told):
  assert _sweep(*flags) == exit_codes.BAD_CONFIG.code
  error = capsys.readouterr().err
  assert told in error and 'expected:' in error and 'do:' in error
  assert 'Traceback' not in error


def test_what_the_recipe_refuses_is_told_before_any_run(monkeypatch, capsys):
  def check(recipe, points):
    raise points_lib.BadExperimentError('there is no x\n  expected: y\n  do: y')

  monkeypatch.setattr(recipes, 'check', check)
  assert _sweep() == exit_codes.BAD_CONFIG.code
  assert 'there is no x' in capsys.readouterr().err
  assert not os.path.exists('out')


def test_an_index_is_a_run_and_the_table_shows_them_together(capsys):
  assert _sweep('--index=1') == 0
  assert _sweep('--table') == exit_codes.FAILED.code
  assert [row['status'] for row in _rows()] == ['done', 'missing', 'missing']
  assert _sweep('--index=0') == _sweep('--index=2') == 0
  assert _sweep('--table') == 0


def test_an_option_that_the_sweep_sets_itself_is_refused():
  with pytest.raises(points_lib.BadExperimentError, match='array'):
    array_job.script(
        ['sweep'], num_runs=1, num_parallel=1, folder='f',
        options={'--array': '0-5'},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_real_array_job_trains_each_run_once(tmp_path):
  missing = slurm_cluster.missing_programs()
  if missing:
    pytest.skip(
        f'no SLURM here, {missing} not found: apt-get install slurm-wlm munge'
    )
  assert _sweep('--array', "--gin.sweep.Sweep.slurm_options={'time': 5}") == 0
  script = tmp_path / 'out' / 'array.sh'
  text = script.read_text()
  assert '#SBATCH --array=0-2%1' in text and '#SBATCH --time=5' in text
  # The stand-in trains in a task, too.
  script.write_text(text.replace('t5wild.cli', 'tests.experiments.made_sweep'))
  with slurm_cluster.one_node() as cluster:
    status, log = cluster.run(
        [str(script)], env={'PYTHONPATH': f'{_ROOT}:{":".join(sys.path)}'}
    )
  assert status == 0, log
  assert _sweep('--table') == 0
  assert [row['x'] for row in _rows()] == ['1', '2', '3']
  starts = (tmp_path / 'out' / 'runs').glob('*/starts')
  assert [len(path.read_text().splitlines()) for path in starts] == [1, 1, 1]
