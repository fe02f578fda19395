# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps that a run made and went back behind: by a rewind, or a restart."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses

from t5wild.reports import history as history_lib
from t5wild.reports import restarts

REWIND = 'vitals/rewind'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
  """Steps after `first`, up to `last`, that were made before a moment."""

  first: int
  last: int
  until_seconds: float

  def holds(self, *, step: int, seconds: float) -> bool:
    """Whether what was told of a step at a moment is of these."""
    return self.first < step <= self.last and seconds <= self.until_seconds


def spans(history: history_lib.History) -> list[Span]:
  """All of a run."""
  rewinds = [
      Span(
          first=event.step - round(event.value),
          last=event.step,
          until_seconds=event.seconds,
      )
      for event in history.events
      if event.name == REWIND
  ]
  return rewinds + [
      Span(
          first=start.step,
          last=start.last_step_before,
          until_seconds=start.seconds,
      )
      for start in restarts.starts(history)
      if start.num_steps_again
  ]


def is_taken_back(
    found: Iterable[Span], *, step: int, seconds: float
) -> bool:
  """Whether the run went back behind a step after a moment."""
  return any(span.holds(step=step, seconds=seconds) for span in found)
