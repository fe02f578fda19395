# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of texts, by functions of seqio's signatures."""

from collections.abc import Callable, Mapping, Sequence
import inspect
from typing import Any

MetricFn = Callable[..., Mapping[str, Any]]

PREDICTIONS = ('targets', 'predictions')
WITH_AUX = ('targets', 'predictions', 'aux_values')
SCORES = ('targets', 'scores')
_KINDS = (PREDICTIONS, WITH_AUX, SCORES)


def kinds_of(metric_fns: Sequence[MetricFn]) -> list[tuple[str, ...]]:
  """Returns what each function takes: one of the kinds above.

  Raises:
    ValueError: One takes something else.
  """
  kinds = []
  for function in metric_fns:
    taken = tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
    )
    if taken not in _KINDS:
      raise ValueError(
          f'metric function {function!r} takes {taken}: expected one of '
          f'{_KINDS}. Name its arguments so.'
      )
    kinds.append(taken)
  return kinds


def compute(
    metric_fns: Sequence[MetricFn], given: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the metrics of all functions together.

  Args:
    metric_fns: Of the kinds above.
    given: Name of an argument to its value; those of no function may lack.

  Raises:
    ValueError: Two functions give a metric of one name.
  """
  metrics: dict[str, Any] = {}
  for function, kind in zip(metric_fns, kinds_of(metric_fns), strict=True):
    found = function(*(given[name] for name in kind))
    twice = sorted(metrics.keys() & found.keys())
    if twice:
      raise ValueError(
          f'{function!r} gives {twice}, which another metric function gives '
          'too: expected other names. Drop one of them.'
      )
    metrics.update(found)
  return metrics
