# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Takes a run back to a healthy checkpoint, past the data that broke it.

What is passed over is in `passed_over.json` before anything else happens, so
that a run killed at any moment passes over the same.
"""

from collections.abc import Mapping
import dataclasses
import json
import math
import os
from typing import Any

from absl import logging
from etils import epath

from t5wild import training_data
from t5wild import training_plan
from t5wild import training_saves
from t5wild.checkpoint_files import small_files
from t5wild.data import passing_over
from t5wild.partitioning import distributed
from t5wild.trainer import rank_times
from t5wild.trainer import step_watch
from t5wild.vitals import answers as answers_lib
from t5wild.vitals import run_events

FILE = 'passed_over.json'
_STATES = 'vitals'  # folder of what is usual, by checkpoint
_DONE = {
    answers_lib.GO_ON: 'the run goes on',
    answers_lib.REWIND: 'the run is rewound',
    answers_lib.STOP: 'the run stops',
}
# What lies in a state of what is usual, and is not checked as it is loaded.
_STATE_KINDS = {'last_fault': int, 'detectors': dict, 'skips_in_a_row': int}
# Before and after the batch of a fault, in events; the rest is hashes.
_TOLD = ('batches', 'window', 'row', 'rows', 'epoch')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rewind:
  """One rewind of a run, on record.

  Attributes:
    first_batch: the first that is passed over since; counted from 1.
    last_batch: the last.
    fault: kind of what was found.
    fault_step: step that showed it.
    found_after: step after which all processes knew.
    rewound_to: step of the checkpoint that the run went back to.
  """

  first_batch: int
  last_batch: int
  fault: str
  fault_step: int
  found_after: int
  rewound_to: int


def read(model_dir: str) -> list[Rewind]:
  """The rewinds of a run, as process 0 finds them; all processes call it.

  Others may see a new file late.

  Raises:
    ValueError: The file is damaged; on all processes.
  """
  found = error = None
  path = epath.Path(model_dir) / FILE
  if distributed.process_index() == 0:
    try:
      found = _parse(path)
    except (ValueError, TypeError) as told:
      error = (
          f'{path} is damaged ({type(told).__name__}: {told}), expected the '
          'rewinds of the run: without them it would train on the data that '
          'broke it. Copy the file from a backup, or write it anew by the '
          'events vitals/rewind of events.jsonl; remove it to pass over nothing'
      )
  found, error = distributed.meet('what was passed over', value=[found, error])[
      0
  ]
  if error is not None:
    raise ValueError(error)
  return [Rewind(**fields) for fields in found]


def _parse(path: epath.Path) -> list[dict[str, Any]]:
  if not path.exists():
    return []
  found = [Rewind(**fields) for fields in json.loads(path.read_text())]
  for rewind in found:
    numbers = [v for k, v in vars(rewind).items() if k != 'fault']
    if not all(isinstance(number, int) for number in numbers):
      raise TypeError(f'{rewind} has other than whole numbers')
  return [dataclasses.asdict(rewind) for rewind in found]


class Rewinds:
  """The rewinds of a run; every process calls it alike."""

  def __init__(
      self,
      plan: training_plan.TrainingPlan,
      data: training_data.TrainingData,
      *,
      saves: training_saves.TrainingSaves,
      reader: passing_over.PassingReader,
  ):
    """Reads what was passed over before.

    Args:
      plan: Says what is done about faults, and where the run lies.
      data: Gives the batches.
      saves: The checkpoints to go back to.
      reader: Gives the batches of `data` without those that are passed over,
        which it is told here.

    Raises:
      ValueError: The reader counts no batches, and is to pass over some.
    """
    self._answers = plan.answers
    self._directory = os.fspath(plan.model_dir)
    self._data = data
    self._saves = saves
    self._is_writer = distributed.process_index() == 0
    self._events = run_events.RunEvents(self._directory, prefix='vitals')
    self._made = read(self._directory)
    self._reader = reader
    self._check_reader()
    for made in self._made:
      reader.add_window(made.first_batch, made.last_batch)
    self._num_told = 0
    self._has_told_stop = False
    self._positions: dict[int, Mapping[str, Any]] = {}

  def _check_reader(self) -> None:
    """Refuses to pass over batches that nobody counts."""
    passes = self._answers.may_rewind or self._answers.passed_over_batches
    if passes and 'batches' not in self._reader.state_dict():
      raise ValueError(
          f'answers.Answers passes over batches, and {type(self._data.reader)} '
          "counts none: expected 'batches', how many it has handed out, in its "
          "state_dict. Add it there, or answer 'go_on' or 'stop'."
      )

  def make_watch(self, trainer: Any, *, step: int) -> step_watch.StepWatch:
    """Returns what judges the steps of a run that goes on after a step."""
    watch = step_watch.StepWatch(
        self._answers,
        guard=getattr(trainer, 'update_guard', None),
        on_finding=self.tell,
        on_good_steps=self._promote,
        keep_state=self._keep_state,
    )
    self._set_back(watch, trainer, step=step)
    return watch

  def make_rank_times(self, run_dir, watchdog: Any) -> rank_times.RankTimes:
    """Returns what tells how busy hosts are, and how fast devices."""
    return rank_times.RankTimes(
        run_dir,
        tell=getattr(watchdog, 'tell_times', lambda busy, device: None),
        add_event=self._events.add,
    )

  def _set_back(self, watch: step_watch.StepWatch, trainer, *, step: int):
    state, damage = self._load_state(step)
    try:
      for name, kind in _STATE_KINDS.items() if state is not None else ():
        if not isinstance(state[name], kind):
          raise TypeError(f'{name} is {state[name]!r}')
      watch.load(state)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
      watch.load(None)
      damage = f'{type(error).__name__}: {error}'
    if damage is not None:
      self._tell(
          'state_damaged', step, math.nan, '',
          f'{self._state_path(step)} is damaged ({damage}): what is usual is '
          'learnt anew, so that faults of the next steps may pass unseen',
      )  # fmt: skip
    watch.set_limit(trainer, step=step + 1)

  def _promote(self, step: int, last_fault: int) -> None:
    self._saves.promote(
        step, last_fault=last_fault, after=self._answers.healthy_after_steps
    )

  def _state_path(self, step: int) -> epath.Path:
    return epath.Path(self._directory) / _STATES / f'step_{step}.json'

  def _keep_state(self, step: int, state: Mapping[str, Any]) -> None:
    """Keeps what is usual beside the checkpoint of a step."""
    if not self._is_writer:
      return
    try:
      path = self._state_path(step)
      small_files.replace(path, json.dumps(state), num_folders=1)
      oldest = self._saves.oldest_step()
      for old in path.parent.glob('step_*.json'):
        number = old.stem.removeprefix('step_')
        if number.isdigit() and int(number) < oldest:
          old.unlink(missing_ok=True)
    except OSError:
      logging.exception('What is usual is not kept: a restart warms up anew')

  def _load_state(
      self, step: int
  ) -> tuple[Mapping[str, Any] | None, str | None]:
    """What was kept with a step, if anything was, and what is wrong with it.

    From process 0, so that all judge alike.
    """
    state = damage = None
    if self._is_writer:
      try:
        state = json.loads(self._state_path(step).read_text())
        if state is None:
          raise ValueError('it holds null')
      except FileNotFoundError:
        pass  # saved before there were such files, or by a run without watch
      except (OSError, ValueError) as error:
        damage = f'{type(error).__name__}: {error}'
    return distributed.meet('what is usual', value=(state, damage))[0]

  def after_step(self, step: int, position: Mapping[str, Any] | None) -> None:
    """Takes where the data stand after a step; tells what was passed over."""
    if position is None:
      return
    self._positions[step] = position
    self._positions.pop(step - 2 * step_watch.LOOK_AFTER, None)
    while self._num_told < len(self._reader.passed):
      passed = self._reader.passed[self._num_told]
      if position['batches'] <= passed.last:
        return  # read ahead, and not trained past yet
      self._num_told += 1
      self._saves.note_position(step - 1, passed.after)
      self._tell(
          'passed_over', step, passed.last - passed.first + 1, 'batches',
          f'batches {passed.first} to {passed.last} were passed over before '
          f'step {step}: from {_place(passed.before)} to '
          f'{_place(passed.after)}',
      )  # fmt: skip

  def tell(self, finding: step_watch.Finding) -> None:
    """Puts a finding on record, with the batch that it is of."""
    position = self._positions.get(finding.step)
    text = str(finding)
    if position is not None and 'batches' in position:
      text += f' (batch {position["batches"]}{_end_of(position)})'
    text += f'; {_DONE[finding.answer]}'
    self._tell(finding.kind, finding.step, finding.value, '', text)
    if finding.answer == answers_lib.STOP:
      self.tell_stop(finding.step, text, value=finding.value)

  def tell_stop(self, step: int, text: str, *, value: float = math.nan) -> None:
    """Puts on record, once, why the run stops by its own numbers."""
    if not self._has_told_stop:
      self._has_told_stop = True
      self._tell('stop', step, value, '', text)

  def go_back(
      self,
      asked: step_watch.RewindAsked,
      *,
      states: Any,
      trainer: Any,
      watch: step_watch.StepWatch,
  ) -> int:
    """Puts the run back to a healthy checkpoint; returns its step.

    Args:
      asked: Why.
      states: Makes train states of the run's shape.
      trainer: Gets the state.
      watch: Judges the steps; goes back, too.

    Raises:
      step_watch.UnstableError: Too often, or there is no such checkpoint.
    """
    finding, found_after = asked.finding, asked.step
    watch.tell_good_steps()
    self._check_budget(finding)
    first_bad = max(1, finding.step - self._answers.pass_over_before)
    target = self._choose(finding, first_bad)
    self._saves.quarantine_after(target, reason=str(finding))
    position = self._saves.restore(target, states=states)
    numbers = [
        passing_over.number_of(
            self._reader.windows,
            after=position['batches'],
            trained_on=step - target,
        )
        for step in (first_bad, finding.step + self._answers.pass_over_after)
    ]
    made = Rewind(
        first_batch=numbers[0], last_batch=numbers[1], fault=finding.kind,
        fault_step=finding.step, found_after=found_after, rewound_to=target,
    )  # fmt: skip
    self._made.append(made)
    self._write()
    self._data.start_after(target, position=position)
    self._reader.go_to(step=target)
    self._reader.add_window(*numbers)
    self._num_told = 0
    self._positions.clear()
    self._saves.note_position(target, position)
    self._set_back(watch, trainer, step=target)
    self._tell(
        'rewind', found_after, found_after - target, 'steps',
        f'{finding}; back to step {target}, batches {numbers[0]} to '
        f'{numbers[1]} will be passed over (rewind {len(self._made)})',
    )  # fmt: skip
    return target

  def _check_budget(self, finding: step_watch.Finding) -> None:
    within = self._answers.rewind_budget_steps
    recent = [
        made for made in self._made if finding.step - made.fault_step < within
    ]
    if len(recent) < self._answers.max_rewinds:
      return
    steps = [made.fault_step for made in recent]
    self._stop(
        finding,
        f'it was rewound {len(recent)} times already for faults at steps '
        f'{steps}, and answers.Answers allows {self._answers.max_rewinds} '
        f'within {within} steps',
    )

  def _choose(self, finding: step_watch.Finding, first_bad: int) -> int:
    healthy = self._saves.healthy_steps()
    told = distributed.meet('healthy checkpoints', value=healthy)[0]
    before = [step for step in told if step < first_bad]
    if not before:
      self._stop(
          finding,
          f'no checkpoint before step {first_bad} is healthy (saved, and '
          f'followed by {self._answers.healthy_after_steps} good steps)',
      )
    return before[-1]

  def _stop(self, finding: step_watch.Finding, why: str) -> None:
    error = step_watch.UnstableError(finding, why=why)
    self.tell_stop(finding.step, str(error), value=finding.value)
    raise error

  def _write(self) -> None:
    if not self._is_writer:
      return
    text = json.dumps([dataclasses.asdict(made) for made in self._made])
    path = epath.Path(self._directory) / FILE
    small_files.replace(path, text, num_folders=0)

  def _tell(
      self, name: str, step: int, value: float, unit: str, text: str
  ) -> None:
    if self._is_writer:
      self._events.add(name, step=step, value=value, unit=unit, text=text)

  def close(self) -> None:
    """Waits until all that was told is on record."""
    self._events.close()


def _end_of(position: Mapping[str, Any]) -> str:
  """Where a batch ends in its source, beside its number."""
  rest = {key: position[key] for key in position if key != 'batches'}
  place = _place(rest)
  return f', which ends at {place}' if place else ''


def _place(position: Mapping[str, Any]) -> str:
  """Where data stand, in the few numbers that say it."""
  found = [f'{key} {position[key]}' for key in _TOLD if key in position]
  return ', '.join(found)
