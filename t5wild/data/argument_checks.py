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


def check_features(
    *, converter: Any, lengths: Mapping[str, Any], task: Any
) -> None:
  """Refuses a task, or lengths, without the features a model's data needs.

  Args:
    converter: a seqio feature converter.
    lengths: length by task feature.
    task: a seqio task or mixture.
  """
  if 'inputs' in lengths:  # seqio's converter for both picks one by this
    converter = getattr(converter, 'prefixlm_feature_converter', converter)
  needed = list(getattr(converter, 'TASK_FEATURES', ()))
  for owner, names, mend in (
      (
          f'task {task.name!r}', list(task.output_features),
          'Choose another MIXTURE_OR_TASK_NAME, or a model for these features '
          "(models.DecoderOnlyModel needs 'targets' alone).",
      ),
      (
          'task_feature_lengths', list(lengths),
          'Add them to TASK_FEATURE_LENGTHS, or choose a model for these '
          "features (models.DecoderOnlyModel needs 'targets' alone).",
      ),
  ):  # fmt: skip
    missing = [name for name in needed if name not in names]
    if missing:
      raise ValueError(
          f'{owner} lacks the features {missing}:\n'
          f'  {type(converter).__name__} (of the model) needs {needed}\n'
          f'  {owner} has {names}\n'
          f'Expected all that are needed. {mend}'
      )
