# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe in T5X's words trains, and its own config is read again."""

import json
import os
import subprocess
import sys

import pytest

RECIPE = """
from __gin__ import dynamic_registration

import __main__ as train_script
import seqio
from t5x import adafactor
from t5x import models
from t5x import utils
from t5x.examples.scalable_t5 import network
from t5wild.tasks import local_text

include 't5x/examples/scalable_t5/t5_1_1/small.gin'
include 't5x/configs/runs/pretrain.gin'

MIXTURE_OR_TASK_NAME = @local_text.text_task()
local_text.text_task.paths = %TEXT
TASK_FEATURE_LENGTHS = {'inputs': 32, 'targets': 16}
TRAIN_STEPS = 2
DROPOUT_RATE = 0.0
BATCH_SIZE = 8
USE_CACHED_TASKS = False
VOCABULARY = @seqio.ByteVocabulary()
seqio.ByteVocabulary.extra_ids = 125

network.T5Config:
  vocab_size = 384
  dtype = 'float32'
  emb_dim = 8
  num_heads = 2
  head_dim = 4
  mlp_dim = 16
  num_encoder_layers = 2
  num_decoder_layers = 2

train_script.train:
  train_eval_dataset_cfg = None
  eval_period = 2
  stats_period = 1
  random_seed = 0
utils.SaveCheckpointConfig.period = 2
adafactor.Adafactor.decay_rate = 0.8
models.EncoderDecoderModel.predict_batch_with_aux.num_decodes = 2
"""


def _t5wild(*arguments, cwd):
  done = subprocess.run(
      [sys.executable, '-m', 't5wild.cli', *arguments],
      capture_output=True, text=True, check=False, cwd=cwd,
      env={**os.environ, 'XLA_FLAGS': ''},
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return done


@pytest.mark.slow
def test_a_recipe_of_t5x_trains_and_its_run_is_known_by_its_own_config(
    tmp_path,
):
  (tmp_path / 'text.txt').write_text('a line of text to learn\n' * 200)
  (tmp_path / 'recipe.gin').write_text(RECIPE)
  run = tmp_path / 'run'
  done = _t5wild(
      '--run_mode=train', '--gin_file=recipe.gin',
      f'--gin.MODEL_DIR={run}', f'--gin.TEXT={tmp_path}/text.txt',
      '--gin.utils.create_learning_rate_scheduler.warmup_steps=100',
      cwd=tmp_path,
  )  # fmt: skip
  assert 't5x.utils.DatasetConfig is now t5wild.data.DatasetConfig' in (
      done.stderr
  )
  records = [
      json.loads(line) for line in (run / 'metrics.jsonl').open()
  ]
  losses = [r['value'] for r in records if r['name'] == 'train/loss']
  assert len(losses) == 2
  (tmp_path / 'inputs.txt').write_text('some text\n')
  _t5wild(
      'infer', f'--run={run}', '--input=inputs.txt',
      '--output=outputs.jsonl', cwd=tmp_path,
  )  # fmt: skip
