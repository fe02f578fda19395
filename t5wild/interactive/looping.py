# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A few steps of training, and what the model says meanwhile."""

from collections.abc import Sequence
import itertools
from typing import Any

from t5wild.interactive import metric_fns as metric_fns_lib
from t5wild.interactive import texts

Batch = Sequence[texts.Example]
Batches = Batch | Sequence[Batch]


def run(
    model: Any,
    *,
    num_steps: int,
    eval_period: int | None,
    train_batches: Batches | None,
    predict_batches: Batches | None,
    score_batches: Batches | None,
    eval_batches: Batches | None,
    metrics_fns: Sequence[metric_fns_lib.MetricFn],
) -> tuple[Any, Any, Any]:
  """Trains a model, and looks at batches meanwhile.

  Where something is given as one batch instead of several, that is used again
  and again; training batches are, too, when there are fewer than steps.

  Args:
    model: Has `train_step`, `predict_with_aux`, `score` and `evaluate`.
    num_steps: Number of updates; without `train_batches`, of looks.
    eval_period: Steps between looks, from the first step on; the last one has
      one in any case. None: that one only.
    train_batches: What to train on, or None.
    predict_batches: What to predict, or None.
    score_batches: What to score, or None.
    eval_batches: What to compute metrics of, or None.
    metrics_fns: For `eval_batches`.

  Returns:
    (predictions, scores, metrics) of the last look, each of the last batch;
    None for what was not asked for.
  """
  training = itertools.cycle(_as_batches(train_batches) or [None])
  looks = {
      'predictions': (
          predict_batches,
          lambda batch: model.predict_with_aux(batch)[0],
      ),
      'scores': (score_batches, model.score),
      'metrics': (
          eval_batches,
          lambda batch: model.evaluate(batch, metrics_fns),
      ),
  }
  found = dict.fromkeys(looks)
  for number, batch in enumerate(itertools.islice(training, num_steps)):
    if batch is not None:
      model.train_step(batch)
    is_last = number == num_steps - 1
    if not is_last and (eval_period is None or number % eval_period):
      continue
    for name, (batches, look) in looks.items():
      for one in _as_batches(batches):
        found[name] = look(one)
  return found['predictions'], found['scores'], found['metrics']


def _as_batches(batches: Batches | None) -> list[Batch]:
  """Several batches, where one may have been given."""
  if not batches:
    return []
  is_one = isinstance(batches[0], str) or hasattr(batches[0], 'keys')
  return [batches] if is_one else list(batches)
