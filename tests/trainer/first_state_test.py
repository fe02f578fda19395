# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a first state is booked, and what is said before it."""

import jax
import jax.numpy as jnp
import pytest

from t5wild.trainer import initializer
from t5wild.vitals import goodput


def test_a_state_from_scratch_is_announced_and_booked_as_init(caplog):
  now = [0.0]
  ledger = goodput.Ledger(clock=lambda: now[0])

  def make(rng):
    assert 'the first state' in caplog.text
    now[0] += 37.0
    return jax.random.key_data(rng) + jnp.uint32(0)

  with caplog.at_level('INFO'), ledger.span('restore'):
    now[0] += 1.0
    state = initializer.booked(make, ledger)(jax.random.key(1))
  assert (state == jax.random.key_data(jax.random.key(1))).all()
  seconds = ledger.seconds()
  assert seconds['init'] == pytest.approx(37.0)
  assert seconds['restore'] == pytest.approx(1.0)
