# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's simple forms of pronoun tasks: the target is what a pronoun means."""

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import wnli_candidates

_GAP = ' X '


@seqio.map_over_dataset
def definite_pronoun_resolution_simple(x, label='wsc:'):
  """Marks the pronoun (its first place) and asks for the right candidate."""
  marked = tf.strings.regex_replace(
      x['sentence'],
      tf.strings.join([' (', x['pronoun'], r')( |\.|,)']),
      r' *\1*\2',
      replace_global=False,
  )
  return {
      'inputs': tf.strings.join([label, marked], separator=' '),
      'targets': x['candidates'][x['label']],
  }


def wsc_simple(dataset, label='wsc:', correct_referent_only=False):
  """Marks SuperGLUE WSC's pronoun; the target is the noun it is asked of.

  Args:
    dataset: examples of WSC.
    label: begins the inputs.
    correct_referent_only: leave out nouns that the pronoun does not mean; so
      one trains, while evaluation compares with the label.

  Returns:
    The data set of inputs, targets, label and index.
  """

  def form(x):
    pronoun = tf.strings.join([' *', x['span2_text'], '* '])
    marked = tf.strings.regex_replace(_with_gap(x), _GAP, pronoun)
    return {
        'inputs': tf.strings.join([label, marked], separator=' '),
        'targets': tf.reshape(x['span1_text'], []),
        'label': x.get('label', 0),
        'idx': x['idx'],
    }

  if correct_referent_only:
    dataset = dataset.filter(lambda x: tf.cast(x.get('label', 0), tf.bool))
  return dataset.map(form, tf.data.AUTOTUNE)


@seqio.map_over_dataset
def wnli_simple(x, label='wsc:'):
  """Guesses from premise and hypothesis which pronoun WNLI asks about.

  For evaluation only: the guess is right for WNLI's own sentences.
  """

  def guess(premise, hypothesis):
    return wnli_candidates.inputs_and_targets(
        premise.numpy().decode(), hypothesis.numpy().decode(), label=label
    )

  inputs, targets = tf.py_function(
      guess, [x['sentence1'], x['sentence2']], [tf.string, tf.string]
  )
  return {
      'inputs': tf.reshape(inputs, []),
      'targets': tf.reshape(targets, []),
      'premise': x['sentence1'],
      'hypothesis': x['sentence2'],
      'label': x.get('label', 0),
      'idx': x['idx'],
  }


def _with_gap(x) -> tf.Tensor:
  """The text with an X for the pronoun.

  Two of WSC's texts are not as the others: the pronoun has punctuation at it
  (which gets a word of its own), or stands one word after its index.
  """
  words = tf.strings.split(x['text'], sep=' ')
  pronoun, index = x['span2_text'], tf.cast(x['span2_index'], tf.int32)
  is_next = (words[index] != pronoun) & (
      words[tf.minimum(index + 1, tf.size(words) - 1)] == pronoun
  )
  index += tf.cast(is_next, tf.int32)
  rest = tf.strings.substr(words[index], tf.strings.length(pronoun), -1)
  tf.debugging.assert_equal(
      tf.strings.join([pronoun, rest]),
      words[index],
      'A text of WSC has another word than the pronoun at its index.',
  )
  before = tf.strings.reduce_join(words[:index], separator=' ')
  after = tf.strings.reduce_join(words[index + 1 :], separator=' ')
  if tf.strings.length(rest) == 0:
    return tf.strings.join([before, 'X', after], separator=' ')
  return tf.strings.strip(
      tf.strings.join([before, 'X', rest, after], separator=' ')
  )
