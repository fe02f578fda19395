# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's forms of GLUE and SuperGLUE: a label's name is the target."""

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import gin_names
from t5wild.tasks.t5 import text_forms


@seqio.map_over_dataset
def glue(x, benchmark_name, label_names, feature_names=None, id_key='idx'):
  """Names a classification task and its texts: 'rte sentence1: ...'.

  Args:
    x: an example with texts, a label and an index.
    benchmark_name: begins the inputs.
    label_names: the targets, by label.
    feature_names: which texts, in that order; None is all by name.
    id_key: the field that tells examples apart; None leaves it out.

  Returns:
    Inputs, targets, and what evaluation needs.
  """
  keys = feature_names or sorted(set(x) - {'label', 'idx'})
  parts = [part for key in keys for part in (f'{key}:', x[key])]
  inputs = tf.strings.join([benchmark_name, *parts], separator=' ')
  index = {}
  if benchmark_name == 'multirc':
    inputs = tf.strings.regex_replace(inputs, '<br>', ' ')
    inputs = tf.strings.regex_replace(inputs, '</?b>', '')
    for part in ('paragraph', 'question', 'answer'):
      index[f'idx/{part}'] = x['idx'][part]
  elif id_key:
    index['idx'] = x[id_key]
  return {
      **index,
      'inputs': inputs,
      'targets': text_forms.label_text(x['label'], label_names),
  }


@seqio.map_over_dataset
def stsb(x):
  """Similarity from 0 to 5 in steps of 0.2, as text."""
  inputs = [
      'stsb sentence1:', x['sentence1'], 'sentence2:', x['sentence2']
  ]
  return {
      'inputs': tf.strings.join(inputs, separator=' '),
      'targets': tf.as_string(tf.round(x['label'] * 5) / 5, precision=1),
      'idx': x['idx'],
  }


@seqio.map_over_dataset
def wsc(x):
  """Marks a noun (*) and a pronoun (#), and asks whether they are the same."""
  first, second = x['span1_index'], x['span2_index']
  text = _marked(x['text'], x['span1_text'], first, mark='*')
  # The two marks of the first span have moved what comes after it.
  second += 2 * tf.cast(first < second, second.dtype)
  text = _marked(text, x['span2_text'], second, mark='#')
  return {
      'inputs': tf.strings.join(['wsc text:', text], separator=' '),
      'targets': text_forms.label_text(x['label'], ['False', 'True']),
      'idx': x['idx'],
  }


def _marked(
    text: tf.Tensor, span: tf.Tensor, index: tf.Tensor, *, mark: str
) -> tf.Tensor:
  """Text with marks around the span that begins at the word of that index."""
  pattern = tf.strings.join([
      r'^((?:\S+\s){', tf.as_string(index), '})(', span, ')'
  ])
  return tf.strings.regex_replace(text, pattern, rf'\1{mark} \2 {mark}')


@gin_names.configurable('t5.data.preprocessors')
def record(dataset):
  """Asks which entity fills a query's gap; an example for each right one.

  A query without answers, as in the test set, is asked once for '<unk>'.
  """

  def one_for_each_answer(x):
    # Highlights are lines of their own: they become sentences of the passage.
    passage = tf.strings.regex_replace(
        x['passage'], r'(\.|\?|\!|\"|\')\n@highlight\n', r'\1 '
    )
    passage = tf.strings.regex_replace(passage, r'\n@highlight\n', '. ')
    inputs = tf.strings.join(
        [
            'record query:', x['query'],
            'entities:', tf.strings.reduce_join(x['entities'], separator=', '),
            'passage:', passage,
        ],
        separator=' ',
    )  # fmt: skip
    answers = x['answers']
    targets = tf.cond(
        tf.size(answers) > 0, lambda: answers, lambda: tf.constant(['<unk>'])
    )
    count = tf.size(targets)
    return {
        'idx/passage': tf.fill([count], x['idx']['passage']),
        'idx/query': tf.fill([count], x['idx']['query']),
        'inputs': tf.fill([count], inputs),
        'targets': targets,
        'answers': tf.tile(answers[None, :], [count, 1]),
    }

  return dataset.map(one_for_each_answer, tf.data.AUTOTUNE).unbatch()
