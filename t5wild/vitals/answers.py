# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does when its numbers leave their range: `answers.Answers` in gin.

Go on (the default: it is told and recorded), rewind, or stop. Leaving out one
update is decided inside the compiled step: `trainer.Trainer.update_guard`.
"""

from collections.abc import Sequence
import dataclasses
import difflib

from t5wild.vitals import spikes

GO_ON = 'go_on'
REWIND = 'rewind'
STOP = 'stop'

# What may be found, and what may be done about it.
LOSS_SPIKE = 'loss_spike'
GRADIENT_SPIKE = 'gradient_spike'
NOT_FINITE = 'not_finite'
PLATEAU = 'plateau'
_CHOICES = {
    LOSS_SPIKE: (GO_ON, REWIND, STOP),
    GRADIENT_SPIKE: (GO_ON, REWIND, STOP),
    NOT_FINITE: (GO_ON, REWIND, STOP),
    PLATEAU: (GO_ON, STOP),
}
_SENSITIVITIES = {
    'loss': spikes.Sensitivity(), 'gradient': spikes.OF_GRADIENTS
}
_COUNTS = {
    'pass_over_before': (0, 'batches before the one of the fault'),
    'pass_over_after': (0, 'batches after the one of the fault'),
    'max_rewinds': (1, 'rewinds within rewind_budget_steps'),
    'rewind_budget_steps': (1, 'steps that max_rewinds counts for'),
    'healthy_after_steps': (1, 'good steps that make a checkpoint healthy'),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
  """What counts as a fault of the numbers, and what is done about it.

  In gin, as runs/pretrain.gin has it:

    answers.Answers.loss_spike = 'rewind'
    answers.Answers.not_finite = 'rewind'

  Attributes:
    loss_spike: `go_on`, `rewind` or `stop` when the loss leaps up.
    gradient_spike: the same for the norm of the gradient.
    not_finite: the same when either is not finite.
    plateau: `go_on` or `stop` when the loss falls no more.
    loss: when the loss is a spike; None: `spikes.Sensitivity()`.
    gradient: when the norm of the gradient is one; None: `spikes.OF_GRADIENTS`.
    plateau_steps: steps whose two halves are compared; None: never.
    plateau_improvement: share by which the later half must be lower.
    pass_over_before: after a rewind the batch of the fault is passed over, and
      so many before it: what a batch does to the parameters shows in the next
      one's loss.
    pass_over_after: and so many after it.
    max_rewinds: a run that needs more of them stops.
    rewind_budget_steps: ... within so many steps.
    healthy_after_steps: a checkpoint is healthy, to be gone back to, once so
      many good steps were made from it.
    passed_over_batches: (first, last) of batches, counted from 1, that the run
      never trains on: what another run's record lists, to repeat it.
  """

  loss_spike: str = GO_ON
  gradient_spike: str = GO_ON
  not_finite: str = GO_ON
  plateau: str = GO_ON
  loss: spikes.Sensitivity | None = None
  gradient: spikes.Sensitivity | None = None
  plateau_steps: int | None = 10_000
  plateau_improvement: float = 1e-3
  pass_over_before: int = 1
  pass_over_after: int = 0
  max_rewinds: int = 3
  rewind_budget_steps: int = 1000
  healthy_after_steps: int = 100
  passed_over_batches: Sequence[tuple[int, int]] = ()

  def __post_init__(self):
    """Refuses what no answer can be.

    Raises:
      ValueError: names the argument.
    """
    for name, choices in _CHOICES.items():
      _check_choice(name, getattr(self, name), choices)
    for name, default in _SENSITIVITIES.items():
      if getattr(self, name) is None:
        object.__setattr__(self, name, default)
      _check_sensitivity(name, getattr(self, name))
    for name, (least, what) in _COUNTS.items():
      _check_count(name, getattr(self, name), least, what)
    if self.plateau_steps is not None:
      _check_count('plateau_steps', self.plateau_steps, 2, 'steps, or None')
    if not 0 <= self.plateau_improvement < 1:
      raise ValueError(
          f'plateau_improvement of Answers is {self.plateau_improvement!r}: '
          'expected a share of at least 0 and below 1. Set '
          'answers.Answers.plateau_improvement to 0.001 for a thousandth.'
      )
    for window in self.passed_over_batches:
      check_window(window)

  @property
  def may_rewind(self) -> bool:
    """Whether anything makes the run go back."""
    return REWIND in (self.loss_spike, self.gradient_spike, self.not_finite)

  def to(self, kind: str) -> str:
    """The answer to a kind of finding."""
    return getattr(self, kind)


def check_window(window) -> None:
  """Refuses what is no window of batches.

  Raises:
    ValueError: says so.
  """
  is_pair = isinstance(window, Sequence) and len(window) == 2
  if (
      not is_pair
      or not all(type(number) is int for number in window)
      or not 1 <= window[0] <= window[1]
  ):
    raise ValueError(
        f'passed_over_batches of Answers has {window!r}: expected (first, '
        'last), two batches counted from 1 with the first not after the last. '
        'Write [(17, 18)] to leave out the 17th and the 18th.'
    )


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
  if value in choices:
    return
  close = difflib.get_close_matches(str(value), choices, n=1)
  hint = f' (did you mean {close[0]!r}?)' if close else ''
  mend = f'Correct answers.Answers.{name}.'
  if value == 'skip':
    hint = ''
    mend = (
        'An update is left out inside the step, by its gradient: set '
        'trainer.Trainer.update_guard = @update_guard.UpdateGuard().'
    )
  raise ValueError(
      f'{name} of Answers is {value!r}{hint}: expected one of '
      f'{", ".join(map(repr, choices))}. {mend}'
  )


def _check_sensitivity(name: str, value) -> None:
  if not isinstance(value, spikes.Sensitivity):
    raise ValueError(
        f'{name} of Answers is {value!r}: expected a Sensitivity. Write '
        f'answers.Answers.{name} = @{name}/spikes.Sensitivity() and set its '
        f'arguments by {name}/spikes.Sensitivity.deviations and the like.'
    )


def _check_count(name: str, value, least: int, what: str) -> None:
  if type(value) is not int or value < least:
    raise ValueError(
        f'{name} of Answers is {value!r}: expected a whole number of at least '
        f'{least}, the {what}. Set answers.Answers.{name} to one.'
    )
