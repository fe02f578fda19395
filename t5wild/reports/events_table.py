# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The events of a run as a table, for who cannot point at a chart's marks."""

from __future__ import annotations

from collections.abc import Sequence

from t5wild.reports import events as events_lib
from t5wild.reports import findings as findings_lib
from t5wild.reports import html_document as document

# Of these there are many, and most say nothing: they are folded.
_ROUTINE = ('save', 'evaluate')
_MAX_ROWS = 200


def section(
    events: Sequence[events_lib.Event], *, first_seconds: float
) -> str:
  """What befell the run, and folded behind it what it does by plan.

  Args:
    events: in order of time.
    first_seconds: wall clock that the times are told from.
  """
  if not events:
    return ''
  telling = [each for each in events if each.kind not in _ROUTINE]
  routine = [each for each in events if each.kind in _ROUTINE]
  parts = [_table(telling, first_seconds)] if telling else []
  if routine:
    parts.append(
        f'<details><summary>{len(routine):,} saves and evaluations</summary>'
        f'{_table(routine, first_seconds)}</details>'
    )
  return (
      '<section id="events"><h2>Events</h2><div class="card">'
      f'{"".join(parts)}</div></section>\n'
  )


def _table(events: Sequence[events_lib.Event], first_seconds: float) -> str:
  rows = ''.join(_row(each, first_seconds) for each in events[:_MAX_ROWS])
  left = len(events) - _MAX_ROWS
  more = f'<p class="soft">and {left:,} more</p>' if left > 0 else ''
  return (
      '<div class="scroll"><table class="events"><tr><th class="number">after'
      '</th><th class="number">step</th><th>kind</th><th>what</th></tr>'
      f'{rows}</table></div>{more}'
  )


def _row(event: events_lib.Event, first_seconds: float) -> str:
  after = findings_lib.duration(max(0.0, event.seconds - first_seconds))
  return (
      f'<tr><td class="number">{after}</td>'
      f'<td class="number">{event.step:,}</td>'
      f'<td><span class="key" style="background:var(--event-{event.kind})">'
      f'</span>{document.escaped(events_lib.KINDS[event.kind])}</td>'
      f'<td>{document.escaped(event.text)}</td></tr>'
  )
