# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions on training metrics, a few steps late so that no step waits.

When the loop hands over an interval its last steps are still on the devices.
The actions look at it `LOOK_AFTER` steps later, when the metrics are on the
host, and the run ends `STOP_AFTER` steps later, when all processes have heard
of it: always the same step, on any number of processes.
"""

import collections
from collections.abc import Mapping
from concurrent import futures
from typing import Any

from t5wild.trainer import action_checks
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import finite
from t5wild.trainer import loop
from t5wild.trainer import stopping

LOOK_AFTER = loop.MAX_STEPS_IN_FLIGHT + 1
STOP_AFTER = LOOK_AFTER + 1

_MODE = actions_lib.ActionMode.TRAIN
_PLACE = 'actions on training metrics'


class TrainingActions:
  """Looks at intervals; says after which step the run ends."""

  def __init__(self, actions: actions_lib.ActionMapType, *, trainer: Any):
    """Takes the actions by mode, and what holds the state."""
    self._actions = actions
    self._trainer = trainer
    self._unseen: collections.deque = collections.deque()
    self._asked: collections.deque = collections.deque()
    self._has_checked = False
    # One thread: processes meet in the order of the intervals.
    self._pool = futures.ThreadPoolExecutor(1, 'actions')
    watched = {'loss'}
    for action, _, metric in action_checks.watched_by(actions, _MODE):
      if getattr(action, 'is_failure', False):
        watched.add(metric)
    self.watch = finite.NotFiniteWatch(watched)

  def log(self, step: int, values: futures.Future) -> None:
    """Takes an interval that ends with `step`, its metrics under way."""
    self._unseen.append((step, values))

  def stop_at(self, step: int, request: stopping.StopRequest) -> None:
    """Has the run end after a step: asked before the run was resumed."""
    done: futures.Future = futures.Future()
    done.set_result(request)
    self._asked.append((step - STOP_AFTER, done))

  def after_step(
      self, step: int, metrics: Mapping[str, Any]
  ) -> stopping.StopRequest | None:
    """Looks at what is due; returns why to end after this step, or None."""
    if not self._has_checked:
      action_checks.check_step_metrics(self._actions, metrics)
      self._has_checked = True
    self.watch.add(step, metrics)
    while self._unseen and step >= self._unseen[0][0] + LOOK_AFTER:
      self._look(*self._unseen.popleft())
    request = None
    while self._asked and step >= self._asked[0][0] + STOP_AFTER:
      _, shared = self._asked.popleft()
      request = shared.result() or request
    return request

  def finish(self) -> stopping.StopRequest | None:
    """Looks at the last intervals; returns what the first request was."""
    while self._unseen:
      self._look(*self._unseen.popleft())
    answers = [shared.result() for _, shared in self._asked]
    self._asked.clear()
    return next(filter(None, answers), None)

  def close(self) -> None:
    """Ends the thread."""
    self._pool.shutdown(wait=False, cancel_futures=True)

  def _look(self, step: int, values: futures.Future) -> None:
    numbers = values.result()
    self.watch.judge(step, numbers)
    if not self._actions.get(_MODE):
      return
    answer = stopping.ask(
        _MODE,
        self._actions,
        self._trainer.train_state,
        {action_checks.TRAIN_TASK: numbers},
    )
    shared = self._pool.submit(stopping.share, answer, _PLACE)
    self._asked.append((step, shared))
