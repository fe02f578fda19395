# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a checkpoint, by everything that can be read of it."""

from collections.abc import Sequence
import dataclasses
import os

from etils import epath

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import listing
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
  """What was found.

  Attributes:
    word: In one word or two.
    said: How much was looked at.
    problems: What is wrong; none where it is good.
  """

  word: str
  said: str
  problems: Sequence[str]


def has_gone(checkpoint: str) -> bool:
  """Whether there is no such checkpoint any more: a run removes old ones."""
  if steps.is_bucket(checkpoint):
    return not steps.is_complete(checkpoint)
  return not epath.Path(checkpoint).exists()


def verify(checkpoint: str, *, with_arrays: bool) -> Verdict:
  """Reads all files of a checkpoint, and holds them against their hashes.

  Args:
    checkpoint: Its folder.
    with_arrays: Whether to decode all arrays, too.

  Raises:
    OSError: It cannot be read.
  """
  run_id = run_ids.of_store(os.path.dirname(checkpoint))
  seeming = listing.problem(checkpoint, run_id)
  problems = [] if seeming is None else [seeming]
  try:
    verdict = file_hashes.verify(checkpoint)
    problems += [str(damage) for damage in verdict.damages]
    said = f'{verdict.num_files} files, {verdict.num_bytes / 1e6:,.1f} MB'
    if verdict.unknown:
      said += f', {len(verdict.unknown)} files have no checksum'
    if verdict.damages:
      with_arrays = True  # which of them it is
  except file_hashes.NoHashesError as error:
    said, with_arrays = f'files: {error}', True
  word = 'good'
  if with_arrays:
    try:
      problems += _array_problems(checkpoint)
      said += ', all arrays'
    except file_hashes.NoHashesError as error:
      unreadable = _unreadable(checkpoint)
      problems += unreadable
      # A list that is there and says nothing is damaged; none is of old.
      if array_hashes.has_any(checkpoint):
        problems.append(f'arrays: {error}')
      if not unreadable:
        word = 'UNCHECKED, readable'
        said += ', arrays: no hashes either; all were decoded'
  return Verdict(
      word='DAMAGED' if problems else word, said=said, problems=problems
  )


def _array_problems(checkpoint: str) -> list[str]:
  from t5wild.checkpoint_files import stored_arrays  # TensorStore, numpy

  try:
    return [
        f'array {key} {what}' for key, what in stored_arrays.damages(checkpoint)
    ]
  except steps.NotACheckpointError as error:
    return [f'arrays: {error}']


def _unreadable(checkpoint: str) -> list[str]:
  """What cannot be decoded of a checkpoint without hashes."""
  from t5wild.checkpoint_files import stored_arrays  # TensorStore, numpy

  problems = []
  try:
    for key in stored_arrays.names(checkpoint):
      try:
        stored_arrays.read(checkpoint, key)
      except steps.NotACheckpointError as error:
        problems.append(f'array {key}: {error}')
  except steps.NotACheckpointError as error:
    problems.append(f'arrays: {error}')
  return problems
