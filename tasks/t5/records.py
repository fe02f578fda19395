# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of plain files as TensorFlow's examples, in TFDS's types.

Read from JSON lines, Parquet or Arrow: one file after the other, each whole.
"""

from collections.abc import Iterator, Mapping, Sequence
import gzip
import itertools
import json
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet
import tensorflow as tf

from t5wild.data import pipelines

# How many records are looked at for the type of a list that is empty in some.
_NUM_LOOKED_AT = 1000
# TFDS has class labels in 64 bits, other whole numbers in 32.
_LABEL = 'label'
# The Hugging Face hub puts a pair's texts below this field.
_NESTED_PAIR = 'translation'


def read(paths: Sequence[str]) -> Iterator[dict[str, Any]]:
  """The records of some files."""
  for path in paths:
    for text in read_texts(path):
      yield _record(text)


def read_texts(path: str) -> list[str]:
  """The records of a file, each as JSON.

  Raises:
    ValueError: a line that is no JSON object, with its number.
  """
  if path.endswith('.parquet'):
    return _texts_of(parquet.read_table(path))
  if path.endswith('.arrow'):
    with pyarrow.memory_map(path) as source:
      return _texts_of(pyarrow.ipc.open_stream(source).read_all())
  opened = gzip.open(path, 'rt') if path.endswith('.gz') else open(path)  # noqa: SIM115 -- closed below
  with opened as file:
    texts = []
    for number, line in enumerate(file, 1):
      if line.strip():
        _check_line(line, path=path, number=number)
        texts.append(line)
    return texts


def count(paths: Sequence[str]) -> int:
  """Number of records of some files."""
  return sum(
      parquet.read_metadata(path).num_rows
      if path.endswith('.parquet')
      else len(read_texts(path))
      for path in paths
  )


def make_dataset(
    paths: Sequence[str], *, shuffle: bool, seed: int | None
) -> tf.data.Dataset:
  """The examples of some files, whose order alone is shuffled."""
  signature = _signature(itertools.islice(read(paths), _NUM_LOOKED_AT))
  flat = tf.nest.flatten(signature)

  def texts_of(path):
    def read_file(path):
      with pipelines.failures_kept():
        return np.array(read_texts(path.decode()), object)

    # Not stateful: only so can tf.data save the position of an iterator.
    texts = tf.numpy_function(read_file, [path], tf.string, stateful=False)
    texts.set_shape([None])
    return tf.data.Dataset.from_tensor_slices(texts)

  def example_of(text):
    def values(text):
      with pipelines.failures_kept():
        return _values(_record(text.decode()), signature)

    types = [spec.dtype for spec in flat]
    found = tf.numpy_function(values, [text], types, stateful=False)
    for value, spec in zip(found, flat, strict=True):
      value.set_shape(spec.shape)
    return tf.nest.pack_sequence_as(signature, found)

  dataset = tf.data.Dataset.from_tensor_slices(list(paths))
  if shuffle:
    dataset = dataset.shuffle(len(paths), seed=seed)
  return dataset.flat_map(texts_of).map(example_of, tf.data.AUTOTUNE)


def _texts_of(table: pyarrow.Table) -> list[str]:
  return [
      json.dumps(record)
      for batch in table.to_batches()
      for record in batch.to_pylist()
  ]


def _record(text: str) -> dict[str, Any]:
  record = json.loads(text)
  nested = record.get(_NESTED_PAIR)
  return nested if isinstance(nested, dict) else record


def _check_line(line: str, *, path: str, number: int) -> None:
  try:
    is_record = isinstance(json.loads(line), dict)
  except ValueError:
    is_record = False
  if not is_record:
    raise ValueError(
        f'{path}:{number} is {line[:60]!r}: expected a JSON object on each '
        'line, such as {"sentence": "...", "label": 1}. Mend the file.'
    )


def _signature(records: Iterator[Mapping[str, Any]]) -> dict[str, Any]:
  """The types of the fields that all records have."""
  records = list(records)
  common = set.intersection(*(set(record) for record in records))
  return {
      name: _spec(name, [record[name] for record in records])
      for name in sorted(common)
  }


def _spec(name: str, values: Sequence[Any]) -> Any:
  """The type of a field, of some of its values."""
  found = [value for value in values if value is not None]
  if found and all(isinstance(value, dict) for value in found):
    return _signature(iter(found))
  if found and all(isinstance(value, list) for value in found):
    items = [item for value in found for item in value]
    if items and all(isinstance(item, dict) for item in items):
      fields = _signature(iter(items))  # a list of records: a record of lists
      return {
          key: tf.TensorSpec([None], spec.dtype)
          for key, spec in fields.items()
      }
    return tf.TensorSpec([None], _type(name, items))
  return tf.TensorSpec([], _type(name, found))


def _type(name: str, values: Sequence[Any]) -> tf.DType:
  if any(isinstance(value, str) for value in values) or not values:
    return tf.string
  if any(isinstance(value, list | dict) for value in values):
    raise ValueError(
        f'the field {name!r} has lists of lists: expected text, numbers, lists '
        'of these, or records of them. Write the file without that field.'
    )
  if any(isinstance(value, float) for value in values):
    return tf.float32
  if all(isinstance(value, bool) for value in values) and name != _LABEL:
    return tf.bool
  return tf.int64 if name == _LABEL else tf.int32


def _values(record: Mapping[str, Any], signature: Any) -> list[np.ndarray]:
  """The values of a record, in the order of the flat signature."""
  found = []
  for name in sorted(signature):
    spec, value = signature[name], record[name]
    if not isinstance(spec, dict):
      found.append(_array(value, spec))
      continue
    if isinstance(value, list):
      value = {key: [item[key] for item in value] for key in spec}
    found += _values(value, spec)
  return found


def _array(value: Any, spec: tf.TensorSpec) -> np.ndarray:
  if value is None:  # such as the label of a test set
    value = [] if spec.shape.rank else ('' if spec.dtype == tf.string else -1)
  if spec.dtype == tf.string:
    texts = (
        [text.encode() for text in value]
        if isinstance(value, list)
        else value.encode()
    )
    return np.array(texts, object)
  return np.array(value, spec.dtype.as_numpy_dtype)
