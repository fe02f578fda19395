# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of the training loop."""

import itertools
import os
import signal

from clu import metrics as clu_metrics
import jax.numpy as jnp
import pytest

from t5wild.trainer import cadence as cadence_lib
from t5wild.trainer import loop
from t5wild.trainer import preemption
from t5wild.vitals import goodput


class _Recorder:
  """Notes what the loop asked for, in order."""

  def __init__(self, *, stop_at=None, stop_after=None):
    self.calls = []
    self.intervals = []
    self._stop_at = stop_at
    self._stop_after = stop_after

  def log(self, step, interval):
    self.calls.append(('log', step))
    self.intervals.append(interval)

  def save(self, step):
    self.calls.append(('save', step))

  def evaluate(self, step):
    self.calls.append(('evaluate', step))
    return step == self._stop_at

  def after_step(self, step, metrics):
    assert 'sum' in metrics
    return step == self._stop_after


def _metrics(batch):
  return {'sum': clu_metrics.Average(total=jnp.float32(batch),
                                     count=jnp.float32(1))}


def _run(actions, *, batches=None, first_step=0, **cadence):
  cadence = {
      'total_steps': 10, 'eval_period': None, 'stats_period': None,
      'save_period': None, 'checkpoint_steps': (), **cadence,
  }
  with preemption.StopSignal() as stop:
    return loop.run(
        step_fn=_metrics,
        feed=iter(itertools.count(1) if batches is None else batches),
        cadence=cadence_lib.Cadence(**cadence),
        actions=actions,
        first_step=first_step,
        stop_signal=stop,
        ledger=goodput.Ledger(),
    )


def test_every_step_is_in_exactly_one_interval():
  actions = _Recorder()
  assert _run(actions, stats_period=4) == 10
  assert [i.num_steps for i in actions.intervals] == [4, 4, 2]
  totals = [float(i.metrics['sum'].total) for i in actions.intervals]
  assert totals == [1 + 2 + 3 + 4, 5 + 6 + 7 + 8, 9 + 10]


def test_interval_parts_do_not_exceed_its_wall_time():
  actions = _Recorder()
  _run(actions, stats_period=5, eval_period=5)
  for interval in actions.intervals:
    parts = (
        interval.data_wait_seconds + interval.device_wait_seconds
        + interval.dispatch_seconds + interval.off_loop_seconds
    )
    assert 0 <= parts <= interval.seconds


def test_save_comes_before_evaluation_so_that_a_fault_there_costs_nothing():
  actions = _Recorder()
  _run(actions, eval_period=5, save_period=5)
  assert [c for c in actions.calls if c[0] != 'log'] == [
      ('save', 5), ('evaluate', 5), ('save', 10), ('evaluate', 10)
  ]


def test_evaluation_can_stop_the_loop_and_nothing_is_lost():
  actions = _Recorder(stop_at=4)
  assert _run(actions, eval_period=2, stats_period=3, save_period=5) == 4
  assert actions.calls == [
      ('evaluate', 2), ('log', 3), ('evaluate', 4), ('log', 4), ('save', 4)
  ]  # fmt: skip
  assert sum(interval.num_steps for interval in actions.intervals) == 4


def test_a_stop_after_a_step_does_all_that_a_last_step_does():
  actions = _Recorder(stop_after=4)
  assert _run(actions, eval_period=5, stats_period=3, save_period=5) == 4
  assert actions.calls == [
      ('log', 3), ('log', 4), ('save', 4), ('evaluate', 4)
  ]  # fmt: skip


def test_what_a_run_never_does_its_last_step_does_not():
  actions = _Recorder(stop_after=4)
  _run(actions, stats_period=4)
  assert actions.calls == [('log', 4)]


def test_sigterm_saves_after_the_step_under_way_and_leaves():
  actions = _Recorder()

  def batches():
    yield 1
    os.kill(os.getpid(), signal.SIGTERM)
    yield 2
    yield 3

  with pytest.raises(preemption.Preempted) as caught:
    _run(actions, batches=batches())
  assert caught.value.step == 2
  assert actions.calls[-1] == ('save', 2)


def test_data_that_ends_early_is_an_error_that_names_the_step():
  with pytest.raises(ValueError, match='before step 4.*10 steps'):
    _run(_Recorder(), batches=[1, 2, 3])


def test_nothing_is_trained_when_the_state_is_complete():
  actions = _Recorder()
  assert _run(actions, batches=[], first_step=10) == 10
  assert not actions.calls
