# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is not finite is found, and the step from which on."""

import math

from clu import metrics as clu_metrics
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.trainer import finite


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_one_bad_number_among_many_arrays_is_found(bad):
  tree = {'a': jnp.zeros((3, 4)), 'b': {'c': jnp.ones(5, jnp.bfloat16)}}
  assert finite.all_finite(tree)
  tree['b']['c'] = tree['b']['c'].at[3].set(bad)
  assert not finite.all_finite(tree)


def test_whole_numbers_are_finite():
  assert finite.all_finite({'step': jnp.int32(3)})
  assert finite.all_finite({})


def _metrics(loss):
  return {
      'loss': clu_metrics.Average(
          total=jnp.float32(loss), count=jnp.float32(1)
      ),
      'other': clu_metrics.Average(
          total=jnp.float32(math.nan), count=jnp.float32(1)
      ),
  }


def test_the_first_bad_step_is_named_and_others_metrics_are_not_watched():
  watch = finite.NotFiniteWatch(['loss'])
  for step, loss in enumerate([1.0, 2.0, math.nan, math.inf], start=5):
    watch.add(step, _metrics(loss))
  assert watch.first() == 'train/loss is nan at step 7'


def test_steps_before_a_good_interval_end_are_forgotten():
  watch = finite.NotFiniteWatch(['loss'])
  watch.add(1, _metrics(math.nan))
  watch.add(2, _metrics(1.0))
  watch.judge(1, {'loss': 3.0})
  assert watch.first() is None


def test_a_bad_interval_is_remembered_until_a_good_one():
  watch = finite.NotFiniteWatch(['loss'])
  watch.add(1, _metrics(1.0))
  watch.add(2, _metrics(math.inf))
  watch.judge(2, {'loss': math.inf})
  for step in (3, 4):
    watch.add(step, _metrics(math.nan))
  assert watch.first() == 'train/loss is inf at step 2'
  watch.judge(4, {'loss': np.float64(1.0)})
  assert watch.first() is None


@pytest.mark.parametrize(
    ('kept', 'words'),
    [(None, 'no checkpoint was saved'), (40, 'checkpoint_40 is the newest')],
)
def test_the_error_says_where_it_stopped_and_what_is_left(kept, words):
  error = finite.NotFiniteError('loss is nan', after_step=44, kept=kept)
  assert words in str(error)
  assert 'stopped after step 44' in str(error)
