# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of a state's arrays: assignment maps, and how two models differ.

A key is the path of an array in the nested state dict, joined by '/':
'target/encoder/layers_0/mlp/wi_0/kernel', 'state/step'.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import difflib
import re
from typing import Any

from absl import logging
from flax import traverse_util
import flax.core

AssignmentMap = Sequence[tuple[str, str | None]]

# The parameters; beside them a state dict has 'state' and 'flax_mutables'.
TARGET = 'target/'
_MOST_LINES = 20


class DifferentModelError(ValueError):
  """A checkpoint whose arrays are not those of the model."""


def flatten(state_dict: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the leaves by key; empty dicts and None have no key."""
  flat = traverse_util.flatten_dict(flax.core.unfreeze(state_dict), sep='/')
  return {key: leaf for key, leaf in flat.items() if leaf is not None}


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the nested dict of leaves by key."""
  return traverse_util.unflatten_dict(dict(flat), sep='/')


def is_target(key: str) -> bool:
  """Whether a key names a parameter."""
  return key.startswith(TARGET)


def check_assignment_map(assignment_map: AssignmentMap) -> None:
  """Refuses what is no sequence of (pattern, replacement or None).

  Raises:
    ValueError: A pair that is none, or a pattern that does not compile.
  """
  for rule in assignment_map:
    if isinstance(rule, str) or len(rule) != 2:
      raise ValueError(
          f'assignment_map holds {rule!r}, expected pairs (pattern over the '
          "model's keys, replacement or None): write it as "
          "((r'target/new/(.*)', r'target/old/\\1'), (r'state/.*', None))"
      )
    try:
      re.compile(rule[0])
    except re.error as error:
      raise ValueError(
          f'assignment_map has the pattern {rule[0]!r}, expected a regular '
          f'expression ({error}): mend the pattern'
      ) from error


def apply_assignment_map(
    ckpt_optimizer_state: Mapping[str, Any],
    optimizer_state: Mapping[str, Any],
    assignment_map: AssignmentMap,
    require_all_rules_match: bool = True,
    *,
    is_resuming: bool = False,
) -> Mapping[str, Any]:
  """Returns the checkpoint's state under the model's names.

  The first rule whose pattern matches a model's key wholly decides: the key
  takes the checkpoint's array named by the replacement (with groups filled
  in), or no array at all when the replacement is None. Keys without a rule
  take the array of their own name, if there is one. Checkpoint keys that a
  rule names lose their old place; others stay. T5X's meaning and signature.

  Args:
    ckpt_optimizer_state: Nested state dict of the checkpoint.
    optimizer_state: Nested state dict of the model.
    assignment_map: The rules, in order.
    require_all_rules_match: Whether a rule that matches nothing is an error.
    is_resuming: A run that goes on has mapped its names before: nothing is
      changed.

  Raises:
    ValueError: A replacement names nothing in the checkpoint, or a rule
      matches nothing in the model.
  """
  if is_resuming:
    return ckpt_optimizer_state
  stored = flatten(ckpt_optimizer_state)
  wanted = flatten(optimizer_state)
  sources, used = _match(wanted, assignment_map)
  named = {old for old in sources.values() if old is not None}
  _check_named(named - stored.keys(), stored)
  if require_all_rules_match:
    _check_used(used, assignment_map, wanted)
  result = {
      key: leaf
      for key, leaf in stored.items()
      if key not in named and key not in sources
  }
  for key in wanted:
    old = sources.get(key, key)
    if old is None:
      logging.info('Not restored, as assignment_map says: %s', key)
    elif old in stored:
      result[key] = stored[old]
  return unflatten(result)


def _match(
    wanted: Iterable[str], assignment_map: AssignmentMap
) -> tuple[dict[str, str | None], set[str]]:
  """Returns the source of each key that a rule decides, and used patterns."""
  sources, used = {}, set()
  for key in wanted:
    for pattern, replacement in assignment_map:
      match = re.fullmatch(pattern, key)
      if match:
        used.add(pattern)
        sources[key] = replacement and match.expand(replacement)
        break
  return sources, used


def _check_named(missing: set[str], stored: Mapping[str, Any]) -> None:
  if missing:
    lines = [
        f'  {key}, did you mean {difflib.get_close_matches(key, stored, n=1)}'
        for key in sorted(missing)
    ]
    raise ValueError(
        f'assignment_map takes {len(missing)} arrays that are not in the '
        f'checkpoint:\n{_some(lines)}\nexpected keys of the checkpoint: mend '
        'the replacements, or map to None to leave an array out'
    )


def _check_used(
    used: set[str], assignment_map: AssignmentMap, wanted: Mapping[str, Any]
) -> None:
  unused = [pattern for pattern, _ in assignment_map if pattern not in used]
  if unused:
    raise ValueError(
        f'assignment_map has patterns that decide nothing: {unused}, expected '
        f'each to match wholly, and before another, a key of the model such as '
        f'{sorted(wanted)[:3]}: mend or drop them'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
  """How the arrays of a checkpoint differ from those a model wants.

  Attributes:
    missing: Wanted, not in the checkpoint; in order.
    extra: In the checkpoint, not wanted; in order.
    reshaped: In both, with other shapes; in order.
  """

  missing: tuple[str, ...]
  extra: tuple[str, ...]
  reshaped: tuple[str, ...]

  @classmethod
  def between(
      cls, stored: Mapping[str, Any], wanted: Mapping[str, Any]
  ) -> 'Difference':
    """Compares two flat states; leaves have `shape`."""
    return cls(
        missing=tuple(sorted(wanted.keys() - stored.keys())),
        extra=tuple(sorted(stored.keys() - wanted.keys())),
        reshaped=tuple(
            key
            for key in sorted(wanted.keys() & stored.keys())
            if tuple(stored[key].shape) != tuple(wanted[key].shape)
        ),
    )


def check_same_model(
    stored: Mapping[str, Any],
    wanted: Mapping[str, Any],
    *,
    path: str,
    strict: bool = True,
    fallback_to_scratch: bool = False,
) -> tuple[str, ...]:
  """Returns the keys to make from scratch; refuses another model.

  Args:
    stored: The checkpoint's arrays by key, after all transformations.
    wanted: The model's arrays by key.
    path: The checkpoint, for the error.
    strict: Whether parameters that the model lacks are an error; what else it
      lacks (an optimizer's state, at inference) never is.
    fallback_to_scratch: Whether arrays that the checkpoint lacks are made from
      scratch; else they are an error.

  Raises:
    DifferentModelError: The differences, both sides.
  """
  found = Difference.between(stored, wanted)
  extra = tuple(key for key in found.extra if strict and is_target(key))
  missing = () if fallback_to_scratch else found.missing
  if not (missing or extra or found.reshaped):
    return found.missing
  blocks = [
      (
          'in the model, not in the checkpoint:',
          _named(missing, wanted, near=found.extra),
      ),
      ('in the checkpoint, not in the model:', _named(extra, stored)),
      (
          'of another shape (model | checkpoint):',
          [
              f'  {key}: {_shape(wanted[key])} | {_shape(stored[key])}'
              for key in found.reshaped
          ],
      ),
  ]
  shown = '\n'.join(
      f'{head}\n{_some(lines)}' for head, lines in blocks if lines
  )
  mend = _mend(missing, extra, found.reshaped)
  raise DifferentModelError(
      f'{path} is of another model: '
      f'{len(missing) + len(extra) + len(found.reshaped)} of '
      f'{len(stored.keys() | wanted.keys())} arrays differ\n{shown}\n'
      f'expected the same names and shapes: {mend}'
  )


def _mend(
    missing: Sequence[str], extra: Sequence[str], reshaped: Sequence[str]
) -> str:
  if not any(is_target(key) for key in (*missing, *extra, *reshaped)):
    anew = 'RestoreCheckpointConfig.fallback_to_scratch=True'
    if reshaped:
      anew += " and assignment_map=((r'state/param_states/.*', None),)"
    return (
        'take the optimizer that the checkpoint was trained with, and its '
        f'settings, or begin it anew with {anew}'
    )
  ways = ["take the checkpoint's model"]
  if missing:
    ways.append(
        'rename by RestoreCheckpointConfig.assignment_map, or make what is '
        'missing from scratch with fallback_to_scratch=True'
    )
  if extra:
    ways.append('leave out what is too much with strict=False')
  return '; '.join(ways)


def _named(
    keys: Sequence[str], leaves: Mapping[str, Any], *, near: Sequence[str] = ()
) -> list[str]:
  """Names and shapes; of the first ones also the closest name there is."""
  lines = [f'  {key} {_shape(leaves[key])}' for key in keys]
  for number, key in enumerate(keys[:_MOST_LINES] if near else ()):
    close = difflib.get_close_matches(key, near, n=1, cutoff=0.8)
    if close:
      lines[number] += f', did you mean {close[0]}'
  return lines


def _shape(leaf: Any) -> str:
  return f'{leaf.dtype}{list(leaf.shape)}'


def _some(lines: Sequence[str]) -> str:
  shown = list(lines[:_MOST_LINES])
  if len(lines) > _MOST_LINES:
    shown.append(f'  ... and {len(lines) - _MOST_LINES} more')
  return '\n'.join(shown)
