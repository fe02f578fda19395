# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Examples get T5's texts: what t5 0.9.4 makes of the same records."""

import functools

import pytest
import seqio
import tensorflow as tf

from t5wild.tasks.t5 import classes
from t5wild.tasks.t5 import glue
from t5wild.tasks.t5 import pairs
from t5wild.tasks.t5 import postprocessors
from t5wild.tasks.t5 import questions
from t5wild.tasks.t5 import ranking
from t5wild.tasks.t5 import referents


def _made(form, *records):
  """Inputs and targets of what a form makes of some records."""
  found = []
  for record in records:
    dataset = tf.data.Dataset.from_tensors(
        tf.nest.map_structure(tf.constant, record, expand_composites=True)
    )
    for example in form(dataset).as_numpy_iterator():
      found.append((example['inputs'].decode(), example['targets'].decode()))
  return found


def _label(number):
  return tf.constant(number, tf.int64)


def test_a_translation_names_its_languages():
  form = functools.partial(
      pairs.translate, source_language='en', target_language='ro'
  )
  assert _made(form, {'en': 'Hello "you"', 'ro': 'Bună'}) == [
      ('translate English to Romanian: Hello "you"', 'Bună')
  ]


def test_a_language_without_a_name_is_refused_with_the_codes_there_are():
  form = functools.partial(
      pairs.translate, source_language='xx', target_language='de'
  )
  with pytest.raises(ValueError, match="'xx'"):
    _made(form, {'xx': 'a', 'de': 'b'})


@pytest.mark.parametrize(
    ('name', 'record', 'expected'),
    [
        (
            'cola',
            {'sentence': 'They drank.', 'label': _label(1), 'idx': 1},
            ('cola sentence: They drank.', 'acceptable'),
        ),
        (
            'ax',
            {'premise': 'a', 'hypothesis': 'b', 'label': _label(-1), 'idx': 1},
            ('mnli hypothesis: b premise: a', '<unk>'),
        ),
        (
            'stsb',
            {'sentence1': 'a', 'sentence2': 'b', 'label': 3.25, 'idx': 1},
            ('stsb sentence1: a sentence2: b', '3.2'),
        ),
        (
            'wic',
            {
                'sentence1': 'a', 'sentence2': 'b', 'word': 'c',
                'start1': 0, 'label': _label(0), 'idx': 1,
            },
            ('wic sentence1: a sentence2: b word: c', 'False'),
        ),
        (
            'multirc',
            {
                'paragraph': '<b>Sent 1: </b>Hi.<br>', 'question': 'q?',
                'answer': 'a', 'label': _label(1),
                'idx': {'paragraph': 1, 'question': 2, 'answer': 3},
            },
            ('multirc question: q? answer: a paragraph: Sent 1: Hi. ', 'True'),
        ),
    ],
)  # fmt: skip
def test_a_benchmark_has_its_form(name, record, expected):
  benchmark = next(
      each for each in (*glue.GLUE, *glue.SUPER_GLUE) if each.name == name
  )
  form = glue.get_glue_text_preprocessor(benchmark)
  assert _made(form, record) == [expected]


def test_record_asks_once_for_each_right_entity():
  record = {
      'passage': 'One.\n@highlight\nTwo\n@highlight\nThree',
      'query': 'A @placeholder', 'entities': ['A', 'B'], 'answers': ['B', 'A'],
      'idx': {'passage': 1, 'query': 2},
  }  # fmt: skip
  inputs = (
      'record query: A @placeholder entities: A, B passage: One. Two. Three'
  )
  assert _made(classes.record, record) == [(inputs, 'B'), (inputs, 'A')]


def _wsc(text, index, pronoun, noun='Tom', label=1):
  return {
      'text': text, 'span1_text': noun, 'span1_index': 2,
      'span2_text': pronoun, 'span2_index': index, 'label': _label(label),
      'idx': 1,
  }  # fmt: skip


@pytest.mark.parametrize(
    ('text', 'index', 'pronoun', 'inputs'),
    [
        ('Ann asked Tom if he could .', 4, 'he',
         'wsc: Ann asked Tom if *he* could .'),
        ('Go for him," he said. ', 2, 'him', 'wsc: Go for *him* ," he said.'),
        ('They may use it , now', 2, 'it', 'wsc: They may use *it* , now'),
    ],
)  # fmt: skip
def test_the_pronoun_of_wsc_is_marked(text, index, pronoun, inputs):
  assert _made(referents.wsc_simple, _wsc(text, index, pronoun)) == [
      (inputs, 'Tom')
  ]


