# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How much text fits the lengths of a task, and what its vocabulary lacks.

Everything here is asked before any text is read.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

from t5wild.data import denoisers
from t5wild.data import spans

_USUAL_EXTRA_IDS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Room:
  """Tokens that fit, end of sequence not counted.

  `inputs` is None where examples have targets only, which then hold both.
  """

  inputs: int | None
  targets: int

  @property
  def is_concatenated(self) -> bool:
    """Whether inputs and targets share the room of the targets."""
    return self.inputs is None

  def fits(self, lengths: denoisers.Lengths, *, num_mode_tokens: int) -> bool:
    """Whether what a rule makes is never cut off."""
    if self.inputs is None:
      return num_mode_tokens + lengths.total <= self.targets
    return (
        num_mode_tokens + lengths.inputs <= self.inputs
        and lengths.targets <= self.targets
    )


def make_room(sequence_length: Any, output_features: Mapping[str, Any]) -> Room:
  """Reads the room off a task's lengths and features.

  Raises:
    ValueError: for a length that is missing or leaves no room.
  """
  room = {}
  for name in ('inputs', 'targets'):
    if name not in output_features:
      continue
    length = (sequence_length or {}).get(name)
    num_eos = int(output_features[name].add_eos)
    if not length or length <= num_eos:
      raise ValueError(
          f'the length of {name!r} is {length!r} in {sequence_length!r}: '
          f'expected at least {num_eos + 1} for each of '
          f'{sorted(output_features)}, as the task has these features. Set '
          f"TASK_FEATURE_LENGTHS[{name!r}], or make the task with features = "
          "'targets' for a model that reads targets only."
      )
    room[name] = length - num_eos
  return Room(inputs=room.get('inputs'), targets=room['targets'])


def longest_chunk(
    rule: denoisers.Rule,
    *,
    room: Room,
    num_mode_tokens: int = 0,
    max_tokens_length: int | None = None,
    min_tokens: int = 2,
) -> int:
  """Finds the most text of which a rule makes no more than fits.

  Args:
    rule: what turns text into inputs and targets.
    room: what fits.
    num_mode_tokens: tokens that stand before the inputs.
    max_tokens_length: no more text than this, None for no limit.
    min_tokens: no less text than this is worth an example.

  Returns:
    Tokens of text.

  Raises:
    ValueError: where not even `min_tokens` fit.
  """
  least = max(min_tokens, 1)
  most = (room.inputs or 0) + room.targets
  if max_tokens_length is not None:
    most = min(most, max_tokens_length)
  if most < least or not room.fits(
      rule.lengths(least), num_mode_tokens=num_mode_tokens
  ):
    needed = rule.lengths(least)
    raise ValueError(
        f'{rule} leaves no room for text: of {least} tokens it makes up to '
        f'{num_mode_tokens + needed.inputs} inputs and {needed.targets} '
        f'targets ({num_mode_tokens + needed.total} together), and there is '
        f'room for {room.inputs} inputs and {room.targets} targets, '
        f'max_tokens_length {max_tokens_length}. Raise TASK_FEATURE_LENGTHS.'
    )
  # What a rule makes never shrinks as the text grows.
  while least < most:
    middle = (least + most + 1) // 2
    if room.fits(rule.lengths(middle), num_mode_tokens=num_mode_tokens):
      least = middle
    else:
      most = middle - 1
  return least


def check_sentinels(
    vocabulary: Any, *, num_sentinels: int, what_for: str, else_do: str
) -> None:
  """Refuses a vocabulary of too few sentinels.

  Raises:
    ValueError: with the number there are and the number needed.
  """
  extra_ids = getattr(vocabulary, 'extra_ids', 0) or 0
  if num_sentinels > extra_ids:
    raise ValueError(
        f'the vocabulary has {extra_ids} sentinels (extra_ids; t5wild data '
        f'inspect takes --extra_ids): expected at least {num_sentinels}, '
        f'{what_for}. Give it extra_ids='
        f'{max(num_sentinels, _USUAL_EXTRA_IDS)}, or {else_do}.'
    )


def checked_plan(
    room: Room,
    *,
    vocabulary: Any,
    noise_density: float,
    mean_noise_span_length: float,
) -> spans.SpanPlan:
  """Makes T5's plan of span corruption, or says why nothing would fit.

  Args:
    room: what fits.
    vocabulary: its `extra_ids` are the sentinels.
    noise_density: fraction of the tokens to corrupt.
    mean_noise_span_length: mean tokens per corrupted span.

  Returns:
    The plan.

  Raises:
    ValueError: where the targets would be cut off, or sentinels run out.
  """
  noise = {
      'noise_density': noise_density,
      'mean_noise_span_length': mean_noise_span_length,
  }
  if room.inputs is None:
    rule = denoisers.SpanDenoiser(**noise)
    plan = rule.plan(longest_chunk(rule, room=room))
  else:
    plan = spans.plan_for_inputs(room.inputs + 1, **noise)
    if plan.targets_length - 1 > room.targets:
      raise ValueError(
          f'targets of length {room.targets + 1} would be cut off: span '
          f'corruption of {room.inputs + 1} inputs (density {noise_density}, '
          f'mean span {mean_noise_span_length}) makes {plan.targets_length} '
          'targets, end of sequence included. Set TASK_FEATURE_LENGTHS = '
          f"{{'inputs': {room.inputs + 1}, 'targets': {plan.targets_length}}} "
          '(or more).'
      )
  check_sentinels(
      vocabulary,
      num_sentinels=plan.num_noise_spans,
      what_for=f'one per corrupted span of {plan.tokens_length} tokens',
      else_do='raise mean_noise_span_length',
  )
  return plan


def check_weights(weights: Sequence[float], *, of: str) -> None:
  """Refuses weights by which nothing can be drawn.

  Raises:
    ValueError: for a weight below 0, or none above.
  """
  if weights and all(
      math.isfinite(weight) and weight >= 0 for weight in weights
  ) and sum(weights) > 0:
    return
  raise ValueError(
      f'the weights of {of} are {list(weights)}: expected finite numbers of at '
      'least 0, one of them above 0. Correct those that are not; a weight of '
      '0 leaves one out.'
  )


def check_fraction(name: str, value: float) -> None:
  """Refuses a share that is not between 0 and 1, both included.

  Raises:
    ValueError: with the name and the value.
  """
  if not 0.0 <= value <= 1.0:
    raise ValueError(
        f'{name} is {value!r}: expected a fraction from 0 to 1. Set the '
        f"objective's {name} to one."
    )
