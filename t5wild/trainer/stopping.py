# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Why a run ends before its last step: asked once, answered alike everywhere.

Actions run on process 0, as in T5X; what they ask for is told to all processes,
which would else wait for one another in the next step's collectives.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from t5wild.partitioning import distributed
from t5wild.trainer import actions as actions_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class StopRequest:
  """An action asks for the end.

  Attributes:
    reason: For a person.
    is_failure: Whether the run has failed.
  """

  reason: str
  is_failure: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
  """What the actions said on this process, not told to the others yet."""

  request: StopRequest | None = None
  error: Exception | None = None


def ask(
    mode: actions_lib.ActionMode,
    actions: actions_lib.ActionMapType,
    train_state: Any,
    metrics_by_task: Mapping[str, actions_lib.MetricValues],
) -> Answer:
  """Runs the actions of a mode, on process 0; the others have no answer."""
  if distributed.process_index() != 0:
    return Answer()
  try:
    asking = actions_lib.asking(mode, actions, train_state, metrics_by_task)
  except Exception as error:  # noqa: BLE001 -- raised on every process
    return Answer(error=error)
  if not asking:
    return Answer()
  return Answer(
      request=StopRequest(
          reason='; '.join(map(reason_of, asking)),
          is_failure=any(getattr(a, 'is_failure', False) for a in asking),
      )
  )


def reason_of(action: Any) -> str:
  """Returns why an action asks for the end, with its name."""
  name = type(action).__name__
  reason = getattr(action, 'stop_reason', '')
  return f'{name}: {reason}' if reason else f'{name} asked for the end'


def share(answer: Answer, name: str) -> StopRequest | None:
  """Returns the answer of process 0; all processes call it.

  Raises:
    RuntimeError: An action failed on process 0; there, its own error.
  """
  told = None
  if answer.request is not None:
    told = dataclasses.asdict(answer.request)
  if answer.error is not None:
    told = {'error': f'{type(answer.error).__name__}: {answer.error}'}
  told = distributed.meet(name, value=told)[0]
  if answer.error is not None:
    raise answer.error
  if told is None:
    return None
  if 'error' in told:
    raise RuntimeError(
        f'an action failed on process 0: {told["error"]}; expected its run '
        'to return. Its log has the traceback; mend the action.'
    )
  return StopRequest(**told)
