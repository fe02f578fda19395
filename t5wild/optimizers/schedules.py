# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Learning rate as a function of the step, written as a product of factors.

`'constant * linear_warmup * rsqrt_decay'` is a schedule; every factor is a
function in this file. Names and numbers are checked when the schedule is
built, not at the step that first meets them.
"""

from collections.abc import Callable
import dataclasses
import difflib

from absl import logging
import jax
import jax.numpy as jnp

Schedule = Callable[[jax.Array], jax.Array]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Numbers:
  """The numbers that factors read."""

  base_learning_rate: float
  warmup_steps: int
  decay_factor: float
  steps_per_decay: int
  steps_per_cycle: int


def _constant(step, n: _Numbers):
  del step
  return n.base_learning_rate


def _linear_warmup(step, n: _Numbers):
  return jnp.minimum(1.0, step / n.warmup_steps)


def _linear_decay(step, n: _Numbers):
  falling = 1.0 + n.decay_factor * (n.warmup_steps - step)
  return n.base_learning_rate * jnp.minimum(step / n.warmup_steps, falling)


def _rsqrt_decay(step, n: _Numbers):
  return 1.0 / jnp.sqrt(jnp.maximum(step, n.warmup_steps))


def _rsqrt_normalized_decay(step, n: _Numbers):
  return jnp.sqrt(n.warmup_steps) / jnp.sqrt(jnp.maximum(step, n.warmup_steps))


def _decay_every(step, n: _Numbers):
  return n.decay_factor ** (step // n.steps_per_decay)


def _cosine_decay(step, n: _Numbers):
  cycles = jnp.maximum(0.0, (step - n.warmup_steps) / float(n.steps_per_cycle))
  return jnp.maximum(0.0, 0.5 * (1.0 + jnp.cos(jnp.pi * (cycles % 1.0))))


# Name -> (factor, numbers that must be above zero for it to be finite).
_FACTORS = {
    'constant': (_constant, ()),
    'linear_warmup': (_linear_warmup, ('warmup_steps',)),
    'linear_decay': (_linear_decay, ('warmup_steps',)),
    'rsqrt_decay': (_rsqrt_decay, ('warmup_steps',)),
    'rsqrt_normalized_decay': (_rsqrt_normalized_decay, ('warmup_steps',)),
    'decay_every': (_decay_every, ('steps_per_decay',)),
    'cosine_decay': (_cosine_decay, ('steps_per_cycle',)),
}


def create_learning_rate_scheduler(
    factors: str = 'constant * linear_warmup * rsqrt_decay',
    base_learning_rate: float = 0.5,
    warmup_steps: int = 1000,
    decay_factor: float = 0.5,
    steps_per_decay: int = 20000,
    steps_per_cycle: int = 100000,
    step_offset: int = 0,
    min_learning_rate: float = 1e-8,
) -> Schedule:
  """Returns step -> learning rate (float32), the product of `factors`.

  Factors: `constant`: the base rate. `linear_warmup`: from 0 to 1 over
  `warmup_steps`. `linear_decay`: base rate, warm-up, then a fall of
  `decay_factor` of it per step; used alone. `rsqrt_decay`: 1/sqrt(step), flat
  during warm-up. `rsqrt_normalized_decay`: the same, 1 at the end of warm-up.
  `decay_every`: times `decay_factor` every `steps_per_decay`. `cosine_decay`:
  from 1 to 0 over `steps_per_cycle` after the warm-up, then again.

  Args:
    factors: Names of factors joined by '*'.
    base_learning_rate: Read by `constant` and `linear_decay`.
    warmup_steps: Length of the warm-up.
    decay_factor: Read by `linear_decay` and `decay_every`.
    steps_per_decay: Read by `decay_every`.
    steps_per_cycle: Read by `cosine_decay`.
    step_offset: Step at which the schedule starts.
    min_learning_rate: The rate never falls below it; step 0 of a warm-up has
      it.

  Raises:
    ValueError: For an unknown factor, or a number with which one is not finite.
  """
  numbers = _Numbers(
      base_learning_rate=base_learning_rate,
      warmup_steps=warmup_steps,
      decay_factor=decay_factor,
      steps_per_decay=steps_per_decay,
      steps_per_cycle=steps_per_cycle,
  )
  names = [name.strip() for name in factors.split('*')]
  for name in names:
    _check_factor(name, factors=factors, numbers=numbers)
  _hint_at_double_factors(names, factors=factors)

  def learning_rate(step: jax.Array) -> jax.Array:
    step = jnp.maximum(0, step - step_offset)
    rate = 1.0
    for name in names:
      rate *= _FACTORS[name][0](step, numbers)
    return jnp.asarray(jnp.maximum(rate, min_learning_rate), jnp.float32)

  return learning_rate


def _check_factor(name: str, *, factors: str, numbers: _Numbers) -> None:
  if name not in _FACTORS:
    close = difflib.get_close_matches(name, list(_FACTORS), n=1)
    hint = f' (did you mean {close[0]!r}?)' if close else ''
    raise ValueError(
        f'unknown learning rate factor {name!r} in {factors!r}, expected '
        f'{", ".join(sorted(_FACTORS))}{hint}: correct '
        'create_learning_rate_scheduler.factors'
    )
  for field in _FACTORS[name][1]:
    value = getattr(numbers, field)
    if value <= 0:
      raise ValueError(
          f'{field} = {value!r} makes the learning rate factor {name!r} '
          f'infinite or undefined, expected {field} > 0: set '
          f'create_learning_rate_scheduler.{field} or drop {name!r} from '
          f'{factors!r}'
      )


def _hint_at_double_factors(names: list[str], *, factors: str) -> None:
  doubled = {'constant', 'linear_warmup'} & set(names)
  if 'linear_decay' in names and doubled:
    logging.warning(
        "learning rate factors %r: 'linear_decay' already holds the base rate "
        'and the warm-up, so %s apply twice',
        factors,
        ' and '.join(sorted(doubled)),
    )
