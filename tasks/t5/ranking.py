# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Examples whose answers are ranked by their likelihood, T5's way."""

from collections.abc import Callable, Mapping, Sequence
import functools
import re

import tensorflow as tf

_MODES = ('train', 'eval', 'fewshot_eval')
_FIELD = re.compile(r'\{([^\s{}]+)\}')
_Example = Mapping[str, tf.Tensor]


def rank_classification(
    ds: tf.data.Dataset,
    inputs_fn: Callable[[_Example], tf.Tensor],
    targets_fn: Callable[[_Example], tf.Tensor],
    is_correct_fn: Callable[[_Example], tf.Tensor],
    weight_fn: Callable[[_Example], tf.Tensor] | None = None,
    mode: str = 'eval',
    passthrough_feature_keys: Sequence[str] | None = None,
) -> tf.data.Dataset:
  """Makes an example of each possible answer.

  The postprocessor and the metric of this name go with it.

  Args:
    ds: examples.
    inputs_fn: from an example, the inputs of each answer.
    targets_fn: each answer.
    is_correct_fn: whether each is right.
    weight_fn: weight of the example in metrics; None is 1.
    mode: 'train' keeps right answers, 'eval' all, 'fewshot_eval' all of an
      example as one batch.
    passthrough_feature_keys: fields of the example to keep.

  Returns:
    The data set; 'idx' is the number of the example and that of the answer.

  Raises:
    ValueError: for another mode, or a field to keep that is made here.
  """
  if mode not in _MODES:
    raise ValueError(
        f'mode is {mode!r}: expected one of {_MODES}. Correct it.'
    )

  def answers_of(number, example):
    return _answers(
        tf.cast(number, tf.int32),
        example,
        functions=(inputs_fn, targets_fn, is_correct_fn, weight_fn),
        kept=passthrough_feature_keys or (),
    )

  ds = ds.enumerate().map(answers_of, tf.data.AUTOTUNE)
  if mode != 'fewshot_eval':
    ds = ds.unbatch()
  if mode == 'train':
    ds = ds.filter(lambda x: x['is_correct'])
  return ds


def rank_classification_formatter(
    ds: tf.data.Dataset,
    inputs_formats: str | Sequence[str],
    targets_formats: str | Sequence[str],
    mode: str = 'eval',
    label_key: str = 'label',
    weight_key: str | None = None,
) -> tf.data.Dataset:
  """As `rank_classification`, with texts that formats make of the fields.

  Args:
    ds: examples.
    inputs_formats: such as '{premise} What then?', one for all answers or a
      list; 'a/b' is the field b within a.
    targets_formats: the same; at least one of the two is a list.
    mode: see `rank_classification`.
    label_key: field with the number of the right answer, or several.
    weight_key: field with the weight.

  Returns:
    The data set.

  Raises:
    ValueError: for lists of different lengths, or none.
  """
  lists = [
      formats
      for formats in (inputs_formats, targets_formats)
      if isinstance(formats, list | tuple)
  ]
  if not lists or len({len(formats) for formats in lists}) > 1:
    raise ValueError(
        'the formats do not tell how many answers there are:\n'
        f'  inputs:  {inputs_formats!r}\n  targets: {targets_formats!r}\n'
        'Expected a list for one of them, or two lists of one length. Give one '
        'format for each answer.'
    )
  num_classes = len(lists[0])

  def texts(example, formats):
    if isinstance(formats, str):
      formats = [formats] * num_classes
    return [_filled(form, example) for form in formats]

  def is_correct(example):
    right = tf.one_hot(
        example[label_key], num_classes, on_value=True, off_value=False
    )
    return tf.reduce_any(right, 0) if example[label_key].shape.rank else right

  return rank_classification(
      ds,
      inputs_fn=functools.partial(texts, formats=inputs_formats),
      targets_fn=functools.partial(texts, formats=targets_formats),
      is_correct_fn=is_correct,
      weight_fn=None if weight_key is None else lambda x: x[weight_key],
      mode=mode,
  )


def _answers(
    number: tf.Tensor,
    example: _Example,
    *,
    functions: tuple[Callable[[_Example], tf.Tensor] | None, ...],
    kept: Sequence[str],
) -> dict[str, tf.Tensor]:
  inputs_fn, targets_fn, is_correct_fn, weight_fn = functions
  inputs, targets = inputs_fn(example), targets_fn(example)
  is_correct = tf.cast(is_correct_fn(example), tf.bool)
  count = tf.size(is_correct)
  tf.debugging.assert_equal(
      count,
      [tf.size(inputs), tf.size(targets)],
      'Inputs, targets and is_correct are not as many.',
  )
  made = {
      'idx': tf.stack([tf.fill([count], number), tf.range(count)], 1),
      'inputs': inputs,
      'targets': targets,
      'is_correct': is_correct,
  }
  if weight_fn is not None:
    made['weight'] = tf.cast(tf.fill([count], weight_fn(example)), tf.float32)
  taken = sorted(set(kept) & set(made))
  if taken:
    raise ValueError(
        f'passthrough_feature_keys has {taken}: expected fields that are not '
        f'made here, which are {sorted(made)}. Rename them before.'
    )
  for key in kept:
    shape = tf.concat([[count], tf.shape(example[key])], 0)
    made[key] = tf.broadcast_to(example[key], shape)
  return made


def _filled(form: str, example: _Example) -> tf.Tensor:
  """The format with the example's fields in it."""
  text = tf.constant(form)
  for key in sorted(set(_FIELD.findall(form))):
    value = example
    for part in key.split('/'):
      value = value[part]
    if getattr(value, 'dtype', None) != tf.string:
      raise ValueError(
          f'the field {key!r} of the format {form!r} is {value!r}: expected '
          'text. Make it text before.'
      )
    text = tf.strings.regex_replace(text, re.escape(f'{{{key}}}'), value)
  return text
