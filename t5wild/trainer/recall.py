# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a resumed run recorded until its checkpoint, for actions to recall.

An action's memory is not saved: it is what the run wrote to metrics.jsonl.
"""

from collections.abc import Collection, Iterable
import os
from typing import Any

from absl import logging

from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import stopping
from t5wild.trainer import training_actions
from t5wild.vitals import records as records_lib

# Where the figures of each mode are written.
COLLECTIONS = {
    actions_lib.ActionMode.TRAIN_EVAL: 'training_eval',
    actions_lib.ActionMode.INFER_EVAL: 'inference_eval',
}
_TRAINED = 'train/loss'
_EVALUATED = tuple(f'{name}/' for name in COLLECTIONS.values())


class Past:
  """Histories of some metrics, and which tasks were evaluated at the end."""

  def __init__(
      self,
      records: Iterable[records_lib.Record],
      *,
      last_step: int,
      names: Collection[str],
  ):
    """Reads records; those of steps after the last are as if never made.

    Args:
      records: As a run wrote them, steps trained twice among them.
      last_step: Step of the checkpoint that the run goes on from.
      names: Metrics whose history is kept, as in metrics.jsonl.
    """
    names = frozenset(names)
    kept = []
    self._evaluated: dict[str, float] = {}
    trained = 0
    for record in records:
      if record.host:
        continue
      if record.name == _TRAINED:
        if record.step < trained:  # what was evaluated was another state
          self._evaluated.clear()
        trained = record.step
      if record.step > last_step:
        continue
      if record.name in names:
        kept.append(record)
      if record.step == last_step and record.name.startswith(_EVALUATED):
        self._evaluated[record.name] = record.value
    self._series = {
        name: records_lib.series(kept, name) for name in sorted(names)
    }

  @classmethod
  def read(
      cls, path: str, *, last_step: int, names: Collection[str]
  ) -> 'Past':
    """Reads a run's metrics.jsonl; empty, and told, if it is not there."""
    if not os.path.exists(path):
      logging.warning(
          'There is no %s: what actions remember of this run begins anew.', path
      )
      return cls((), last_step=last_step, names=names)
    return cls(
        records_lib.read_records(path), last_step=last_step, names=names
    )

  def values(self, name: str) -> list[tuple[int, float]]:
    """Returns (step, value) of one of the names, in order of steps."""
    return [(record.step, record.value) for record in self._series[name]]

  def has_evaluation(self, collection: str) -> bool:
    """Whether a task, as `training_eval/TASK`, was evaluated at the end."""
    return any(name.startswith(f'{collection}/') for name in self.evaluation)

  @property
  def evaluation(self) -> dict[str, float]:
    """What evaluations of the last step found, by their names on record."""
    return {
        name: value
        for name, value in self._evaluated.items()
        if '/timing/' not in name
    }


def recall(
    past: Past, actions: actions_lib.ActionMapType, *, step: int
) -> tuple[int, str] | None:
  """Tells the actions what a run saw until it was resumed.

  Args:
    past: What it recorded.
    actions: By mode; those with a method `recall` are told.
    step: Where the run goes on.

  Returns:
    (step after which the run ends, reason), if they had asked for an end that
    is not past; else None.
  """
  ends = []
  for mode in actions:
    is_late = mode is actions_lib.ActionMode.TRAIN
    delay = training_actions.STOP_AFTER if is_late else 0
    for action, task, metric in _with_memory(actions, mode):
      values = past.values(metric_name(mode, task, metric))
      asked = action.recall([value for _, value in values])
      # Where the run went on after that, it had other actions then.
      if asked and values[-1][0] + delay >= step:
        ends.append((values[-1][0] + delay, stopping.reason_of(action)))
  return min(ends, default=None)


def recalled_names(actions: actions_lib.ActionMapType) -> list[str]:
  """Returns the names of the records that actions with a memory are told of."""
  return [
      metric_name(mode, task, metric)
      for mode in actions
      for _, task, metric in _with_memory(actions, mode)
  ]


def metric_name(
    mode: actions_lib.ActionMode, task: str, metric: str
) -> str:
  """Returns the name that a metric has in the run's records."""
  if mode is actions_lib.ActionMode.TRAIN:
    return f'{task}/{metric}'
  return f'{COLLECTIONS[mode]}/{task}/{metric}'


def _with_memory(
    actions: actions_lib.ActionMapType, mode: actions_lib.ActionMode
) -> list[tuple[Any, str, str]]:
  return [
      one
      for one in action_checks.watched_by(actions, mode)
      if hasattr(one[0], 'recall')
  ]
