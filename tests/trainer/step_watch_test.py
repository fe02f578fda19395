# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps are judged a few steps late, alike after a restart."""

import json
import math
import types

import hypothesis
from hypothesis import strategies as st
import pytest

from t5wild.trainer import step_watch
from t5wild.trainer import update_guard
from t5wild.vitals import answers as answers_lib
from t5wild.vitals import spikes

_QUICK = spikes.Sensitivity(window_steps=9, warm_up_steps=4, least_rise=0.5)


def _metrics(loss=1.0, norm=1.0, skipped=None):
  def of(total, **more):
    return types.SimpleNamespace(total=total, **more)

  metrics = {
      'loss_per_nonpadding_target_token': of(loss * 8, count=8),
      'weight_gradient_norm': of(norm),
  }
  if skipped is not None:
    metrics['updates_skipped'] = of(float(skipped))
  return metrics


def _watch(*, guard=None, **answers):
  told = []
  watch = step_watch.StepWatch(
      answers_lib.Answers(loss=_QUICK, gradient=_QUICK, **answers),
      guard=guard,
      on_finding=told.append,
  )
  return watch, told


def _run(watch, series, *, first_step=1):
  """The step after which an answer is asked for, and the finding."""
  for step, metrics in enumerate(series, start=first_step):
    found = watch.after_step(step, metrics)
    if found is not None:
      return step, found
  return None


def _spiked(spike, *, before=12, after=8):
  return [*[_metrics()] * before, spike, *[_metrics()] * after]


@pytest.mark.parametrize(
    ('spike', 'kind'),
    [
        (_metrics(loss=5.0), 'loss_spike'),
        (_metrics(norm=5.0), 'gradient_spike'),
        (_metrics(loss=math.nan), 'not_finite'),
        (_metrics(norm=math.inf), 'not_finite'),
    ],
)
def test_a_fault_is_answered_after_the_same_step_whatever_it_is(spike, kind):
  watch, told = _watch(**{kind: 'rewind'})
  step, found = _run(watch, _spiked(spike))
  assert (found.kind, found.step, found.answer) == (kind, 13, 'rewind')
  assert step == 13 + step_watch.LOOK_AFTER
  assert [one.kind for one in told] == [kind]


@pytest.mark.parametrize(
    'spike', [_metrics(loss=5.0), _metrics(norm=5.0), _metrics(loss=math.nan)]
)
def test_by_default_a_fault_is_told_and_the_run_goes_on(spike):
  watch, told = _watch()
  assert _run(watch, _spiked(spike)) is None
  assert len(told) == 1
  assert watch.last_fault == 13


def test_numbers_that_stay_not_finite_are_told_once():
  watch, told = _watch()
  _run(watch, [*[_metrics()] * 5, *[_metrics(loss=math.nan)] * 9])
  assert len(told) == 1


def test_what_a_skipped_update_shows_asks_for_nothing_more():
  guard = update_guard.UpdateGuard(gradient=_QUICK)
  watch, told = _watch(guard=guard, not_finite='rewind', loss_spike='stop')
  spike = _metrics(loss=math.nan, norm=math.nan, skipped=True)
  assert _run(watch, _spiked(spike)) is None
  assert [one.kind for one in told] == ['not_finite', 'skipped_update']


def test_updates_left_out_one_after_the_other_stop_the_run():
  guard = update_guard.UpdateGuard(gradient=_QUICK, max_in_a_row=3)
  watch, _ = _watch(guard=guard)
  skipped = _metrics(norm=math.nan, skipped=True)
  step, found = _run(watch, [*[_metrics(skipped=False)] * 6, *[skipped] * 9])
  assert (found.kind, found.answer, found.step) == (
      'skips_in_a_row', 'stop', 10
  )  # fmt: skip
  assert step == 10 + step_watch.LOOK_AFTER


def test_the_limit_of_updates_is_what_finished_steps_make_usual():
  watch, _ = _watch(guard=update_guard.UpdateGuard(gradient=_QUICK))
  assert watch.limit_at(1) == math.inf
  _run(watch, [_metrics(norm=2.0, skipped=False)] * 9)
  assert watch.limit_at(10) == pytest.approx(3.0)  # half above the median
  without, _ = _watch()
  assert without.limit_at(1) is None


def test_the_last_steps_are_looked_at_when_the_run_ends():
  watch, _ = _watch(loss_spike='rewind')
  assert _run(watch, [*[_metrics()] * 9, _metrics(loss=9.0)]) is None
  assert watch.look_at_all().step == 10


@hypothesis.given(st.integers(0, 20))
def test_resumed_after_any_step_the_findings_are_the_same(cut):
  series = [*_spiked(_metrics(loss=4.0)), _metrics(norm=math.nan)] * 2
  whole, expected = _watch(guard=update_guard.UpdateGuard(gradient=_QUICK))
  _run(whole, series)
  first, found = _watch(guard=update_guard.UpdateGuard(gradient=_QUICK))
  _run(first, series[:cut])
  second, found_later = _watch(guard=update_guard.UpdateGuard(gradient=_QUICK))
  second.load(json.loads(json.dumps(first.state())))
  _run(second, series[cut:], first_step=cut + 1)
  assert repr(found + found_later) == repr(expected)
  assert second.limit_at(99) == whole.limit_at(99)


def test_from_nothing_it_warms_up_anew():
  watch, _ = _watch(guard=update_guard.UpdateGuard(gradient=_QUICK))
  _run(watch, [_metrics(skipped=False)] * 9)
  watch.load(None)
  assert watch.limit_at(1) == math.inf


def test_a_model_that_tells_neither_loss_nor_gradient_is_not_judged():
  watch, told = _watch()
  assert _run(watch, [{}] * 20) is None
  assert not told


def test_looking_at_all_ends_with_the_first_fault_that_asks_for_an_answer():
  watch, told = _watch(not_finite='rewind')
  for step in range(1, step_watch.LOOK_AFTER + 1):
    loss = math.nan if step > 1 else 1.0
    assert watch.after_step(step, _metrics(loss=loss)) is None
  found = watch.look_at_all()
  assert (found.kind, found.step) == ('not_finite', 2)
  assert [one.step for one in told] == [2]
