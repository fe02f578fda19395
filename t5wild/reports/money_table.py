# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of the table that says where a run's hours, and its money, went."""

from __future__ import annotations

import dataclasses

from t5wild.reports import contents as contents_lib
from t5wild.reports import findings
from t5wild.reports import time_spent
from t5wild.vitals import goodput

# In the order of the bar, from what counts to what is lost.
_LABELS = {
    'step': ('steps', '#2c8a4b'),
    'data_wait': ('waiting for data', '#e0a100'),
    'evaluate': ('evaluation', '#3f7fd6'),
    'save': ('saving', '#7a5fc7'),
    'log': ('logging', '#8c98a4'),
    'startup': ('startup', '#c9772f'),
    'compile': ('compiling', '#d98f4e'),
    'init': ('first state', '#e0a56a'),
    'restore': ('first state or restore', '#e6b17e'),
    'finish': ('finishing', '#a3adb8'),
    time_spent.AGAIN: ('steps done again', '#c0392b'),
    goodput.HUNG: ('hung', '#a93226'),
    goodput.STALLED: ('stalled', '#cd6155'),
    time_spent.DOWN: ('down', '#7d1f17'),
    goodput.OTHER: ('not accounted for', '#b7bec6'),
}
# Where the books tell the first state from it.
_RESTORE_BESIDE_INIT = 'restoring, or looking for what to restore'
_ANY_COLOUR = '#8c98a4'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
  """One kind of time; `money` is None where no price is known."""

  label: str
  colour: str
  hours: float
  share: float
  money: float | None

  @property
  def time(self) -> str:
    """As a person says it, to the second or finer where it is short."""
    return findings.duration(3600 * self.hours)


def rows(contents: contents_lib.Contents) -> list[Row]:
  """A row for each kind, in the bar's order; none where nothing is known."""
  spent = contents.time_spent
  if spent is None or not spent.total_seconds:
    return []
  money = spent.money
  kinds = [kind for kind in _LABELS if kind in spent.seconds]
  kinds += [kind for kind in spent.seconds if kind not in _LABELS]
  found = []
  for kind in kinds:
    label, colour = _LABELS.get(kind, (kind.replace('_', ' '), _ANY_COLOUR))
    if kind == 'restore' and 'init' in spent.seconds:
      label = _RESTORE_BESIDE_INIT
    found.append(
        Row(
            label=label,
            colour=colour,
            hours=spent.seconds[kind] / 3600,
            share=spent.seconds[kind] / spent.total_seconds,
            money=None if money is None else money.get(kind, 0.0),
        )
    )
  return found


def note(contents: contents_lib.Contents) -> str:
  """What the numbers rest on."""
  spent = contents.time_spent
  parts = [
      f'Goodput: {spent.productive_share:.1%} of '
      f'{findings.duration(spent.total_seconds)} went to steps that count.'
  ]
  if spent.is_estimate:
    parts.append(
        'A process kept no books of its time: it is added up from records.'
    )
  price = spent.price_per_device_hour
  if price is None:
    parts.append(
        'With --price_per_device_hour, or watchdog.Watchdog.'
        'price_per_device_hour in gin, the table says money, too.'
    )
  elif spent.device_seconds is None:
    parts.append('No money: the number of devices is not known.')
  else:
    parts.append(f'At {price:g} an hour for a device.')
  return ' '.join(parts)
