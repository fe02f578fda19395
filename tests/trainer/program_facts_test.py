# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A program's facts tell programs apart, and runs that made the same one not.
"""

import json

import jax
import jax.numpy as jnp
import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.trainer import compile_ahead
from t5wild.trainer import program_agreement
from t5wild.trainer import program_facts
from tests.trainer import mean_model


def _facts(fn, *shapes):
  args = [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]
  lowered = jax.jit(fn).lower(*args)
  return program_facts.of_text(program_agreement.text_of(lowered))


def _layer(dtype, seed=1.0):
  def layer(x, w):
    noise = jnp.asarray([seed, 2.0, 3.0])  # as a key is one in a step
    return jnp.tanh(x.astype(dtype) @ w.astype(dtype)).sum() * noise

  return layer


def test_the_same_function_gives_the_same_facts():
  shapes = ((4, 8), (8, 2))
  once, again = (_facts(_layer(jnp.float32), *shapes) for _ in range(2))
  assert once == again
  assert once['operations']['dot_general f32'] == 1
  assert once['operations']['tanh'] == 1


def test_another_dtype_is_told_by_the_operations():
  shapes = ((4, 8), (8, 2))
  facts = _facts(_layer(jnp.bfloat16), *shapes)
  assert facts['operations']['dot_general bf16'] == 1
  assert facts['operations']['convert bf16'] >= 1
  assert facts['hash'] != _facts(_layer(jnp.float32), *shapes)['hash']


def test_another_seed_is_told_as_another_constant():
  shapes = ((4, 8), (8, 2))
  one = _facts(_layer(jnp.float32), *shapes)
  other = _facts(_layer(jnp.float32, seed=7.0), *shapes)
  assert one['hash'] != other['hash']
  assert one['hash_without_constants'] == other['hash_without_constants']


@pytest.mark.parametrize('is_ahead', [True, False])
def test_a_run_leaves_the_facts_of_the_step_it_trains_with(
    make_run, tmp_path, is_ahead
):
  batch = mean_model.make_batch()

  def make(state=None):
    trainer = make_run.trainer(
        mean_model.Mean(), batch, learning_rate_fn=lambda step: 0.5
    )
    trainer._summary_dir = str(tmp_path)
    return trainer

  trainer = make()
  shapes = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
      (trainer.train_state, batch),
  )
  one = compile_ahead.CompileAhead(
      make, state_shape=shapes[0], batch=shapes[1]
  )
  if is_ahead:
    one.start()
  one.finish(trainer)
  told = json.loads((tmp_path / 'program.json').read_text())
  assert told == trainer.program_facts
  assert sum(told['operations'].values()) > 10


def test_a_run_that_goes_on_with_another_program_tells_it(tmp_path):
  run = run_dir_lib.RunDir(str(tmp_path))
  first = _facts(lambda x: x * 2, ())
  program_facts.write(run, first, step=0)
  program_facts.write(run, first, step=10)
  assert not (tmp_path / 'events.jsonl').exists()
  program_facts.write(run, _facts(lambda x: x * 3, ()), step=20)
  program_facts.write(run, _facts(lambda x: x + 3, ()), step=30)
  lines = (tmp_path / 'events.jsonl').read_text().splitlines()
  events = [json.loads(line) for line in lines]
  assert [event['step'] for event in events] == [20, 30]
  assert {event['name'] for event in events} == {'program/changed'}
  assert 'in constants alone' in events[0]['text']
  assert 'in its operations' in events[1]['text']
  assert json.loads((tmp_path / 'program_before_step_20.json').read_text()) == (
      first
  )
  (tmp_path / 'program.json').write_text('{"hash"')
  program_facts.write(run, first, step=40)  # half of a file is no difference
  assert json.loads((tmp_path / 'program.json').read_text()) == first
