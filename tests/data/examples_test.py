# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Documents become examples: nothing lost, nothing mixed, one key each."""

import dataclasses
import functools
import types

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import denoisers
from t5wild.data import examples
from t5wild.data import language_modelling
from t5wild.data import objectives
from t5wild.data import random_words
from t5wild.data import rows as rows_lib
from t5wild.data import spans
from t5wild.data import vocabularies

VOCAB_SIZE = 2000
EXTRA_IDS = 1000
MODES = {'R': (1000,), 'S': (1001,), 'X': (1002, 5)}

settings = hypothesis.settings(deadline=None, max_examples=60)
sizes = strategies.lists(strategies.integers(0, 120), min_size=1, max_size=6)
seeds = strategies.integers(0, 2**32)


def span_rule(density, mean):
  return denoisers.SpanDenoiser(
      noise_density=density, mean_noise_span_length=mean
  )


MIXTURE = examples.Objective(
    ingredients=(
        examples.Ingredient(
            rule=span_rule(0.15, 3.0), tokens_length=20, mode=MODES['R']
        ),
        examples.Ingredient(
            rule=span_rule(0.25, None), tokens_length=13, mode=MODES['S']
        ),
        examples.Ingredient(
            rule=span_rule(0.5, 8.0), tokens_length=31, mode=MODES['X'],
            weight=2.0,
        ),
        examples.Ingredient(
            rule=denoisers.IidDenoiser(noise_density=0.2), tokens_length=9
        ),
    ),
    first_sentinel=VOCAB_SIZE - 1,
)  # fmt: skip
CAUSAL = examples.Objective(
    ingredients=(
        examples.Ingredient(
            rule=language_modelling.CausalLM(), tokens_length=8
        ),
    ),
    first_sentinel=VOCAB_SIZE - 1,
    min_tokens=1,
    is_concatenated=True,
)


def texts(sizes):
  """Documents that have no two neighbours in common."""
  return [
      (np.arange(size) * (index + 1) % 700 + 100 * index + 3).astype(np.int32)
      for index, size in enumerate(sizes)
  ]


def keys(count, seed=0):
  return [(seed, index) for index in range(count)]


def made(documents, objective, *, seed=0):
  inputs, targets = examples.make_examples(
      documents, keys(len(documents), seed), objective
  )
  return list(zip(inputs.split(), targets.split(), strict=True))


def text_of(example):
  inputs, targets = example
  return spans.fill_spans(
      inputs[1:] if inputs.size and inputs[0] == MODES['R'][0] else
      inputs[1:] if inputs.size and inputs[0] == MODES['S'][0] else
      inputs[2:] if inputs.size and inputs[0] == MODES['X'][0] else inputs,
      targets, vocab_size=VOCAB_SIZE, extra_ids=EXTRA_IDS - 3,
  )  # fmt: skip


@settings
@hypothesis.given(strategies.integers(0, 300), seeds)
def test_the_examples_of_a_document_rebuild_it_less_a_tail_too_short(
    size, seed
):
  (document,) = texts([size])
  found = made([document], MIXTURE, seed=seed)
  joined = np.concatenate(
      [*(text_of(example) for example in found), np.zeros(0, np.int32)]
  )
  assert size - joined.size < MIXTURE.min_tokens
  np.testing.assert_array_equal(joined, document[: joined.size])


@settings
@hypothesis.given(sizes, seeds)
def test_no_example_holds_text_of_two_documents(sizes, seed):
  documents = texts(sizes)
  alone = [
      tuple(part.tobytes() for part in example)
      for index, document in enumerate(documents)
      for example in zip(
          *(
              rows.split()
              for rows in examples.make_examples(
                  [document], [(seed, index)], MIXTURE
              )
          ),
          strict=True,
      )
      if len(example[0])
  ]
  together = [
      tuple(part.tobytes() for part in example)
      for example in made(documents, MIXTURE, seed=seed)
      if len(example[0])
  ]
  assert sorted(together) == sorted(alone)


@settings
@hypothesis.given(sizes)
def test_merged_documents_are_cut_as_one(sizes):
  documents = texts(sizes)
  merging = dataclasses.replace(CAUSAL, merge_documents=True)
  joined = np.concatenate(documents)
  found = [targets for _, targets in made(documents, merging)]
  np.testing.assert_array_equal(np.concatenate(found), joined)
  if joined.size:
    assert {target.size for target in found[:-1]} <= {8}


def test_documents_that_are_merged_still_end_where_their_end_is_marked():
  objective = dataclasses.replace(
      CAUSAL, merge_documents=True, document_end=1
  )
  documents = [np.full(3, 5, np.int32), np.full(2, 6, np.int32)]
  found = [targets.tolist() for _, targets in made(documents, objective)]
  assert found == [[5, 5, 5, 1, 6, 6, 1]]


def test_each_document_is_spread_evenly_over_all():
  documents = [np.full(size, i + 5) for i, size in enumerate((32, 8, 16))]
  found = [targets[0] for _, targets in made(documents, CAUSAL)]
  assert found == [5, 7, 5, 6, 5, 7, 5]


