# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at the loss and the gradient of every step, a few steps late.

What a step computed is on the host by then, so no step waits. The numbers are
the same on every process and are looked at after the same step, so all decide
alike without asking one another.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import math
from typing import Any

import jax
import numpy as np

from t5wild.trainer import loop
from t5wild.trainer import update_guard as update_guard_lib
from t5wild.trainer import vital_signs
from t5wild.vitals import answers as answers_lib
from t5wild.vitals import records as records_lib
from t5wild.vitals import spikes

LOOK_AFTER = loop.MAX_STEPS_IN_FLIGHT + 1
SKIPPED = 'skipped_update'
SKIPS_IN_A_ROW = 'skips_in_a_row'
_WORDS = {
    answers_lib.LOSS_SPIKE: 'the loss leapt up',
    answers_lib.GRADIENT_SPIKE: 'the norm of the gradient leapt up',
    answers_lib.NOT_FINITE: 'loss or gradient is not finite',
    answers_lib.PLATEAU: 'the loss falls no more',
    SKIPPED: 'the update was left out',
    SKIPS_IN_A_ROW: 'too many updates in a row were left out',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
  """Something that the numbers of a step tell.

  Attributes:
    kind: one of `answers`, or `SKIPPED`, or `SKIPS_IN_A_ROW`.
    step: of which the numbers are.
    value: the number.
    usual: what it is held against; NaN where there is no such thing.
    answer: `answers.GO_ON`, `REWIND` or `STOP`.
  """

  kind: str
  step: int
  value: float
  usual: float
  answer: str

  def __str__(self) -> str:
    """One clause for a person."""
    text = f'{_WORDS[self.kind]} at step {self.step}: {self.value:.6g}'
    if math.isfinite(self.usual):
      text += f', usual {self.usual:.6g}'
    return text


class RewindAsked(Exception):  # noqa: N818 -- it is answered, not an error
  """A finding sends the run back; all processes raise it after one step."""

  def __init__(self, finding: Finding, *, step: int):
    """Keeps the finding, and the step after which it was known."""
    super().__init__(f'{finding}: to be rewound, known after step {step}')
    self.finding = finding
    self.step = step


class UnstableError(Exception):
  """A run that stops because of its numbers; a restart would repeat it."""

  def __init__(self, finding: Finding, *, why: str):
    """Says what was found and why the run does not go on."""
    super().__init__(
        f'VERDICT: unstable. {finding}; the run stops, since {why}. Expected '
        'numbers in their usual range. Lower the learning rate or warm it up '
        'longer, clip gradients, look at the data of that step (the events of '
        'the run say which), or widen answers.Answers and '
        'spikes.Sensitivity; the same command alone may come to the same.'
    )
    self.finding = finding


@dataclasses.dataclass(kw_only=True)
class _Signs:
  """Numbers of one step, on their way to the host."""

  step: int
  loss: tuple[Any, ...]  # (total, count), or (total,)
  norm: Any
  skipped: Any

  def fetch(self) -> tuple[float, float, bool]:
    """Loss, norm of the gradient, whether the update was left out."""
    total, *count = [_number(part) for part in self.loss] or [math.nan]
    loss = total / count[0] if count and count[0] else total
    return loss, _number(self.norm), _number(self.skipped) > 0


class StepWatch:
  """Judges steps, remembers what is usual, and says what is to be done.

  Attributes:
    last_fault: the newest step whose fault stayed in the state, since the run
      went on with it.
  """

  def __init__(
      self,
      answers: answers_lib.Answers,
      *,
      guard: update_guard_lib.UpdateGuard | None = None,
      on_finding: Callable[[Finding], None] = lambda finding: None,
      on_good_steps: Callable[[int, int], None] = lambda step, last_fault: None,
      keep_state: Callable[[int, dict[str, Any]], None] | None = None,
  ):
    """Has seen nothing.

    Args:
      answers: What counts as a fault, and what is done about it.
      guard: Of the trainer; None where it leaves out no updates.
      on_finding: Told each finding, whatever is done about it.
      on_good_steps: Told now and then up to which step all was looked at, and
        `last_fault`.
      keep_state: Given (step, state) at each save, for `load`.
    """
    self._answers = answers
    self._guard = guard
    self._on_finding = on_finding
    self._on_good_steps = on_good_steps
    self._keep_state = keep_state
    self._unseen: collections.deque[_Signs] = collections.deque()
    self._start()

  def _start(self) -> None:
    self._detectors = {
        answers_lib.LOSS_SPIKE: spikes.Detector(self._answers.loss),
        answers_lib.GRADIENT_SPIKE: spikes.Detector(self._answers.gradient),
    }
    if self._guard is not None:
      self._detectors[SKIPPED] = spikes.Detector(self._guard.gradient)
    if self._answers.plateau_steps is not None:
      self._detectors[answers_lib.PLATEAU] = spikes.Plateau(
          steps=self._answers.plateau_steps,
          least_improvement=self._answers.plateau_improvement,
      )
    self._unseen.clear()
    self._skips_in_a_row = 0
    self._was_finite = True
    self.last_fault = 0
    self._seen_step = 0

  def limit_at(self, step: int) -> float | None:
    """Largest norm of the gradient at which update `step` is to be made."""
    if self._guard is None:
      return None
    return self._guard.limit_at(step, usual=self._detectors[SKIPPED].limit)

  def after_step(
      self, step: int, metrics: Mapping[str, Any]
  ) -> Finding | None:
    """Takes a step's metrics, on the device; looks at those of earlier steps.

    Returns:
      The first finding that ends the run or sends it back.
    """
    self._unseen.append(_signs(step, metrics))
    found = None
    while (
        found is None
        and self._unseen
        and step >= self._unseen[0].step + LOOK_AFTER
    ):
      found = self._look(self._unseen.popleft())
    return found

  def set_limit(self, trainer: Any, *, step: int) -> None:
    """Tells the trainer which norm is too large for update `step`."""
    if self._guard is not None:
      trainer.update_limit = self.limit_at(step)

  def tell_good_steps(self) -> None:
    """Tells up to which step nothing was found that asks for an answer."""
    if self._seen_step:
      self._on_good_steps(self._seen_step, self.last_fault)

  def keep(self, step: int) -> None:
    """Hands its state over to be kept with a checkpoint."""
    if self._keep_state is not None:
      self._keep_state(step, self.state())

  def look_at_all(self) -> Finding | None:
    """Looks at the newest steps, too; waits for them."""
    found = None
    while found is None and self._unseen:
      found = self._look(self._unseen.popleft())
    return found

  def _look(self, signs: _Signs) -> Finding | None:
    loss, norm, is_skipped = signs.fetch()
    found = [
        finding
        for finding in (
            self._spike(answers_lib.LOSS_SPIKE, signs.step, loss),
            self._spike(answers_lib.GRADIENT_SPIKE, signs.step, norm),
            self._not_finite(signs.step, loss, norm),
            self._plateau(signs.step, loss),
        )
        if finding is not None
    ]
    if SKIPPED in self._detectors:
      self._detectors[SKIPPED].add(norm)
    in_state = [one for one in found if one.kind != answers_lib.PLATEAU]
    if is_skipped:
      # Nothing of this step is in the state, so nothing else need be done.
      in_state = []
      found = [
          dataclasses.replace(one, answer=answers_lib.GO_ON) for one in found
      ]
    found += self._skip(signs.step, norm, is_skipped)
    if any(one.answer == answers_lib.GO_ON for one in in_state):
      self.last_fault = signs.step
    answered = [one for one in found if one.answer != answers_lib.GO_ON]
    if not answered:
      self._seen_step = signs.step
    for finding in found:
      self._on_finding(finding)
    return answered[0] if answered else None

  def _spike(self, kind: str, step: int, value: float) -> Finding | None:
    spike = self._detectors[kind].add(value)
    if spike is None:
      return None
    return self._finding(kind, step, value, usual=spike.level)

  def _not_finite(self, step: int, loss: float, norm: float) -> Finding | None:
    # A model of somebody's own may tell neither.
    is_finite = not (math.isinf(loss) or math.isinf(norm) or loss != loss)
    is_finite &= norm == norm
    begins, self._was_finite = self._was_finite and not is_finite, is_finite
    if not begins:
      return None
    value = loss if not math.isfinite(loss) else norm
    return self._finding(answers_lib.NOT_FINITE, step, value)

  def _plateau(self, step: int, loss: float) -> Finding | None:
    detector = self._detectors.get(answers_lib.PLATEAU)
    told = None if detector is None else detector.add(loss)
    if told is None:
      return None
    return self._finding(answers_lib.PLATEAU, step, told[1], usual=told[0])

  def _skip(
      self, step: int, norm: float, is_skipped: bool
  ) -> list[Finding]:
    self._skips_in_a_row = self._skips_in_a_row + 1 if is_skipped else 0
    if not is_skipped:
      return []
    finding = Finding(
        kind=SKIPPED, step=step, value=norm, answer=answers_lib.GO_ON,
        usual=self._detectors[SKIPPED].level,
    )  # fmt: skip
    if self._skips_in_a_row <= self._guard.max_in_a_row:
      return [finding]
    return [
        finding,
        Finding(
            kind=SKIPS_IN_A_ROW, step=step, value=self._skips_in_a_row,
            usual=math.nan, answer=answers_lib.STOP,
        ),  # fmt: skip
    ]

  def _finding(
      self, kind: str, step: int, value: float, *, usual: float = math.nan
  ) -> Finding:
    return Finding(
        kind=kind, step=step, value=value, usual=usual,
        answer=self._answers.to(kind),
    )  # fmt: skip

  def state(self) -> dict[str, Any]:
    """All that it goes on from, as JSON can hold it; waits for steps."""
    return {
        'detectors': {n: d.state() for n, d in self._detectors.items()},
        'unseen': [[s.step, *map(repr, s.fetch())] for s in self._unseen],
        'skips_in_a_row': self._skips_in_a_row,
        'was_finite': self._was_finite,
        'last_fault': self.last_fault,
    }

  def load(self, state: Mapping[str, Any] | None) -> None:
    """Goes on from a `state`; from None, it warms up anew."""
    self._start()
    if state is None:
      return
    for name, detector in self._detectors.items():
      if name in state['detectors']:
        detector.load(state['detectors'][name])
    for step, loss, norm, skipped in state['unseen']:
      self._unseen.append(
          _Signs(
              step=step, loss=(float(loss),), norm=float(norm),
              skipped=skipped == 'True',
          )  # fmt: skip
      )
    self._skips_in_a_row = state['skips_in_a_row']
    self._was_finite = state['was_finite']
    self.last_fault = state['last_fault']


def _signs(step: int, metrics: Mapping[str, Any]) -> _Signs:
  """Has what is looked at sent to the host, and waits for nothing."""
  per_token = metrics.get(records_lib.LOSS)
  if hasattr(per_token, 'count'):
    loss = (per_token.total, per_token.count)
  else:
    loss = (getattr(metrics.get('loss'), 'total', 0.0),)
  signs = _Signs(
      step=step,
      loss=loss,
      norm=getattr(metrics.get(vital_signs.GRADIENT_NORM), 'total', 0.0),
      skipped=getattr(metrics.get(vital_signs.UPDATES_SKIPPED), 'total', 0.0),
  )
  for part in (*signs.loss, signs.norm, signs.skipped):
    if isinstance(part, jax.Array):
      part.copy_to_host_async()
  return signs


def _number(value: Any) -> float:
  return float(np.asarray(value).reshape(()))
