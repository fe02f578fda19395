# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What happened in a run and when: starts, saves, evaluations, bad numbers."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

import numpy as np

from t5wild.reports import endings
from t5wild.reports import history as history_lib
from t5wild.reports import one_fault
from t5wild.reports import restarts
from t5wild.reports import taken_back
from t5wild.vitals import records as records_lib
from t5wild.vitals import redaction

# Kinds in the order of the timeline's rows, with words for one of them.
KINDS = {
    'start': 'start',
    'restart': 'restart',
    'gap': 'no records',
    'slow': 'slow from here',
    'not_finite': 'NaN or infinite',
    'fault': 'fault',
    'rewind': 'rewind',
    'skip': 'update left out',
    'spike': 'spike',
    'recorded': 'recorded event',
    'save': 'save',
    'evaluate': 'evaluation',
    'end': 'end',
}
_SAVED = 'train/checkpoint/saved'
_SAVE_SECONDS = 'train/timing/save_seconds'
_BLOCKED_SECONDS = 'train/timing/save_blocked_seconds'
_EVALUATE = r'.+/timing/evaluate_seconds'
# Of events.jsonl: what a supervisor or a watchdog says went wrong.
_SUPERVISOR = 'supervisor/'
_EXIT = one_fault.EXIT
_NO_FAULTS = ('done', 'preempted', 'stopped')
_HANG = 'watchdog/hang'
_STOP = 'vitals/stop'
# Of events that have rows of their own on the timeline.
_KIND_OF = {
    taken_back.REWIND: 'rewind',
    'vitals/skipped_update': 'skip',
    'vitals/loss_spike': 'spike',
    'vitals/gradient_spike': 'spike',
    'vitals/not_finite': 'not_finite',
}
_EXITS = {
    'done': 'a process is done',
    'preempted': 'a process was told to stop, and has saved its state',
    'stopped': 'a person stopped the run',
    'user_error': 'the command, the recipe or its code was refused',
    'non_finite': 'a process ended at numbers that are not finite',
    'unstable': 'a process stopped: loss or gradients left their range',
    'save_error': 'the state could not be saved',
    'hang': 'a process hung and was ended',
    'out_of_memory': 'a process had no memory left',
    'does_not_fit': 'the plan does not fit the machine',
    'device': 'a device failed',
    'data': 'the training data could not be read',
    'file_system': 'the file system failed',
    'port': "the coordinator's port was taken",
    'lost_peer': 'a process lost another one',
    'run_dir_lost': "the run's folder was moved, deleted or taken",
    'lost_host': 'a host gave no sign of life any more',
    'killed': 'a process was killed',
    'unknown': 'a process failed',
}
_WORDS = {
    'supervisor/attempt': 'the supervisor starts',
    'supervisor/detected': 'the supervisor saw a failure',
    'supervisor/hosts': 'the supervisors of several hosts agree',
    'supervisor/late': 'a process gives no sign of life',
    'watchdog/stalled': 'a process stood still, stopped from outside',
    'supervisor/restart': 'the supervisor restarts the run',
    'supervisor/stopped': 'the supervisor stops',
    one_fault.ERROR: 'the run ended with an error',
    _HANG: 'the watchdog saw a hang',
    _STOP: 'the run stops by its own numbers',
    taken_back.REWIND: 'the run goes back',
    'vitals/skipped_update': 'an update is left out',
    'vitals/loss_spike': 'the loss leapt up',
    'vitals/gradient_spike': 'the norm of the gradient leapt up',
    'vitals/not_finite': 'loss or gradient is not finite',
    'vitals/plateau': 'the loss falls no more',
    'vitals/slow_steps': 'steps became slow',
}
_MAX_OF_A_KIND = 300
# Kinds of what the state of a step has, or is the fault of.
_OF_STEPS = ('not_finite', 'skip', 'spike', 'save', 'evaluate')
_REWOUND = 'the run is rewound'
_TAKEN_BACK = ' (the run went back behind this step later)'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Event:
  """Something that happened.

  Attributes:
    kind: one of `KINDS`.
    step: finished updates.
    seconds: wall clock time.
    text: one line for a person.
    place: where a chart over steps shows it; None = at `step`. A restart stands
      where the process before it ended, though it goes back.
    is_of_supervisor: whether a supervisor wrote it, from outside the process.
  """

  kind: str
  step: int
  seconds: float
  text: str
  place: int | None = None
  is_of_supervisor: bool = False

  @property
  def shown_step(self) -> int:
    """Where a chart over steps shows it."""
    return self.step if self.place is None else self.place


def read_events(history: history_lib.History) -> list[Event]:
  """All events that the records tell, in order of time."""
  merged = one_fault.merged(history.events)
  last_words = _last_words(history, merged)
  events = [
      *_starts(history),
      *_saves(history),
      *_evaluations(history),
      *read_recorded(
          history, [each for each in merged if each is not last_words]
      ),
      *_end(history, last_words),
  ]
  events = _with_marks(events, taken_back.spans(history))
  return sorted(events, key=lambda event: event.seconds)


def _with_marks(
    events: Sequence[Event], spans: Sequence[taken_back.Span]
) -> list[Event]:
  """The events, with a word where the run went back behind their step."""
  return [
      dataclasses.replace(event, text=event.text + _TAKEN_BACK)
      if event.kind in _OF_STEPS
      and not event.text.endswith(_REWOUND)  # it says so itself
      and taken_back.is_taken_back(
          spans, step=event.step, seconds=event.seconds
      )
      else event
      for event in events
  ]


