# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's forms of questions that a text answers: SQuAD and TriviaQA."""

import seqio
import tensorflow as tf

from t5wild.tasks.t5 import text_forms

_REGEX_SIGNS = r'([\\.+*?()|\[\]{}^$])'


@seqio.map_over_dataset
def squad(x, include_context=True):
  """Asks SQuAD's questions: 'question: ... context: ...'.

  Args:
    x: an example of SQuAD.
    include_context: whether the text that has the answer is given.

  Returns:
    Inputs, the first answer as targets, and all answers for evaluation.
  """
  answers = text_forms.with_spaced_punctuation(x['answers']['text'])
  question = text_forms.with_spaced_punctuation(x['question'])
  context = text_forms.with_spaced_punctuation(x['context'])
  inputs = (
      text_forms.joined('question:', question, 'context:', context)
      if include_context
      else text_forms.joined('squad trivia question:', question)
  )
  return {
      'inputs': inputs,
      'targets': answers[0],
      'id': x['id'],
      'context': context,
      'question': question,
      'answers': answers,
  }


def squad_span_space_tokenized(dataset):
  """As `squad`, with where the answer stands: 'start: 3 end: 6', in words.

  Questions whose answer is not found word by word are left out.
  """

  def with_place(x):
    return {**x, 'targets': _place(x['context'], x['targets'])}

  dataset = squad(dataset).map(with_place, tf.data.AUTOTUNE)
  return dataset.filter(lambda x: tf.strings.length(x['targets']) > 0)


def trivia_qa(dataset):
  """Asks TriviaQA's questions of each text that has an answer.

  A question becomes one example for each pair of a text and an answer (in its
  normalised form) that stands in it.
  """

  def pairs(x):
    texts = [
        x[source][field]
        for source, field in (
            ('entity_pages', 'wiki_context'),
            ('search_results', 'search_context'),
        )
        if source in x
    ]
    contexts = text_forms.with_spaced_punctuation(tf.concat(texts, 0))
    answers = text_forms.with_spaced_punctuation(
        x['answer']['normalized_aliases']
    )
    question = text_forms.with_spaced_punctuation(x['question'])
    # Every text with every answer, the texts one after the other.
    context = tf.repeat(contexts, tf.size(answers))
    answer = tf.tile(answers, [tf.size(contexts)])
    has_answer = tf.map_fn(
        _contains, (context, answer), fn_output_signature=tf.bool
    )
    inputs = text_forms.joined('question:', question, 'context:', context)
    return {
        'inputs': tf.boolean_mask(inputs, has_answer),
        'targets': tf.boolean_mask(answer, has_answer),
    }

  return dataset.map(pairs, tf.data.AUTOTUNE).unbatch()


def trivia_qa_truncate_inputs(dataset, output_features, sequence_length):
  """Cuts long inputs to a random piece that has the targets in it.

  Args:
    dataset: tokens of inputs and targets.
    output_features: accepted as T5 does.
    sequence_length: has the length of the inputs.

  Returns:
    The data set, without examples whose long inputs have no such piece.
  """
  del output_features
  length = sequence_length['inputs']

  @seqio.map_over_dataset(num_seeds=1)
  def cut(x, seed):
    inputs, targets = x['inputs'], x['targets']
    if tf.size(inputs) > length:
      inputs = _piece_around(inputs, targets, length=length, seed=seed)
    return {'inputs': inputs, 'targets': targets}

  return cut(dataset).filter(lambda x: tf.size(x['inputs']) > 0)


def _piece_around(
    inputs: tf.Tensor, targets: tf.Tensor, *, length: int, seed: tf.Tensor
) -> tf.Tensor:
  """`length` tokens with the first occurrence of the targets; else none."""
  size, wanted = tf.size(inputs), tf.size(targets)
  places = tf.range(size - wanted + 1)[:, None] + tf.range(wanted)[None, :]
  found = tf.where(tf.reduce_all(tf.gather(inputs, places) == targets, 1))
  if tf.size(found) == 0:
    return inputs[:0]
  place = tf.cast(found[0][0], tf.int32)
  start = tf.random.stateless_uniform(
      [],
      minval=tf.maximum(0, place - (length - wanted)),
      maxval=tf.minimum(place, size - length) + 1,
      dtype=tf.int32,
      seed=seed,
  )
  return inputs[start : start + length]


def _contains(pair: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
  text, part = map(tf.strings.lower, pair)
  literal = tf.strings.regex_replace(part, _REGEX_SIGNS, r'\\\1')
  return tf.strings.regex_full_match(
      text, tf.strings.join(['.*', literal, '.*'])
  )


def _place(context: tf.Tensor, answer: tf.Tensor) -> tf.Tensor:
  """First and last word of the answer, as text; empty where it is not."""
  words, wanted = _words(context), _words(answer)
  count = tf.size(wanted)
  # As in T5 the very last place of all is not looked at.
  starts = tf.range(tf.maximum(0, tf.size(words) - count))
  windows = tf.gather(words, starts[:, None] + tf.range(count)[None, :])
  found = tf.where(tf.reduce_all(windows == wanted, 1))
  if tf.size(found) == 0:
    return tf.constant('')
  start = tf.cast(found[0][0], tf.int32)
  return tf.strings.join([
      'start: ', tf.as_string(start), ' end: ',
      tf.as_string(start + count - 1),
  ])  # fmt: skip


def _words(text: tf.Tensor) -> tf.Tensor:
  text = tf.strings.regex_replace(text, r'\W', ' ')
  return tf.strings.split(text, sep=' ')
