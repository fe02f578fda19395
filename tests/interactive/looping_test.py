# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The order of training and looking."""

import pytest

from t5wild.interactive import looping


class _Model:

  def __init__(self):
    self.calls = []

  def train_step(self, batch):
    self.calls.append(('train', batch))

  def predict_with_aux(self, batch):
    self.calls.append(('predict', batch))
    return f'of {batch}', {}

  def score(self, batch):
    return f'scores of {batch}'

  def evaluate(self, batch, metric_fns):
    return {'metric': (batch, len(metric_fns))}


def _run(model, **arguments):
  nothing = dict.fromkeys(
      ('train_batches', 'predict_batches', 'score_batches', 'eval_batches')
  )
  return looping.run(
      model, **{'eval_period': 1, 'metrics_fns': (), **nothing, **arguments}
  )


@pytest.mark.parametrize('one', [['a', 'b'], [{'input': 'a', 'target': 'b'}]])
def test_one_batch_is_used_again_and_again(one):
  model = _Model()
  found = _run(model, num_steps=2, train_batches=one, predict_batches=one)
  assert model.calls == [('train', one), ('predict', one)] * 2
  assert found == (f'of {one}', None, None)


def test_several_batches_come_in_turn_and_only_as_many_as_steps():
  model = _Model()
  _run(model, num_steps=3, train_batches=[['a'], ['b']])
  assert model.calls == [('train', ['a']), ('train', ['b']), ('train', ['a'])]
  model.calls.clear()
  _run(model, num_steps=1, train_batches=[['a'], ['b']])
  assert model.calls == [('train', ['a'])]


@pytest.mark.parametrize(
    ('period', 'looks'), [(1, 4), (2, 3), (3, 2), (None, 1), (9, 2)]
)
def test_the_last_step_is_looked_at_whatever_the_period(period, looks):
  model = _Model()
  _run(model, num_steps=4, eval_period=period, predict_batches=[['a']])
  assert model.calls == [('predict', ['a'])] * looks


def test_what_is_returned_is_of_the_last_batch():
  found = _run(
      _Model(),
      num_steps=1,
      score_batches=[['a'], ['b']],
      eval_batches=[['a'], ['b']],
      metrics_fns=[print, print],
  )
  assert found == (None, "scores of ['b']", {'metric': (['b'], 2)})
