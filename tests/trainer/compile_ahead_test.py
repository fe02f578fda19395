# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A step compiled ahead is the step compiled in place, and never in the way."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.partitioning import compile_errors
from t5wild.trainer import agreement
from t5wild.trainer import compile_ahead
from tests.trainer import mean_model


@pytest.fixture
def make_trainer(make_run):
  model = mean_model.Mean()

  def make(state=None):
    trainer = make_run.trainer(
        model,
        mean_model.make_batch(),
        learning_rate_fn=lambda step: 0.5,
    )
    if state is not None:
      trainer.train_state = state
    return trainer

  return make


@pytest.fixture
def batch():
  return mean_model.make_batch()


def _shapes(tree):
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)


def _ahead(make, batch, state):
  return compile_ahead.CompileAhead(
      make, state_shape=_shapes(state), batch=_shapes(batch)
  )


def test_step_compiled_ahead_gives_the_bits_of_one_compiled_in_place(
    make_trainer, batch
):
  here, ahead = make_trainer(), make_trainer()
  here.compile_train(batch)
  here.train_step(batch)
  one = _ahead(make_trainer, batch, ahead.train_state)
  one.start()
  assert one.finish(ahead) > 0
  ahead.train_step(batch)
  jax.tree.map(
      np.testing.assert_array_equal,
      here.train_state.params,
      ahead.train_state.params,
  )


def test_start_does_not_wait_and_finish_does(make_trainer, batch):
  goes_on = threading.Event()
  made = []

  def make(state):
    assert goes_on.wait(60)
    made.append(make_trainer(state))
    return made[-1]

  trainer = make_trainer()
  one = _ahead(make, batch, trainer.train_state)
  one.start()
  assert not made
  goes_on.set()
  one.finish(trainer)
  assert trainer._compiled_train_step is made[0]._compiled_train_step


def test_state_of_another_type_is_compiled_for_anew(make_trainer, batch):
  trainer = make_trainer()
  one = _ahead(make_trainer, batch, trainer.train_state)
  one.start()
  state = trainer.train_state
  half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), state.params)
  trainer.train_state = state.replace_params(half)
  one.finish(trainer)
  trainer.train_step(batch)
  assert int(trainer.train_state.step) == 1


def test_error_of_compiling_ahead_is_that_of_the_trainer_itself(
    make_trainer, batch
):
  trainer = make_trainer()
  one = _ahead(make_trainer, {}, trainer.train_state)
  one.start()
  with pytest.raises(StopIteration):
    one.finish(trainer)


@pytest.mark.parametrize(
    'error',
    [
        compile_errors.CudnnError('no plan'),
        agreement.DisagreementError('another program'),
    ],
)
def test_what_compiling_anew_would_tell_again_is_raised_at_once(
    make_trainer, batch, monkeypatch, error
):
  trainer = make_trainer()
  compiled = []

  def compile_train(*args):
    compiled.append(args)
    raise error

  monkeypatch.setattr(type(trainer), 'compile_train', compile_train)
  one = _ahead(make_trainer, batch, trainer.train_state)
  one.start()
  with pytest.raises(type(error)) as raised:
    one.finish(trainer)
  assert raised.value is error
  assert len(compiled) == 1


def test_finish_without_a_start_compiles(make_trainer, batch):
  trainer = make_trainer()
  _ahead(make_trainer, batch, trainer.train_state).finish(trainer)
  assert trainer._compiled_train_step is not None
