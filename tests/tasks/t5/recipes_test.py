# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Unchanged recipes that name T5's tasks run on local data, or stop at once."""

import json
import os
import random
import subprocess
import sys
import time

import pytest

from t5wild.data import train_vocabulary
from tests.tasks.t5 import tfds_files

_HEAD = """
from __gin__ import dynamic_registration

import __main__ as train_script
import seqio
import t5.data.mixtures
from t5x import adafactor
from t5x import models
from t5x import partitioning
from t5x import utils

include 't5x/examples/t5/t5_1_1/tiny.gin'
"""
_TAIL = """
BATCH_SIZE = 4
USE_CACHED_TASKS = False
train_script.train:
  eval_period = 2
  stats_period = 1
  eval_steps = 1
  random_seed = 0
"""
_PRETRAIN = f"""{_HEAD}
include 't5x/configs/runs/pretrain.gin'

MIXTURE_OR_TASK_NAME = 'c4_v220_span_corruption'
TASK_FEATURE_LENGTHS = {{'inputs': 32, 'targets': 16}}
TRAIN_STEPS = 2
DROPOUT_RATE = 0.0
{_TAIL}"""
_FINETUNE = f"""{_HEAD}
include 't5x/configs/runs/finetune.gin'

MIXTURE_OR_TASK_NAME = 'glue_rte_v002'
TASK_FEATURE_LENGTHS = {{'inputs': 32, 'targets': 8}}
INITIAL_CHECKPOINT_PATH = 'pretrained/checkpoint_2'
TRAIN_STEPS = 4
DROPOUT_RATE = 0.1
{_TAIL}"""
_WORDS = (
    'the', 'cat', 'sat', 'on', 'a', 'mat', 'and', 'dog', 'ran', 'over', 'hill',
    'house', 'tree', 'big',
)  # fmt: skip


def _train(recipe, *flags, folder):
  (folder / 'recipe.gin').write_text(recipe)
  return subprocess.run(
      [
          sys.executable, '-m', 't5wild.cli', 'train', '--gin_file=recipe.gin',
          *flags,
      ],
      capture_output=True, text=True, check=False, cwd=folder,
      env={**os.environ, 'XLA_FLAGS': '', 'T5WILD_HIDE_T5': '1'},
  )  # fmt: skip


def _names(run):
  lines = (run / 'metrics.jsonl').read_text().splitlines()
  return {json.loads(line)['name'] for line in lines}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """C4 as JSON lines, RTE in TFDS's form, and a vocabulary of 30 pieces."""
  folder = tmp_path_factory.mktemp('t5')
  generator = random.Random(0)
  texts = [' '.join(generator.choices(_WORDS, k=40)) for _ in range(200)]
  (folder / 'text.txt').write_text('\n'.join(texts))
  for split in ('train', 'validation'):
    path = folder / f'data/c4/en/2.2.0/c4-{split}.00000-of-00001.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(''.join(json.dumps({'text': t}) + '\n' for t in texts))
  tfds_files.write_rte(
      folder / 'data',
      {
          'train': tfds_files.rte_records(16),
          'validation': tfds_files.rte_records(4),
      },
  )
  (folder / 'vocab').mkdir()
  code = train_vocabulary.main([
      '--input', str(folder / 'text.txt'), '--vocab_size', '30',
      '--output', str(folder / 'vocab/sentencepiece.model'),
  ])  # fmt: skip
  assert not code
  return folder


@pytest.mark.slow
def test_recipes_of_t5s_tasks_train_and_are_evaluated_on_local_data(folder):
  flags = (f'--tfds_data_dir={folder}/data', f'--vocab_dir={folder}/vocab')
  done = _train(
      _PRETRAIN, '--gin.MODEL_DIR=pretrained', *flags, folder=folder
  )
  assert done.returncode == 0, done.stderr[-3000:]
  run = folder / 'pretrained'
  assert 'training_eval/c4_v220_span_corruption/loss' in _names(run)
  done = _train(_FINETUNE, '--gin.MODEL_DIR=tuned', *flags, folder=folder)
  assert done.returncode == 0, done.stderr[-3000:]
  assert 'inference_eval/glue_rte_v002/accuracy' in _names(folder / 'tuned')
  # The run's own record of its configuration is a recipe, too.
  done = _train(
      "include 'tuned/operative_config.gin'\nTRAIN_STEPS = 5\n",
      '--gin.MODEL_DIR=tuned', *flags, '--dry_run', folder=folder,
  )  # fmt: skip
  assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ('has_data', 'has_vocabulary', 'mend'),
    [(True, False, '--vocab_dir'), (False, True, '--tfds_data_dir')],
)
def test_what_cannot_be_reached_is_told_at_once_and_nothing_is_written(
    folder, has_data, has_vocabulary, mend
):
  (folder / 'empty').mkdir(exist_ok=True)
  flags = [f'--tfds_data_dir={folder / ("data" if has_data else "empty")}']
  if has_vocabulary:
    flags.append(f'--vocab_dir={folder}/vocab')
  # A proxy that nobody answers at stands for a network without the internet.
  flags.append('--gin.MODEL_DIR=never')
  os.environ['https_proxy'] = 'http://127.0.0.1:9'
  try:
    start = time.monotonic()
    done = _train(_PRETRAIN, *flags, folder=folder)
    seconds = time.monotonic() - start
  finally:
    del os.environ['https_proxy']
  assert done.returncode == 2, done.stderr[-3000:]
  assert mend in done.stderr
  assert not (folder / 'never').exists()
  # Less than six on a quiet machine; ten tries of a minute would be 600.
  assert seconds < 300
