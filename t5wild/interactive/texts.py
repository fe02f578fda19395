# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Texts typed by hand, and batches of a task, as seqio data sets (T5X's names).

An example is a text, or {'input': ..., 'target': ...} of texts or token ids.
"""

from collections.abc import Callable, Mapping, Sequence
import inspect
from typing import Any

import numpy as np

Example = str | Mapping[str, Any]

_FIELDS = {'inputs': 'input', 'targets': 'target'}


def get_dataset_from_natural_text_examples(
    examples: Sequence[Example],
    preprocessors: Sequence[Callable[..., Any]],
    task_feature_lengths: Mapping[str, int] | None,
    features: Mapping[str, Any],
) -> Any:
  """Returns a tf.data.Dataset of examples, preprocessed (T5X's signature).

  Args:
    examples: A text alone has an empty target.
    preprocessors: seqio's and their like: functions of a data set, and of
      `sequence_length` and `output_features` if they take them.
    task_feature_lengths: Where features are cut off; None cuts nothing.
    features: Name to seqio.Feature of what must be there in the end.

  Raises:
    ValueError: An example is none, or a feature is not there in the end.
  """
  import seqio
  import tensorflow as tf

  columns = _columns(examples)
  dataset = tf.data.Dataset.from_generator(
      lambda: (
          dict(zip(columns, row, strict=True))
          for row in zip(*columns.values(), strict=True)
      ),
      output_signature={
          name: tf.TensorSpec([], tf.string)
          if values[0].ndim == 0
          else tf.TensorSpec([None], tf.int32)
          for name, values in columns.items()
      },
  )
  offered = {
      'sequence_length': task_feature_lengths,
      'output_features': features,
  }
  for preprocessor in preprocessors:
    taken = inspect.signature(preprocessor).parameters
    dataset = preprocessor(
        dataset, **{n: value for n, value in offered.items() if n in taken}
    )
  _check_features(dataset.element_spec, features)
  return seqio.utils.trim_dataset(dataset, task_feature_lengths, features)


def _columns(examples: Sequence[Example]) -> dict[str, list[np.ndarray]]:
  """Values of each feature: texts are arrays of no dimension, ids of one."""
  if not examples:
    raise ValueError(
        f'examples is {examples!r}: expected at least one. Give texts, or '
        "dicts like {'input': 'a text', 'target': 'another'}."
    )
  columns: dict[str, list[np.ndarray]] = {name: [] for name in _FIELDS}
  for number, example in enumerate(examples):
    record = as_record(example, number=number)
    for name, value in record.items():
      is_text = isinstance(value, str | bytes)
      columns[name].append(
          np.asarray(value, object if is_text else np.int32)
      )
  for name, values in columns.items():
    if len({value.ndim for value in values}) > 1:
      raise ValueError(
          f'the {name} are of several kinds, expected texts or lists of token '
          'ids, the same for all examples. Make them alike.'
      )
  return columns


def as_record(example: Example, *, number: int) -> dict[str, Any]:
  """Returns an example as {'inputs': ..., 'targets': ...}.

  Raises:
    ValueError: It is none; `number` says which.
  """
  if isinstance(example, str | bytes):
    return {'inputs': example, 'targets': ''}
  record = {}
  if isinstance(example, Mapping):
    record = {
        name: example[key]
        for name, field in _FIELDS.items()
        for key in (field, name)
        if key in example
    }
  if record.keys() != _FIELDS.keys():
    raise ValueError(
        f'example {number} is {example!r}: expected a text, or a dict with '
        "'input' and 'target'. Mend it."
    )
  return record


def _check_features(spec: Mapping[str, Any], features: Mapping[str, Any]):
  for name, feature in features.items():
    if name not in spec:
      if feature.required:
        raise ValueError(
            f'after preprocessing the examples have {sorted(spec)}: expected '
            f'{name!r} among them. Mend the preprocessors.'
        )
      continue
    found = spec[name]
    if (found.dtype, found.shape.rank) != (feature.dtype, feature.rank):
      raise ValueError(
          f'after preprocessing {name!r} is {found.dtype.name} with '
          f'{found.shape.rank} dimensions: expected {feature.dtype.name} with '
          f'{feature.rank}. Mend the preprocessors: tokenize turns texts into '
          'ids.'
      )


def get_batches_from_seqio(
    task_or_mixture_name: str,
    split: str,
    batch_size: int,
    num_batches: int,
    get_pretokenized_examples: bool = True,
    sequence_length: Mapping[str, int] | None = None,
    **get_dataset_kwargs: Any,
) -> list[list[dict[str, Any]]]:
  """Returns batches of examples of a task (T5X's signature).

  Args:
    task_or_mixture_name: A registered task or mixture.
    split: Which split.
    batch_size: Examples of each batch.
    num_batches: Number of batches.
    get_pretokenized_examples: Texts, or else token ids.
    sequence_length: Where features are cut off.
    **get_dataset_kwargs: More arguments of the task's `get_dataset`.

  Raises:
    ValueError: The task has too few examples.
  """
  import seqio

  dataset = seqio.get_mixture_or_task(task_or_mixture_name).get_dataset(
      sequence_length=sequence_length, split=split, **get_dataset_kwargs
  )
  needed = batch_size * num_batches
  suffix = '_pretokenized' if get_pretokenized_examples else ''
  examples = [
      {
          field: one[name + suffix]
          if get_pretokenized_examples
          else one[name].tolist()
          for name, field in _FIELDS.items()
      }
      for one in dataset.take(needed).as_numpy_iterator()
  ]
  if len(examples) < needed:
    raise ValueError(
        f'{task_or_mixture_name} has {len(examples)} examples in split '
        f'{split!r}: expected {needed}, {num_batches} batches of {batch_size}. '
        'Ask for fewer.'
    )
  return [
      examples[start : start + batch_size]
      for start in range(0, needed, batch_size)
  ]
