# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Gradient norms by layer group, from records of groups or of parameters."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import re

import numpy as np

from t5wild.reports import history as history_lib
from t5wild.vitals import parameter_groups

# A norm of each group, as a run that watches groups writes it.
_BY_GROUP = r'train/(?:weight_)?gradient_norm/(.+)'
# The root mean square of each parameter's gradient, as WeightMetricsComputer
# writes it.
_BY_PARAMETER = r'train/weight_gradient_rms/(.+)'
_GLOBAL = 'global'


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupNorms:
  """Norms by layer group.

  Attributes:
    title: what is told, in words.
    by_group: group -> (steps, values), in order of the layers.
  """

  title: str
  by_group: dict[str, tuple[np.ndarray, np.ndarray]]


def gradient_norms(
    history: history_lib.History, *, parameter_counts: Mapping[str, int]
) -> GroupNorms:
  """The norms of a run; no groups where nothing of the kind is recorded.

  Args:
    history: the run.
    parameter_counts: parameter path -> number of values, which a group's norm
      follows from; where one is not known, the group's largest root mean square
      stands for it.
  """
  groups = {}
  for name in history.matching(_BY_GROUP):
    group = re.fullmatch(_BY_GROUP, name).group(1)
    if group != _GLOBAL:
      series = history.series(name)
      groups[group] = (series.steps, series.values)
  if groups:
    title = 'Gradient norm by layer group'
    return GroupNorms(title=title, by_group=_in_order(groups))
  return _from_parameters(history, parameter_counts)


def _from_parameters(
    history: history_lib.History, counts: Mapping[str, int]
) -> GroupNorms:
  members: dict[str, list[str]] = {}
  for name in history.matching(_BY_PARAMETER):
    path = re.fullmatch(_BY_PARAMETER, name).group(1)
    members.setdefault(parameter_groups.group_of(path), []).append(path)
  paths = [path for group in members.values() for path in group]
  has_counts = all(path in counts for path in paths)
  groups = {}
  for group, of_group in members.items():
    found = [history.series(f'train/weight_gradient_rms/{p}') for p in of_group]
    steps = found[0].steps
    found = [
        np.interp(steps, series.steps, series.values) for series in found
    ]
    if has_counts:
      squares = zip(of_group, found, strict=True)
      total = sum(counts[path] * rms**2 for path, rms in squares)
      groups[group] = (steps, np.sqrt(total))
    else:
      groups[group] = (steps, np.max(found, axis=0))
  what = 'norm' if has_counts else 'RMS, the largest of its parameters,'
  return GroupNorms(
      title=f'Gradient {what} by layer group', by_group=_in_order(groups)
  )


def _in_order(groups: dict) -> dict:
  """Sorted so that layer 10 follows layer 9."""

  def key(name: str):
    parts = re.split(r'(\d+)', name)
    return [(int(p), '') if p.isdigit() else (-1, p) for p in parts]

  return {name: groups[name] for name in sorted(groups, key=key)}