@settings
@hypothesis.given(seeds, strategies.integers(0, 2))
def test_full_chunks_have_the_lengths_of_the_plan(seed, number):
  ingredient = MIXTURE.ingredients[number]
  objective = dataclasses.replace(MIXTURE, ingredients=(ingredient,))
  size = ingredient.tokens_length
  plan = ingredient.rule.plan(size)
  found = made(texts([5 * size + 3]), objective, seed=seed)
  assert len(found) == 6
  for inputs, targets in found[:5]:
    assert inputs.size == plan.inputs_length - 1 + len(ingredient.mode)
    assert targets.size == plan.targets_length - 1


def test_rules_are_drawn_in_proportion_to_their_weights():
  (document,) = texts([200_000])
  inputs, _ = examples.make_examples([document], [(3, 4)], MIXTURE)
  first = np.array([row[0] for row in inputs.split()])
  count = first.size
  for mode, share in (('R', 0.2), ('S', 0.2), ('X', 0.4)):
    found = (first == MODES[mode][0]).sum()
    deviation = (count * share * (1 - share)) ** 0.5
    assert abs(found - count * share) < 5 * deviation


@settings
@hypothesis.given(seeds)
def test_same_key_same_examples_and_other_key_others(seed):
  documents = texts([200])
  first, again, other = (
      [tuple(x.tolist() for x in example) for example in found]
      for found in (
          made(documents, MIXTURE, seed=seed),
          made(documents, MIXTURE, seed=seed),
          made(documents, MIXTURE, seed=seed + 1),
      )
  )
  assert first == again != other


def test_the_bits_of_an_example_are_those_of_span_corruption():
  rule = span_rule(0.15, 3.0)
  objective = dataclasses.replace(
      MIXTURE,
      ingredients=(examples.Ingredient(rule=rule, tokens_length=40),),
  )
  (document,) = texts([40])
  ((inputs, targets),) = made([document], objective, seed=9)
  expected = spans.corrupt_spans(document, key=(9, 0), vocab_size=VOCAB_SIZE)
  np.testing.assert_array_equal(inputs, expected[0])
  np.testing.assert_array_equal(targets, expected[1])


def test_a_chunk_can_be_made_again_without_those_before_it():
  rule = span_rule(0.5, 3.0)
  objective = dataclasses.replace(
      MIXTURE,
      ingredients=(examples.Ingredient(rule=rule, tokens_length=30),),
  )
  (document,) = texts([150])
  words = random_words.draw(
      (9, 0), num_rows=1, words_per_row=rule.num_words(30), first_row=3
  )
  inputs, targets = rule.apply(
      document[np.newaxis, 90:120], words, first_sentinel=VOCAB_SIZE - 1
  )
  found = made([document], objective, seed=9)[3]
  np.testing.assert_array_equal(found[0], inputs.values)
  np.testing.assert_array_equal(found[1], targets.values)


def test_concatenated_examples_are_inputs_followed_by_targets():
  documents = texts([50, 70])
  joined = dataclasses.replace(MIXTURE, is_concatenated=True)
  for (inputs, targets), (none, both) in zip(
      made(documents, MIXTURE), made(documents, joined), strict=True
  ):
    assert not none.size
    np.testing.assert_array_equal(both, np.concatenate([inputs, targets]))


def test_chunks_of_nothing_are_refused():
  with pytest.raises(ValueError, match='min_tokens is 0.*at least 1.*Set'):
    dataclasses.replace(MIXTURE, min_tokens=0)


def test_no_document_makes_no_example():
  inputs, targets = examples.make_examples([], [], MIXTURE)
  assert not inputs.lengths.size
  assert not targets.lengths.size
  inputs, _ = examples.make_examples([np.zeros(0, np.int32)], [(0, 0)], MIXTURE)
  assert not inputs.lengths.size


@pytest.mark.parametrize(
    'objective',
    [
        objectives.span_corruption,
        functools.partial(objectives.span_corruption, merge_documents=True),
        functools.partial(objectives.ul2, max_tokens_length=60),
        objectives.causal_lm,
    ],
)
def test_lengths_are_told_before_examples_are_made_and_any_is_made_alone(
    objective
):
  vocabulary = vocabularies.ByteVocabulary(125)
  feature = types.SimpleNamespace(vocabulary=vocabulary, add_eos=True)
  plan = objectives.plan_of(
      objective,
      sequence_length={'inputs': 64, 'targets': 64},
      output_features=dict.fromkeys(
          ('targets',)
          if objective is objectives.causal_lm
          else ('inputs', 'targets'),
          feature,
      ),
  )
  numbers = np.random.default_rng(3)
  documents = [
      numbers.integers(3, 259, size).astype(np.int32)
      for size in (1, 0, 2, 500, 63, 64, 65, 7, 130)
  ]
  keys = [(5, number) for number in range(len(documents))]
  planned = examples.plan_examples(documents, keys, plan)
  made = planned.make()
  for rows, lengths in zip(made, planned.lengths(), strict=True):
    np.testing.assert_array_equal(rows.lengths, lengths)
  chosen = np.array([4, 0, len(planned) - 1])
  for rows, some in zip(made, planned.make(chosen), strict=True):
    expected = rows_lib.take(rows, chosen)
    np.testing.assert_array_equal(some.values, expected.values)
    np.testing.assert_array_equal(some.lengths, expected.lengths)
