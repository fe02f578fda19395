# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe of each architecture runs from a cache by two gin lines."""

import re
import subprocess
import sys
import sysconfig

import pytest

from t5wild import exit_codes
from tests import multiprocess
from tests.end_to_end import binaries
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_TEXT = sysconfig.get_paths()['stdlib'] + '/json'


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
  done = subprocess.run(
      [sys.executable, '-m', 't5wild.cli', *arguments],
      env=multiprocess.process_environment(devices_per_process=1),
      cwd=multiprocess.ROOT,
      capture_output=True,
      text=True,
      check=False,
      timeout=runs.TIMEOUT_SECONDS,
  )
  assert done.returncode == exit_codes.DONE.code, done.stdout + done.stderr
  return done


@pytest.mark.parametrize(
    ('recipe', 'objective'),
    [
        ('quickstart', 'span_corruption'),
        ('lm_text', 'causal_lm'),
        ('prefix_lm_text', 'prefix_lm'),
    ],
)
def test_a_recipe_runs_from_a_cache_and_tells_its_samples(
    recipe, objective, tmp_path
):
  of_recipe = (f'--gin_file=recipes/{recipe}.gin', f'--gin.TEXT={_TEXT}')
  cached, run = tmp_path / 'cache', tmp_path / 'run'
  _run('cache', *of_recipe, f'--out={cached}', '--num_processes=1')
  done = _run(
      'train',
      *of_recipe,
      '--gin_file=data/cached.gin',
      f'--gin.CACHE_DIR={cached}',
      f'--gin.OBJECTIVE=@objectives.{objective}',
      f'--gin.MODEL_DIR={run}',
      '--gin.TRAIN_STEPS=2',
      '--gin.train_script.train.eval_steps=1',
      '--gin.train_script.train.actions=None',
      '--gin.train_script.train.run_eval_before_training=False',
  )
  assert 'on any number of hosts' in done.stderr
  assert 'nothing enters the scope' not in done.stderr
  told = _run('samples', f'--run={run}', '--step=2', '--text').stdout
  assert re.search(r'^row 0: local_text, epoch \d+, shard \d+', told, re.M)
  assert re.search(r'^  targets: \'.+\'$|^  targets: ".+"$', told, re.M)
  has_inputs = re.search('^  inputs: ', told, re.M) is not None
  assert has_inputs == (objective != 'causal_lm')
  found = _run('samples', f'--run={run}', '--find=def loads').stdout
  assert found.startswith('1 records have')
  if recipe == 'lm_text':
    moved = cached.rename(tmp_path / 'moved')
    again = _run(
        'samples', f'--run={run}', '--step=2', f'--gin.CACHE_DIR={moved}'
    ).stdout
    assert again.splitlines() == re.findall('^row .*$', told, re.M)
  if recipe == 'quickstart':
    _evaluate_and_infer_without_a_task(run, tmp_path)


def _evaluate_and_infer_without_a_task(run, tmp_path) -> None:
  """The task is the one that stands in the recipe beside the cache."""
  assert binaries.run('eval', f'--run={run}') == exit_codes.DONE.code
  figures = list((run / 'eval').glob('local_text_validation/*.jsonl'))
  assert figures
  prompts = tmp_path / 'prompts.txt'
  prompts.write_text('def loads(\n')
  output = tmp_path / 'outputs.jsonl'
  assert binaries.run(
      'infer', f'--run={run}', f'--input={prompts}', f'--output={output}'
  ) == exit_codes.DONE.code
  assert len(output.read_text().splitlines()) == 1
