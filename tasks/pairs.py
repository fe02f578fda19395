# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Supervised tasks over columns of a source: inputs, and what is asked for.

In gin:

    from t5wild.tasks import pairs
    from t5wild.tasks import sources
    MIXTURE_OR_TASK_NAME = @pairs.pair_task()
    pairs.pair_task.source = @sources.files()
    sources.files.paths = 'my_pairs/*.jsonl'
    pairs.pair_task.inputs = 'question: {question} context: {context}'
    pairs.pair_task.targets = 'answer'

Importing this module registers nothing and imports no TensorFlow.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
import string
from typing import Any

from t5wild.tasks import metrics
from t5wild.tasks import text_objectives


def pair_task(
    source: Any,
    *,
    inputs: str = 'inputs',
    targets: str = 'targets',
    name: str | None = None,
    vocabulary: Any = None,
    metric_fns: Sequence[Callable[..., Any]] | None = None,
    shuffle_buffer_size: int = 10_000,
) -> Any:
  """Makes a seqio task of inputs and targets; it is not registered.

  Args:
    source: a seqio.DataSource, such as those of `t5wild.tasks.sources`.
    inputs: a column of text, or of tokens of the vocabulary; or a text in which
      columns stand in braces, such as 'translate to German: {en}'.
    targets: the same.
    name: name of the task, by which its metrics go.
    vocabulary: see `text_objectives.task_parts`.
    metric_fns: seqio's metric functions, None for the share of targets that
      are predicted exactly.
    shuffle_buffer_size: examples among which the next one is drawn.

  Returns:
    A seqio.Task.

  Raises:
    FileNotFoundError: for a vocabulary that does not exist.
    ValueError: for a column that the source lacks.
  """
  import seqio

  vocabulary = text_objectives.seqio_vocabulary(vocabulary)
  templates = {'inputs': inputs, 'targets': targets}
  columns = {
      each for text in templates.values() for each in columns_of(text)
  }
  if hasattr(source, 'with_columns'):  # reads no more of it
    source = source.with_columns({column: column for column in sorted(columns)})
  return seqio.Task(
      name or 'pairs',
      source=source,
      preprocessors=[
          functools.partial(fill_in, templates=templates),
          text_objectives.without_end,
          tokenize,
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features={
          feature: seqio.Feature(vocabulary=vocabulary)
          for feature in templates
      },
      metric_fns=list(
          [metrics.sequence_accuracy] if metric_fns is None else metric_fns
      ),
      shuffle_buffer_size=shuffle_buffer_size,
  )


def columns_of(text: str) -> list[str]:
  """The columns in the braces of a text, or the one that it names itself.

  Raises:
    ValueError: a brace is left open, or has no column in it.
  """
  if '{' not in text and '}' not in text:
    return [text]
  try:
    found = [each[1] for each in string.Formatter().parse(text)]
  except ValueError:
    raise ValueError(_bad_braces(text)) from None
  names = [name for name in found if name is not None]
  if not names or not all(names):
    raise ValueError(_bad_braces(text))
  return names


def _bad_braces(text: str) -> str:
  return (
      f'the text is {text!r}: expected the name of a column, or columns in '
      "braces, such as 'question: {question}'. Close each brace around a name "
      '({{ and }} are braces themselves).'
  )


def fill_in(dataset: Any, *, templates: Mapping[str, str]) -> Any:
  """seqio preprocessor: features made of the columns that their texts name."""
  spec = dataset.element_spec

  for text in templates.values():
    for column in columns_of(text):
      _check_column(column, spec, is_alone=text == column)

  def fill(example):
    return {
        feature: _filled(text, example) for feature, text in templates.items()
    }

  return dataset.map(fill, num_parallel_calls=2, deterministic=True)


def _check_column(
    column: str, spec: Mapping[str, Any], *, is_alone: bool
) -> None:
  fields = sorted(spec)
  if column not in fields:
    raise ValueError(
        f'the source has no column {column!r}: expected one of {fields}. '
        "Correct pair_task's inputs and targets."
    )
  rank = spec[column].shape.rank
  if rank and not (is_alone and rank == 1 and spec[column].dtype.is_integer):
    raise ValueError(
        f'the column {column!r} is of rank {rank} and type '
        f'{spec[column].dtype.name}: expected a text or a number, or (alone, '
        "with no text around it) tokens. Choose another for pair_task's inputs "
        'or targets, or write a preprocessor of your own.'
    )


def _filled(text: str, example: Mapping[str, Any]) -> Any:
  import tensorflow as tf

  if columns_of(text) == [text]:
    value = example[text]
    return value if value.shape.rank else _as_text(value)
  parts = []
  for literal, column, *_ in string.Formatter().parse(text):
    parts.append(tf.constant(literal))
    if column is not None:
      parts.append(_as_text(example[column]))
  return tf.strings.join(parts)


def _as_text(value: Any) -> Any:
  import tensorflow as tf

  return value if value.dtype == tf.string else tf.strings.as_string(value)


def tokenize(dataset: Any, output_features: Any) -> Any:
  """seqio preprocessor: texts to ids, kept as '..._pretokenized'; ids stay."""
  import tensorflow as tf

  def encode(example):
    made = {}
    for name, value in example.items():
      if value.dtype == tf.string:
        made[f'{name}_pretokenized'] = value
        value = output_features[name].vocabulary.encode_tf(value)
      made[name] = tf.cast(value, tf.int32)
    return made

  return dataset.map(encode, num_parallel_calls=2, deterministic=True)
