# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints stay."""

import math

import hypothesis
from hypothesis import strategies as st
import pytest

from t5wild.checkpoints import retention

_STEPS = st.sets(st.integers(0, 10**6), max_size=20)
_COUNT = st.none() | st.integers(1, 5)


def _removed(steps, metrics=None, **rules):
  values = {step: {'loss': value} for step, value in (metrics or {}).items()}
  policy = retention.Policy(**rules)
  return retention.steps_to_remove(steps, policy=policy, metrics=values)


@hypothesis.given(_STEPS, _COUNT, _COUNT, st.booleans())
def test_newest_checkpoint_always_stays(steps, keep, keep_best, without):
  removed = _removed(
      steps,
      metrics={step: -step for step in steps if step % 2},
      keep=keep,
      keep_best=keep_best,
      best_metric='loss',
      keep_without_metric=without,
  )
  assert set(removed) <= steps
  if steps:
    assert max(steps) not in removed


@hypothesis.given(_STEPS, st.integers(1, 5))
def test_keep_leaves_the_newest_so_many(steps, keep):
  removed = _removed(steps, keep=keep)
  assert sorted(steps - set(removed)) == sorted(steps)[-keep:]


def test_nothing_goes_without_a_rule():
  assert _removed({0, 1, 2}) == []


@pytest.mark.parametrize(
    ('mode', 'expected'), [('min', [1, 3, 4]), ('max', [1, 2, 3])]
)
def test_best_stay_besides_the_newest(mode, expected):
  losses = {1: 5.0, 2: 1.0, 3: 4.0, 4: 9.0, 5: 3.0}
  removed = _removed(
      losses, losses, keep=1, keep_best=1, best_metric='loss', best_mode=mode
  )
  assert removed == expected


def test_later_of_two_equally_good_stays():
  losses = {1: 1.0, 2: 1.0, 3: 9.0}
  removed = _removed(
      losses, losses, keep=1, keep_best=1, best_metric='loss', best_mode='min'
  )
  assert removed == [1]


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_value_that_is_not_finite_is_the_worst(value):
  losses = {1: value, 2: 7.0, 3: 9.0}
  for mode in retention.BEST_MODES:
    removed = _removed(
        losses, losses, keep=1, keep_best=1, best_metric='loss', best_mode=mode
    )
    assert 1 in removed


@pytest.mark.parametrize(('stay', 'expected'), [(True, [2]), (False, [1, 2])])
def test_checkpoint_without_a_value_stays_only_if_told(stay, expected):
  removed = _removed(
      {1, 2, 3, 4}, {2: 5.0, 3: 1.0}, keep=1, keep_best=1, best_metric='loss',
      best_mode='min', keep_without_metric=stay,
  )  # fmt: skip
  assert removed == expected


def test_checkpoints_at_multiples_of_keep_period_stay():
  assert _removed({10, 15, 20, 25}, keep=1, keep_period=10) == [15]


def test_dataset_states_go_oldest_first():
  assert retention.dataset_states_to_remove({3, 1, 2}, keep=1) == [1, 2]
  assert retention.dataset_states_to_remove({3, 1, 2}, keep=None) == []


def test_metric_that_never_comes_is_explained_with_close_names():
  policy = retention.Policy(keep_best=1, best_metric='training_eval/x/los')
  text = retention.explain_missing_metric(
      policy, {'training_eval/x/loss': 1.0, 'train/accuracy': 0.5}
  )
  assert "'training_eval/x/los'" in text
  assert "did you mean ['training_eval/x/loss'" in text
  known = {'training_eval/x/los': 1.0}
  assert retention.explain_missing_metric(policy, known) is None


@pytest.mark.parametrize(
    ('rules', 'shown'),
    [
        ({'keep': 0}, 'keep is 0'),
        ({'keep_period': -1}, 'keep_period is -1'),
        ({'best_mode': 'most'}, "best_mode is 'most'"),
        ({'keep_best': 2}, 'best_metric is None'),
    ],
)
def test_rules_that_mean_nothing_are_refused(rules, shown):
  with pytest.raises(ValueError, match=shown):
    retention.Policy(**rules)


@hypothesis.given(_STEPS, st.integers(1, 5), st.data())
def test_newest_healthy_checkpoint_always_stays(steps, keep, data):
  healthy = data.draw(st.sets(st.sampled_from(sorted(steps)))) if steps else ()
  removed = retention.steps_to_remove(
      steps, policy=retention.Policy(keep=keep), healthy=healthy
  )
  if healthy:
    assert max(healthy) not in removed
  assert len(steps) - len(removed) <= keep + 1
