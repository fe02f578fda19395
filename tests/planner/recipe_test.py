# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Recipes are read where neither their data nor their folders are."""

import pathlib
import re

import gin
import pytest

from t5wild import gin_utils
from t5wild.planner import worker

_README = pathlib.Path(__file__).parents[2] / 'README.md'


@pytest.fixture
def recipe_file(tmp_path):
  """The recipe of README.md, in a file."""
  recipe = re.search(r'```gin\n(.*?)```', _README.read_text(), re.DOTALL)[1]
  file = tmp_path / 'my_run.gin'
  file.write_text(recipe)
  yield file
  gin.clear_config()


def test_the_readmes_recipe_needs_no_texts_and_no_folder(recipe_file):
  read = worker._read_recipe([f'--gin_file={recipe_file}'])
  assert read.model_dir == ''
  assert read.total_steps == 10000
  assert read.batch['encoder_input_tokens'].shape == (16, 256)
  assert read.dataset_cfg.split == 'train'


def test_a_folder_that_is_given_is_kept(recipe_file):
  read = worker._read_recipe(
      [f'--gin_file={recipe_file}', '--gin.MODEL_DIR=runs/first']
  )
  assert read.model_dir == 'runs/first'


def test_what_else_is_required_is_still_asked_for(recipe_file):
  text = recipe_file.read_text().replace('TRAIN_STEPS = 10000', '')
  recipe_file.write_text(text)
  with pytest.raises(gin_utils.GinError, match='TRAIN_STEPS') as error:
    worker._read_recipe([f'--gin_file={recipe_file}'])
  assert 'MODEL_DIR' not in str(error.value)


def test_a_task_that_is_named_keeps_its_name(recipe_file):
  read = worker._read_recipe([
      f'--gin_file={recipe_file}', '--gin.MIXTURE_OR_TASK_NAME=no_such_task',
  ])  # fmt: skip
  assert read.dataset_cfg.mixture_or_task_name == 'no_such_task'