def thinned(events: Sequence[Event]) -> list[Event]:
  """At most some hundred of each kind, evenly chosen, in order of time."""
  kept = []
  for kind in KINDS:
    found = [event for event in events if event.kind == kind]
    if len(found) > _MAX_OF_A_KIND:
      rows = np.linspace(0, len(found) - 1, _MAX_OF_A_KIND).round().astype(int)
      found = [found[row] for row in np.unique(rows)]
    kept += found
  return sorted(kept, key=lambda event: event.seconds)


def _starts(history: history_lib.History) -> list[Event]:
  events = []
  for number, start in enumerate(restarts.starts(history)):
    text = f'starts at step {start.step:,}'
    if number:
      text = f'restart {number}, goes on from step {start.step:,}'
    if start.num_steps_again:
      text += f'; {start.num_steps_again:,} updates are done again'
    events.append(
        Event(
            kind='restart' if number else 'start',
            step=start.step,
            seconds=start.seconds,
            text=text,
            place=start.last_step_before,
        )
    )
  return events


def _saves(history: history_lib.History) -> list[Event]:
  column = history.columns.get(_SAVED)
  if column is None:
    return []
  took = _by_moment(history, _SAVE_SECONDS)
  blocked = _by_moment(history, _BLOCKED_SECONDS)
  events = []
  for step, seconds in zip(
      column.steps.tolist(), column.seconds.tolist(), strict=True
  ):
    text = f'checkpoint of step {step:,}'
    moment = step, seconds
    if moment in took:
      text += f', whole after {took[moment]:.3g} s beside training'
    if moment in blocked:
      text += f', which it held up {blocked[moment]:.3g} s'
    events.append(Event(kind='save', step=step, seconds=seconds, text=text))
  return events


def _by_moment(
    history: history_lib.History, name: str
) -> dict[tuple[int, float], float]:
  """Values by step and clock: a step may be saved again after a rewind."""
  column = history.columns.get(name)
  if column is None:
    return {}
  moments = zip(column.steps.tolist(), column.seconds.tolist(), strict=True)
  return dict(zip(moments, column.values.tolist(), strict=True))


def _evaluations(history: history_lib.History) -> list[Event]:
  events = []
  for name in history.matching(_EVALUATE):
    task = name.removesuffix('/timing/evaluate_seconds')
    column = history.columns[name]
    events += [
        Event(
            kind='evaluate',
            step=step,
            seconds=seconds,
            text=f'{task} at step {step:,}, {value:.1f} s',
        )
        for step, seconds, value in zip(
            column.steps.tolist(),
            column.seconds.tolist(),
            column.values.tolist(),
            strict=True,
        )
    ]
  return events


def is_fault(name: str) -> bool:
  """Whether an event of events.jsonl is something that went wrong."""
  if name.startswith(_EXIT):
    return name.removeprefix(_EXIT) not in _NO_FAULTS
  return name in (_HANG, _STOP, one_fault.ERROR)


def _kind_of(name: str) -> str:
  if is_fault(name):
    return 'fault'
  return _KIND_OF.get(name, 'recorded')


def _said(name: str) -> str:
  """An event's name as a person says it."""
  if name.startswith(_EXIT):
    kind = name.removeprefix(_EXIT)
    return _EXITS.get(kind, f'a process ended ({kind.replace("_", " ")})')
  words = name.replace('_', ' ').replace('/', ' ')
  return _WORDS.get(name, words)


def _last_words(
    history: history_lib.History, merged: Sequence[records_lib.Record]
) -> records_lib.Record | None:
  """The error that ended the latest process, where nothing came after it."""
  ending = endings.ending(history)
  errors = [each for each in merged if each.name == one_fault.ERROR]
  if ending is None or not errors:
    return None
  near = abs(errors[-1].seconds - ending.seconds) < one_fault.SOON_SECONDS
  return errors[-1] if near else None


def read_recorded(
    history: history_lib.History,
    records: Sequence[records_lib.Record] | None = None,
) -> list[Event]:
  """What records of events.jsonl say; None = all of them."""
  events = []
  for record in history.events if records is None else records:
    what = _said(record.name)
    said = redaction.redacted(record.text) or f'{record.value:.6g}'
    if not record.text and record.unit:
      said = _counted(said, record.unit)
    kind = _kind_of(record.name)
    # What the run says of itself often begins so already.
    is_said = kind != 'fault' and said.lower().startswith(what)
    events.append(
        Event(
            kind=kind,
            step=_step_of(history, record),
            seconds=record.seconds,
            text=said if is_said else f'{what}: {said}',
            is_of_supervisor=record.name.startswith(_SUPERVISOR),
        )
    )
  return events


def _counted(number: str, unit: str) -> str:
  """`0.1 seconds`, but of what is numbered, not counted: `attempt 2`."""
  return f'{unit} {number}' if unit == 'attempt' else f'{number} {unit}'


def _step_of(history: history_lib.History, record: records_lib.Record) -> int:
  """The step of an event; some know none, and a heartbeat's is an old one."""
  if not record.name.startswith(_SUPERVISOR):
    return record.step or history.step_at(record.seconds)
  return max(record.step, restarts.step_reached(history, record.seconds))


def _end(
    history: history_lib.History, last_words: records_lib.Record | None
) -> list[Event]:
  ending = endings.ending(history)
  if ending is None:
    return []
  text = f'{ending.words}, after step {history.last_step:,}'
  if last_words is not None:
    text += f': {redaction.redacted(last_words.text)}'
  return [
      Event(
          kind='end',
          step=history.last_step,
          seconds=ending.seconds,
          text=text,
      )
  ]
