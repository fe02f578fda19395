# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints stay and which go; pure, no disk touched."""

from collections.abc import Collection, Mapping
import dataclasses
import difflib
import math

BEST_MODES = ('max', 'min')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
  """What to keep; a checkpoint stays when any of the rules keeps it.

  The newest checkpoint and the newest healthy one always stay, whatever the
  rules say.

  Attributes:
    keep: Number of newest checkpoints; None keeps all, unless `keep_best`
      says how many.
    keep_best: Number of best checkpoints by `best_metric`, besides; None for
      no such rule.
    best_metric: Name as in the run's metrics, such as
      'training_eval/my_task/accuracy'.
    best_mode: 'max' or 'min': which value is the best.
    keep_without_metric: Whether a checkpoint without a value of `best_metric`
      stays until there is one.
    keep_period: Checkpoints at its multiples stay for ever; None for none.
  """

  keep: int | None = None
  keep_best: int | None = None
  best_metric: str | None = None
  best_mode: str = 'max'
  keep_without_metric: bool = False
  keep_period: int | None = None

  def __post_init__(self):
    """Refuses counts below 1 and halves of a keep-best rule."""
    for name in ('keep', 'keep_best', 'keep_period'):
      _check_count(name, getattr(self, name))
    if self.best_mode not in BEST_MODES:
      raise ValueError(
          f'best_mode is {self.best_mode!r}, expected one of {BEST_MODES}: use '
          "'min' for a loss and 'max' for an accuracy"
      )
    if self.keep_best is not None and not self.best_metric:
      raise ValueError(
          f'keep_best is {self.keep_best} and best_metric is '
          f'{self.best_metric!r}, expected the name of a metric: take one from '
          "the run's metrics.jsonl, such as 'training_eval/my_task/accuracy'"
      )

  @property
  def tracks_best(self) -> bool:
    """Whether metrics decide anything."""
    return self.keep_best is not None


def _check_count(name: str, count: int | None) -> None:
  if count is not None and (not isinstance(count, int) or count < 1):
    raise ValueError(
        f'{name} is {count!r}, expected a whole number of at least 1, or None '
        f'for no such rule: set SaveCheckpointConfig.{name} accordingly'
    )


def steps_to_remove(
    steps: Collection[int],
    *,
    policy: Policy,
    metrics: Mapping[int, Mapping[str, float]] | None = None,
    healthy: Collection[int] = (),
) -> list[int]:
  """Returns the steps whose checkpoints go, oldest first.

  Args:
    steps: Steps with a complete checkpoint, in any order.
    policy: The rules.
    metrics: Values known for each step; a value that is not finite counts as
      the worst.
    healthy: Those of the steps that were found healthy; the newest of them
      stays, whatever the rules say.
  """
  ordered = sorted(steps)
  if policy.keep is None and not policy.tracks_best:
    return []
  kept = set(ordered[-(policy.keep or 1) :])
  kept.update(sorted(healthy)[-1:])
  if policy.keep_period is not None:
    kept.update(step for step in ordered if step % policy.keep_period == 0)
  if policy.tracks_best:
    kept.update(_best(ordered, policy, metrics or {}))
  return [step for step in ordered if step not in kept]


def _best(
    ordered: list[int],
    policy: Policy,
    metrics: Mapping[int, Mapping[str, float]],
) -> list[int]:
  """The best steps, the later of two equals, and those yet unjudged."""
  values = {
      step: metrics[step][policy.best_metric]
      for step in ordered
      if policy.best_metric in metrics.get(step, ())
  }
  sign = 1.0 if policy.best_mode == 'max' else -1.0

  def rank(step: int):
    value = values[step]
    return (sign * value if math.isfinite(value) else -math.inf, step)

  best = sorted(values, key=rank)[-policy.keep_best :]
  if policy.keep_without_metric:
    best += [step for step in ordered if step not in values]
  return best


def dataset_states_to_remove(
    steps: Collection[int], *, keep: int | None
) -> list[int]:
  """Returns the steps whose data positions go, oldest first; None: none."""
  return [] if keep is None else sorted(steps)[:-keep]


def explain_missing_metric(
    policy: Policy, metrics: Mapping[str, float]
) -> str | None:
  """Returns why `metrics` cannot rank a checkpoint, or None if they can."""
  if not policy.tracks_best or policy.best_metric in metrics:
    return None
  close = difflib.get_close_matches(policy.best_metric, metrics, n=3, cutoff=0)
  return (
      f'best_metric is {policy.best_metric!r}, which is not among the '
      f'{len(metrics)} metrics of this evaluation, expected one of them (did '
      f'you mean {close}?): set SaveCheckpointConfig.best_metric to a name '
      'that the run writes to metrics.jsonl'
  )
