# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of the host are computed while training goes on, and none is lost."""

from concurrent import futures
import threading

import pytest

from t5wild import evaluator
from t5wild.trainer import inference_evaluation


class _Manager:
  """Notes what it is given."""

  def __init__(self):
    self.scalars, self.texts = [], []

  def write_scalars(self, step, scalars):
    self.scalars.append((step, {
        n: v for n, v in scalars.items() if not n.startswith('timing/')
    }))

  def write_texts(self, step, texts):
    self.texts.append((step, texts))

  def close(self):
    """Has nothing to close."""


class _SlowMetrics:
  """Computes metrics in a thread, when it is let."""

  def __init__(self):
    self.may_end = threading.Event()
    self._pool = futures.ThreadPoolExecutor(1)
    self._count = 0

  def start(self):
    self._count += 1
    return evaluator.PendingMetrics(
        self._pool.submit(self._compute, self._count)
    )

  def _compute(self, number):
    assert self.may_end.wait(60)
    if number == 3:
      raise ValueError('metric of the third evaluation')
    return {'task': {'bleu': number, 'example': 'text'}}


@pytest.fixture
def slow():
  return _SlowMetrics()


def _make(slow, **arguments):
  manager, late = _Manager(), []
  reports = inference_evaluation.InferenceReports(
      start=slow.start,
      managers={'task': manager},
      close=lambda: None,
      on_late_metrics=lambda *args: late.append(args),
      **arguments,
  )
  return reports, manager, late


def test_training_goes_on_while_the_host_computes_metrics(slow):
  reports, manager, late = _make(slow, is_awaited=False)
  assert reports.evaluate(10) == {}  # returned: it would wait for ever
  assert not manager.scalars
  slow.may_end.set()
  reports.evaluate(20)
  assert late == [(10, {'task': {'bleu': 1}})]
  reports.close()
  assert manager.scalars == [(10, {'bleu': 1}), (20, {'bleu': 2})]
  assert manager.texts == [(10, {'example': 'text'}), (20, {'example': 'text'})]
  assert [step for step, _ in late] == [10, 20]


def test_metrics_are_written_as_soon_as_they_are_there(slow):
  reports, manager, _ = _make(slow, is_awaited=False)
  is_written = threading.Event()
  manager.write_texts = lambda *unused: is_written.set()
  reports.evaluate(10)
  slow.may_end.set()
  assert is_written.wait(60)  # by nobody's asking
  reports.close()
  assert manager.scalars == [(10, {'bleu': 1})]


def test_what_is_decided_by_is_waited_for(slow):
  slow.may_end.set()
  reports, manager, late = _make(slow, is_awaited=True)
  assert reports.evaluate(10) == {'task': {'bleu': 1}}
  assert manager.scalars == [(10, {'bleu': 1})]
  reports.close()
  assert late == []


def test_a_metric_that_fails_later_ends_the_run_all_the_same(slow):
  slow.may_end.set()
  reports, _, _ = _make(slow, is_awaited=False)
  for step in (10, 20, 30):
    reports.evaluate(step)
  with pytest.raises(ValueError, match='metric of the third evaluation'):
    reports.close()
