# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's tasks of before seqio: text preprocessors, then token preprocessors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import defaults

_KEYS = ('inputs', 'targets')
SHUFFLE_BUFFER_SIZE = 1000


class FunctionTask(seqio.Task):
  """A task whose texts are tokenized between two lists of preprocessors."""

  def __init__(  # noqa: PLR0913 -- T5's signature
      self,
      name,
      dataset_fn,
      splits,
      text_preprocessor,
      metric_fns=None,
      postprocess_fn=None,
      token_preprocessor=None,
      output_features=None,
      num_input_examples=None,
      supports_caching=True,
      shuffle_buffer_size=SHUFFLE_BUFFER_SIZE,
      source=None,
  ):
    """Takes a function that makes the examples of a split, or a source.

    Args:
      name: the task's.
      dataset_fn: from split and shuffle_files, a data set; or None.
      splits: names of the splits, where there is no source.
      text_preprocessor: one or a list, of texts.
      metric_fns: the task's.
      postprocess_fn: one, or a list applied in turn.
      token_preprocessor: one or a list, of tokens.
      output_features: by name; or one for inputs and targets; or names, with
        T5's vocabulary; None is inputs and targets with it.
      num_input_examples: by split, where there is no source.
      supports_caching: whether tokens may be cached.
      shuffle_buffer_size: examples among which the next one is drawn.
      source: a seqio source instead of the function.

    Raises:
      ValueError: both a function and a source, or neither; no features.
    """
    if (dataset_fn is None) == (source is None):
      raise ValueError(
          f'dataset_fn is {dataset_fn} and source is {source}: expected one of '
          'the two. Leave one out.'
      )
    if source and (splits or num_input_examples):
      raise ValueError(
          f'there are a source, splits {splits} and num_input_examples '
          f'{num_input_examples}: expected the source alone, which knows them. '
          'Leave them out.'
      )
    super().__init__(
        name=name,
        source=source
        or seqio.FunctionDataSource(
            dataset_fn=dataset_fn,
            splits=splits,
            num_input_examples=num_input_examples,
        ),
        output_features=_features(output_features),
        preprocessors=[
            *_as_list(text_preprocessor),
            seqio.preprocessors.tokenize,
            *([seqio.CacheDatasetPlaceholder()] if supports_caching else []),
            *_as_list(token_preprocessor),
            seqio.preprocessors.append_eos_after_trim,
        ],
        postprocess_fn=_in_turn(postprocess_fn),
        metric_fns=metric_fns,
        shuffle_buffer_size=shuffle_buffer_size,
    )


class TfdsTask(FunctionTask):
  """A `FunctionTask` of a TFDS data set."""

  def __init__(
      self,
      name,
      tfds_name,
      text_preprocessor,
      metric_fns,
      tfds_data_dir=None,
      splits=None,
      **task_kwargs,
  ):
    """Takes the data set's name with its version, and where it lies."""
    super().__init__(
        name,
        None,
        None,
        text_preprocessor,
        metric_fns,
        source=seqio.TfdsDataSource(
            tfds_name=tfds_name, tfds_data_dir=tfds_data_dir, splits=splits
        ),
        **task_kwargs,
    )


class TextLineTask(FunctionTask):
  """A `FunctionTask` of the lines of files."""

  def __init__(
      self,
      name,
      split_to_filepattern,
      text_preprocessor,
      metric_fns,
      skip_header_lines=0,
      **task_kwargs,
  ):
    """Takes the files of each split; preprocessors make fields of lines."""
    num_input_examples = task_kwargs.pop('num_input_examples', None)
    super().__init__(
        name,
        None,
        None,
        text_preprocessor,
        metric_fns,
        source=seqio.TextLineDataSource(
            split_to_filepattern=split_to_filepattern,
            skip_header_lines=skip_header_lines,
            num_input_examples=num_input_examples,
        ),
        **task_kwargs,
    )


class TFExampleTask(FunctionTask):
  """A `FunctionTask` of files of tf.train.Example."""

  def __init__(
      self,
      name,
      split_to_filepattern,
      feature_description,
      text_preprocessor,
      metric_fns,
      reader=tf.data.TFRecordDataset,
      **task_kwargs,
  ):
    """Takes the files of each split, their fields, and how they are read."""
    num_input_examples = task_kwargs.pop('num_input_examples', None)
    super().__init__(
        name,
        None,
        None,
        text_preprocessor,
        metric_fns,
        source=seqio.TFExampleDataSource(
            split_to_filepattern=split_to_filepattern,
            feature_description=feature_description,
            reader_cls=reader,
            num_input_examples=num_input_examples,
        ),
        **task_kwargs,
    )


class TaskRegistry(seqio.TaskRegistry):
  """seqio's registry, to which tasks are added by class."""

  @classmethod
  def add(cls, name: str, task_cls=FunctionTask, **kwargs) -> seqio.Task:
    """Makes a task of a class, and adds it to seqio's registry."""
    task = task_cls(name, **kwargs)
    seqio.TaskRegistry.add_provider(name, task)
    return task

  @classmethod
  def reset(cls) -> None:
    """Empties seqio's registry."""
    seqio.TaskRegistry.reset()


def _as_list(preprocessors: Any) -> list[Callable[..., Any]]:
  if preprocessors is None:
    return []
  if isinstance(preprocessors, Sequence):
    return list(preprocessors)
  return [preprocessors]


def _features(given: Any) -> dict[str, seqio.Feature]:
  """Features by name, of whatever is given for them."""
  if given is None:
    given = seqio.Feature(defaults.get_default_vocabulary())
  if isinstance(given, seqio.Feature):
    return dict.fromkeys(_KEYS, given)
  if given and isinstance(given, Mapping):
    return dict(given)
  if given and isinstance(given, list) and all(
      isinstance(name, str) for name in given
  ):
    vocabulary = defaults.get_default_vocabulary()
    return {name: seqio.Feature(vocabulary) for name in given}
  raise ValueError(
      f'output_features is {given!r}: expected features by name, one feature, '
      'a list of names, or None. Give one of these.'
  )


def _in_turn(functions: Any) -> Callable[..., Any] | None:
  if functions is None or callable(functions):
    return functions

  def apply(value, **arguments):
    for function in functions:
      value = function(value, **arguments)
    return value

  return apply
