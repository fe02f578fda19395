# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Every command of the docs runs as it stands, on few steps and few files."""

import re
import shutil

import pytest

from tests.end_to_end import docs_sandbox

pytestmark = pytest.mark.slow

# What is not run here, and why.
_NOT_RUN = {
    'pip install': 'CI installs in fresh environments, by the same lines',
    '--checkpoint=follow': 'waits for new checkpoints; eval_test runs it',
    'repositories/*/*': 'needs the public repositories; migration_draw_test',
    'THEIR.gin': 't5x_recipe_test and tests/compat run recipes of T5X',
    'tools/drill.py': 'minutes long; tests/faults does what it does',
    '# 2-way model parallel': 'arguments, not commands; quickstart.md has one',
    '--topology=': 'needs the compilers of aot-gpu, aot-tpu; planner tests',
    't5wild plan': 'the same',
    'sbatch': 'needs SLURM; slurm_test and the array job of sweeps run it',
    't5wild ladder': 'minutes long; tests/experiments climb a small one',
    'tools/make_scaling_table.py': 'needs the compilers',
    '...': 'a pattern, not a command; tests/faults runs such',
}
# The quickstart's run and my_run.gin's, under the names that pages call them.
_COPIES = {
    't5wild_quickstart': ('MODEL_DIR', 'runs/third'),
    'runs/first': ('runs/next', 'runs/second', 'runs/a', 'RUN'),
}
# Page -> names that stand for something of the reader's -> ours.
_OURS = {
    'checkpoints.md': {
        ' [--step N] [--arrays]': '', ' [--step N]': '', ' [--remove]': '',
        ' [--reason TEXT]': '', '--step N': '--step 4',
        'diff A B': 'diff runs/a/checkpoint_4 runs/next/checkpoint_4',
    },
    'evaluation.md': {'1000,2000': '0,4'},
    'data.md': {
        '/data/wikitext': 'wikitext',
        '--step=1234': '--step=2', '--document=web:3:4711': '--step=3',
    },
}
_PAGES = [
    docs_sandbox.ROOT / 'README.md',
    *sorted((docs_sandbox.ROOT / 'docs').glob('*.md')),
]


def _commands(page):
  for text in docs_sandbox.blocks(page):
    if not any(mark in text for mark in _NOT_RUN):
      for name, ours in _OURS.get(page.name, {}).items():
        text = text.replace(name, ours)
      yield text


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  """A folder with two trained runs."""
  folder = tmp_path_factory.mktemp('docs') / 'trained'
  docs_sandbox.make(folder)
  for text in (
      't5wild quickstart',
      't5wild train --gin_file=my_run.gin --gin.MODEL_DIR=runs/first',
  ):
    done = docs_sandbox.run(folder, text)
    assert done.returncode == 0, done.stdout + done.stderr
  for run, names in _COPIES.items():
    for name in names:
      shutil.copytree(folder / run, folder / name)
  return folder


@pytest.mark.parametrize(
    'page', [p for p in _PAGES if any(_commands(p))], ids=lambda p: p.name
)
def test_every_command_of_a_page_runs(page, trained, tmp_path):
  folder = tmp_path / 'here'
  shutil.copytree(trained, folder, symlinks=True)
  failed = []
  for text in _commands(page):
    done = docs_sandbox.run(folder, text)
    if done.returncode:
      failed.append(f'{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}')
  assert not failed, '\n\n'.join(failed)


def test_commands_stand_in_blocks_of_the_shell():
  for page in _PAGES:
    outside = [
        line
        for line in docs_sandbox.other_code(page)
        if line.lstrip('$ ').startswith('t5wild ')
        and not re.search(r'\[--|[A-Z]{3}|diff A B', line)  # a synopsis
    ]
    assert not outside, page.name
