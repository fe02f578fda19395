# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""When and how the latest process of a run ended, by its records and books."""

from __future__ import annotations

import dataclasses

from t5wild.reports import history as history_lib
from t5wild.vitals import time_ledgers

_WORDS = {
    time_ledgers.FAILED: 'ended with an error',
    time_ledgers.REFUSED: 'ended with an error of its command, recipe or data',
    time_ledgers.STOPPED: 'ended since it was told to stop',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ending:
  """The end of the latest process; `words` as in `the run ended in order`."""

  seconds: float
  words: str


def ending(history: history_lib.History) -> Ending | None:
  """None where the run goes on, or was broken off."""
  attempts = history.attempts
  if attempts and attempts[-1].ended in _WORDS:
    last = attempts[-1]
    return Ending(seconds=last.end, words=_WORDS[last.ended])
  if history.ended is None:
    return None
  return Ending(seconds=history.ended, words='ended in order')
