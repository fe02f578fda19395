# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The reference's whole training step: loss, gradients, Adafactor."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from benchmarks import reference

_MIN_SIZE_TO_FACTOR = 128


class State(NamedTuple):
  """Parameters and Adafactor's statistics, donated from step to step."""

  step: jax.Array
  params: reference.Params
  moments: Any


def _is_factored(shape) -> bool:
  return len(shape) == 2 and min(shape) >= _MIN_SIZE_TO_FACTOR


def _first_moments(param):
  if _is_factored(param.shape):
    return jnp.zeros(param.shape[:1]), jnp.zeros(param.shape[1:])
  return (jnp.zeros(param.shape),)


def make_state(params: reference.Params) -> State:
  """State before the first step."""
  leaves, structure = jax.tree.flatten(params)
  moments = structure.unflatten(map(_first_moments, leaves))
  return State(jnp.zeros((), jnp.int32), params, moments)


def _update(param, gradient, moments, decay, learning_rate):
  """Adafactor without momentum (Shazeer and Stern 2018, algorithm 4)."""
  square = lax.square(gradient) + 1e-30
  if _is_factored(param.shape):
    row = decay * moments[0] + (1 - decay) * jnp.mean(square, axis=1)
    column = decay * moments[1] + (1 - decay) * jnp.mean(square, axis=0)
    moments = row, column
    direction = gradient * lax.rsqrt(row / jnp.mean(row))[:, None]
    direction = direction * lax.rsqrt(column)[None, :]
  else:
    moments = (decay * moments[0] + (1 - decay) * square,)
    direction = gradient * lax.rsqrt(moments[0])
  size = jnp.sqrt(jnp.mean(lax.square(direction)))
  scale = jnp.maximum(jnp.sqrt(jnp.mean(lax.square(param))), 1e-3)
  rate = learning_rate * scale / jnp.maximum(1.0, size)
  return param - rate * direction, moments


def make_step(
    *, sizes: reference.Sizes, learning_rate: float, key: jax.Array
) -> Callable[[State, dict[str, jax.Array]], tuple[State, jax.Array]]:
  """The function (state, batch) -> (state, loss), to be jitted."""

  def loss_of(params, batch, step):
    step_key = jax.random.fold_in(key, step)
    return reference.loss_fn(params, batch, step_key, sizes=sizes)

  def step_fn(state, batch):
    loss, gradients = jax.value_and_grad(loss_of)(
        state.params, batch, state.step
    )
    decay = 1.0 - (state.step.astype(jnp.float32) + 1.0) ** -0.8
    leaves, structure = jax.tree.flatten(state.params)
    updated = [
        _update(param, gradient, moments, decay, learning_rate)
        for param, gradient, moments in zip(
            leaves,
            jax.tree.leaves(gradients),
            structure.flatten_up_to(state.moments),
            strict=True,
        )
    ]
    params = structure.unflatten([param for param, _ in updated])
    moments = structure.unflatten([moments for _, moments in updated])
    return State(state.step + 1, params, moments), loss

  return step_fn


class Runner:
  """A compiled reference step that keeps its own state."""

  def __init__(self, params, batch, **kwargs):
    """Compiles for batches like this one; see `make_step` for the rest."""
    self.state = make_state(jax.tree.map(jnp.copy, params))
    step = jax.jit(make_step(**kwargs), donate_argnums=0)
    self.compiled = step.lower(self.state, batch).compile()

  def __call__(self, batch) -> jax.Array:
    """One step, waited for; returns the loss."""
    self.state, loss = self.compiled(self.state, batch)
    jax.block_until_ready(self.state.params)
    return loss
