# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the script of a report's page draws, as JSON takes it."""

from __future__ import annotations

import math
from typing import Any

from t5wild.reports import contents as contents_lib
from t5wild.reports import events as events_lib
from t5wild.reports import findings as findings_lib
from t5wild.reports import html_document as document

# Units of a time axis, and the shortest run, in seconds, that each suits.
_UNITS = (('hours', 3600, 3 * 3600), ('minutes', 60, 180), ('seconds', 1, 0))
_DIGITS = 3  # of a second: runs of seconds have events a step apart


def of(
    contents: contents_lib.Contents, *, reload_seconds: int | None
) -> dict[str, Any]:
  """All that the script needs.

  Args:
    contents: of the run.
    reload_seconds: how often the page asks for itself anew; None = never.
  """
  first = contents.first_seconds
  events = [_event(each, first) for each in contents.events
            if math.isfinite(each.seconds)]  # fmt: skip
  clock = [round(float(seconds), _DIGITS) for seconds in contents.clock[1]]
  moments = clock + [each['seconds'] for each in events]
  return {
      'reload_seconds': reload_seconds,
      'clock': [[int(step) for step in contents.clock[0]], clock],
      'time': unit_of(max(moments, default=0.0) - min(moments, default=0.0)),
      'total_steps': contents.texts.total_steps,
      'kinds': events_lib.KINDS,
      'findings': [
          _finding(each, first)
          for each in contents.findings
          if each.step is not None
      ],
      'panels': list(map(document.panel_data, contents.panels)),
      'heat_map': _heat_map(contents),
      'events': events,
  }


def unit_of(seconds: float) -> dict[str, Any]:
  """The unit of an axis that is so long, and its seconds."""
  name, size = next(
      (name, size) for name, size, least in _UNITS if seconds >= least
  )
  return {'unit': name, 'seconds': size}


def _event(event: events_lib.Event, first_seconds: float) -> dict[str, Any]:
  told = {
      'kind': event.kind,
      'step': event.shown_step,
      'seconds': round(event.seconds - first_seconds, _DIGITS),
      'text': event.text,
  }
  return told if event.place is None else {**told, 'from': event.step}


def _finding(
    finding: findings_lib.Finding, first_seconds: float
) -> dict[str, Any]:
  seconds = None
  if finding.seconds is not None:
    seconds = round(finding.seconds - first_seconds, _DIGITS)
  return {
      'step': finding.step,
      'level': finding.level,
      'seconds': seconds,
      'label': finding.label,
  }


def _heat_map(contents: contents_lib.Contents) -> dict[str, Any] | None:
  heat = contents.heat_map
  return heat and {
      'groups': list(heat.groups),
      'steps': [int(step) for step in heat.steps],
      'values': [
          [document.number(value, digits=4) for value in row]
          for row in heat.values
      ],
  }
