# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a recipe with some bindings comes to is known before it is run."""

import sys

import gin
import pytest

from t5wild import recipe_facts
from t5wild.planner import formulas
from tests import gin_registry

_RECIPE = 'recipes/quickstart.gin'
_DIR = "MODEL_DIR = '/placeholder'"


@pytest.fixture(autouse=True)
def fresh_gin(monkeypatch):
  gin_registry.forget()
  main = sys.modules['__main__']
  monkeypatch.setattr(main, 'train', None, raising=False)
  yield
  gin.clear_config()


def _answer(*points, with_costs=False):
  return recipe_facts.answer(
      recipe_facts.Request(
          gin_files=[_RECIPE],
          search_paths=['.'],
          points=[[_DIR, *point] for point in points],
          with_costs=with_costs,
      )
  )


def test_costs_are_those_of_the_arithmetic():
  told = _answer(['network.T5Config.emb_dim = 32'], with_costs=True)
  assert told['error'] is None
  shape = formulas.ModelShape(
      num_encoder_layers=2, num_decoder_layers=1, emb_dim=32, mlp_dim=256,
      num_heads=4, head_dim=32, vocab_size=384,
  )  # fmt: skip
  assert told['num_parameters'] == formulas.count_parameters(shape)
  assert told['tokens_per_step'] == 8 * (64 + 31)
  assert told['flops_per_step'] == formulas.train_step_flops(
      shape, batch=8, input_length=64, target_length=31
  )


def test_the_same_files_have_the_same_hash_whatever_is_bound():
  told = _answer(['BATCH_SIZE = 4'], ['BATCH_SIZE = 16'])
  assert told == _answer(['adafactor.Adafactor.beta1 = None'])
  assert told['error'] is None and len(told['texts']) == 64


@pytest.mark.parametrize(
    ('binding', 'expected'),
    [
        ('adafactor.Adafactor.betta1 = 0.5', "did you mean 'beta1'"),
        ('BATCHSIZE = 4', 'BATCHSIZE'),
        ("train_script.train.eval_steps = 'ten'", 'eval_steps'),
    ],
)
def test_what_a_run_would_refuse_is_told_of_any_point(binding, expected):
  told = _answer(['BATCH_SIZE = 4'], [binding])
  assert expected in told['error'] and 'expected' in told['error']


def test_two_names_of_one_parameter_are_refused():
  told = _answer([
      'train_script.train.eval_steps = 1', 't5wild.train.train.eval_steps = 2'
  ])  # fmt: skip
  assert 'are one parameter' in told['error']