def test_wsc_is_trained_on_right_nouns_alone():
  form = functools.partial(referents.wsc_simple, correct_referent_only=True)
  text = 'Ann asked Tom if he could .'
  right, wrong = _wsc(text, 4, 'he'), _wsc(text, 4, 'he', 'Ann', label=0)
  assert [target for _, target in _made(form, right, wrong)] == ['Tom']


def test_wnli_tells_which_pronoun_is_meant():
  record = {
      'sentence1': "I couldn't put the pot there because it was too tall.",
      'sentence2': 'The pot was too tall.', 'label': _label(1), 'idx': 1,
  }  # fmt: skip
  assert _made(referents.wnli_simple, record) == [(
      "wsc: I couldn't put the pot there because *it* was too tall.",
      'The pot',
  )]


def test_squad_spaces_punctuation():
  record = {
      'id': '1', 'context': 'The (red) dog ran.', 'question': 'Who?',
      'answers': {'text': ['(red) dog', 'dog']},
  }  # fmt: skip
  assert _made(questions.squad, record) == [(
      'question: Who ? context: The ( red ) dog ran . ', ' ( red ) dog'
  )]


@pytest.mark.parametrize(
    ('context', 'answer', 'expected'),
    [
        ('a b c d', 'b c', ['start: 1 end: 2']),
        # Words that punctuation leaves empty count.
        ('The (red) dog ran.', 'dog', ['start: 6 end: 6']),
        ('The (red) dog ran.', '(red) dog', []),
    ],
)
def test_an_answer_is_told_by_its_place(context, answer, expected):
  record = {
      'id': '1', 'context': context, 'question': 'Who?',
      'answers': {'text': [answer]},
  }  # fmt: skip
  found = _made(questions.squad_span_space_tokenized, record)
  assert [target for _, target in found] == expected


def test_trivia_qa_asks_of_each_text_that_has_an_answer():
  record = {
      'question': 'Who?',
      'answer': {'normalized_aliases': ['rex dog', 'nobody', 'rex']},
      'entity_pages': {'wiki_context': ['Rex Dog.', 'x']},
      'search_results': {'search_context': ['A rex.']},
  }
  assert _made(questions.trivia_qa, record) == [
      ('question: Who ? context: Rex Dog . ', 'rex dog'),
      ('question: Who ? context: Rex Dog . ', 'rex'),
      ('question: Who ? context: A rex . ', 'rex'),
  ]


def test_long_inputs_are_cut_about_the_answer():
  dataset = tf.data.Dataset.from_tensors(
      {'inputs': list(range(10, 60)), 'targets': [30, 31]}
  )
  with seqio.utils.map_seed_manager(0):
    example = next(iter(questions.trivia_qa_truncate_inputs(
        dataset, None, {'inputs': 8}
    )))
  inputs = example['inputs'].numpy().tolist()
  assert len(inputs) == 8
  assert {30, 31} <= set(inputs)


def test_a_table_gives_texts_by_its_columns():
  lines = tf.data.Dataset.from_tensor_slices(['6,7,42'])
  form = functools.partial(
      pairs.preprocess_tsv,
      field_delim=',',
      num_fields=3,
      inputs_format='numerator: {2} denominator: {1}',
      targets_format='quotient: {0}',
  )
  example = next(form(lines).as_numpy_iterator())
  assert example == {
      'inputs': b'numerator: 42 denominator: 7', 'targets': b'quotient: 6'
  }


def test_ranked_answers_are_examples_of_their_own():
  record = {'a': 'It rains.', 'b': {'c': 'So'}, 'label': 1}
  dataset = tf.data.Dataset.from_tensors(
      tf.nest.map_structure(tf.constant, record)
  )
  found = ranking.rank_classification_formatter(
      dataset, '{a} X', ['{b/c} one.', '{b/c} two.']
  )
  assert [
      (x['idx'].tolist(), x['targets'], bool(x['is_correct']))
      for x in found.as_numpy_iterator()
  ] == [([0, 0], b'So one.', False), ([0, 1], b'So two.', True)]


@pytest.mark.parametrize(
    ('prediction', 'target', 'found'),
    [
        ('The Bunny', b'fuzzy bunny', 1), ('Bob', b"Bob's hat", 0),
        ('', b'x', -1), ('cat', b'dog', 0),
    ],
)  # fmt: skip
def test_a_referent_is_recognised_in_other_words(prediction, target, found):
  example = {'targets_pretokenized': target, 'label': 1}
  assert postprocessors.wsc_simple(prediction, example=example) == found
