# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedules against T5X's trace and against the formulas."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.optimizers import schedules

make = schedules.create_learning_rate_scheduler


def _rates(steps, **arguments):
  schedule = make(**arguments)
  return [float(schedule(jnp.asarray(step))) for step in steps]


def test_trace_equals_t5x(t5x_fixtures):
  outputs = np.load(t5x_fixtures / 'encoder_decoder' / 'outputs.npz')
  trace = outputs['train_trace_loss_lr_acc']
  rates = make(warmup_steps=10)(jnp.arange(len(trace)))
  np.testing.assert_allclose(rates, trace[:, 1], rtol=1e-6)


def test_first_step_of_a_warmup_has_the_minimum():
  assert _rates([0], min_learning_rate=1e-6) == [pytest.approx(1e-6)]


def test_linear_decay_rises_then_falls_by_the_factor():
  rates = _rates(
      [5, 10, 12, 40],
      factors='linear_decay',
      base_learning_rate=2.0,
      warmup_steps=10,
      decay_factor=0.05,
  )
  np.testing.assert_allclose(rates, [1.0, 2.0, 1.8, 1e-8], rtol=1e-5)


def test_rsqrt_normalized_decay_is_one_at_the_end_of_warmup():
  rates = _rates(
      [0, 100, 400], factors='rsqrt_normalized_decay', warmup_steps=100
  )
  np.testing.assert_allclose(rates, [1.0, 1.0, 0.5], rtol=1e-6)


def test_decay_every_multiplies_at_each_period():
  rates = _rates(
      [9, 10, 29],
      factors='constant * decay_every',
      base_learning_rate=1.0,
      decay_factor=0.5,
      steps_per_decay=10,
  )
  np.testing.assert_allclose(rates, [1.0, 0.5, 0.25])


def test_cosine_decay_falls_over_a_cycle_and_starts_again():
  rates = _rates(
      [0, 10, 35, 60, 85, 110],
      factors='constant * cosine_decay',
      base_learning_rate=1.0,
      warmup_steps=10,
      steps_per_cycle=100,
  )
  wanted = [1, 1] + [(1 + math.cos(math.pi * p)) / 2 for p in (0.25, 0.5, 0.75)]
  np.testing.assert_allclose(rates, [*wanted, 1.0], rtol=1e-5)


def test_step_offset_starts_the_schedule_later():
  assert _rates([1010], step_offset=1000) == _rates([10])
  assert _rates([10], step_offset=1000) == _rates([0])


def test_rates_are_float32():
  assert make()(jnp.asarray(3)).dtype == jnp.float32


def test_unknown_factor_offers_a_close_name():
  with pytest.raises(ValueError, match="'cosin_decay'.*'cosine_decay'"):
    make('constant * cosin_decay')


@pytest.mark.parametrize(
    ('factors', 'arguments'),
    [
        ('linear_warmup', {'warmup_steps': 0}),
        ('rsqrt_decay', {'warmup_steps': 0}),
        ('decay_every', {'steps_per_decay': 0}),
        ('cosine_decay', {'steps_per_cycle': -1}),
    ],
)
def test_numbers_without_a_finite_rate_are_refused(factors, arguments):
  (name,) = arguments
  with pytest.raises(ValueError, match=f'{name} = .*expected {name} > 0'):
    make(factors, **arguments)
