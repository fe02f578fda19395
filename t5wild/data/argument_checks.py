# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Refuses arguments of which no data set could be made."""

from collections.abc import Mapping, Sequence
from typing import Any


def check_lengths(lengths: Any) -> None:
  """Refuses lengths that are no positive number for each feature."""

  def is_length(value):
    sizes = value if isinstance(value, Sequence) else [value]
    return all(isinstance(size, int) and size > 0 for size in sizes)

  if (
      isinstance(lengths, Mapping)
      and lengths
      and all(is_length(value) for value in lengths.values())
  ):
    return
  raise ValueError(
      f'task_feature_lengths is {lengths!r}: expected a length of at least 1 '
      "for each task feature. Set TASK_FEATURE_LENGTHS = {'inputs': 256, "
      "'targets': 128}, for instance."
  )


def check_choice(name: str, value: str, *, choices: tuple[str, ...]) -> None:
  """Refuses a value that is none of the choices of a DatasetConfig field."""
  if value not in choices:
    raise ValueError(
        f'{name} is {value!r}: expected one of {choices}. Set '
        f'data.DatasetConfig.{name} to one of them.'
    )


def check_divisible(batch_size: int, *, num_shards: int) -> None:
  """Refuses a batch that hosts cannot share equally."""
  if batch_size % num_shards:
    raise ValueError(
        f'batch_size {batch_size} does not divide over {num_shards} data '
        'shards: expected a multiple of '
        f'{num_shards}. Set BATCH_SIZE = '
        f'{-(-batch_size // num_shards) * num_shards}.'
    )
