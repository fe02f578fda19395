# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Causal LM, prefix LM, fill in the middle: the text comes back whole."""

import functools

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import language_modelling
from t5wild.data import random_words
from tests.data import rule_laws

PSM = language_modelling.MiddleOrder.PSM
SPM = language_modelling.MiddleOrder.SPM
MARKS = (999, 998, 997)

settings = hypothesis.settings(deadline=None, max_examples=100)
sizes = strategies.integers(1, 200)
fractions = strategies.floats(0.0, 1.0)
orders = strategies.sampled_from([PSM, SPM])
rules = strategies.one_of(
    strategies.just(language_modelling.CausalLM()),
    strategies.builds(
        language_modelling.PrefixLM,
        shortest=strategies.floats(0.0, 0.5),
        longest=strategies.floats(0.5, 1.0),
    ),
    strategies.builds(language_modelling.FillInTheMiddle, order=orders),
)


applied = functools.partial(
    rule_laws.apply_to_full_rows, first_sentinel=999, num_rows=3
)


def prefix_lm(one, other):
  return language_modelling.PrefixLM(
      shortest=min(one, other), longest=max(one, other)
  )


@settings
@hypothesis.given(sizes)
def test_a_causal_lm_asks_for_the_whole_text(size):
  rule = language_modelling.CausalLM()
  for text, inputs, targets in zip(*applied(rule, size), strict=True):
    assert not inputs.size
    np.testing.assert_array_equal(targets, text)


@settings
@hypothesis.given(fractions, fractions, sizes)
def test_prefix_and_rest_are_the_text_neither_of_them_empty(one, other, size):
  rule = prefix_lm(one, other)
  for text, inputs, targets in zip(*applied(rule, size), strict=True):
    np.testing.assert_array_equal(np.concatenate([inputs, targets]), text)
    assert targets.size
    assert inputs.size or size == 1


@settings
@hypothesis.given(fractions, fractions, sizes)
def test_prefix_lengths_are_within_the_fractions_and_the_plan(
    one, other, size
):
  rule = prefix_lm(one, other)
  lengths = rule.lengths(size)
  for _, inputs, targets in zip(*applied(rule, size), strict=True):
    assert inputs.size <= lengths.inputs
    assert targets.size <= lengths.targets
    if lengths.is_exact:
      assert (inputs.size, targets.size) == (lengths.inputs, lengths.targets)
    if size > 1:
      low = min(max(rule.shortest * size, 1), size - 1)
      high = min(max(rule.longest * size, 1), size - 1)
      assert low - 0.5 <= inputs.size <= high + 0.5


def test_every_split_is_as_likely():
  rule = prefix_lm(0.0, 1.0)
  words = random_words.draw((4, 4), num_rows=4000, words_per_row=1)
  tokens = np.ones((4000, 5), np.int32)
  inputs, _ = rule.apply(tokens, words, first_sentinel=9)
  counts = np.bincount(inputs.lengths, minlength=6)
  # Prefixes of 1 to 4 tokens, 1000 each, +- 27; 5 deviations are allowed.
  assert counts[[0, 5]].tolist() == [0, 0]
  assert np.abs(counts[1:5] - 1000).max() < 5 * 27


@settings
@hypothesis.given(orders, sizes)
def test_a_middle_put_back_rebuilds_the_text_exactly(order, size):
  rule = language_modelling.FillInTheMiddle(order=order)
  for text, inputs, targets in zip(*applied(rule, size), strict=True):
    joined = np.concatenate([inputs, targets])
    assert targets.size
    assert joined.size == rule.lengths(size).total
    assert inputs.size <= rule.lengths(size).inputs
    assert targets.size <= rule.lengths(size).targets
    np.testing.assert_array_equal(
        language_modelling.put_middle_back(joined, marks=MARKS), text
    )


def test_parts_stand_in_the_order_of_the_paper():
  # Bavarian et al., sections 3 and 3.1: <PRE> prefix <SUF> suffix <MID>
  # middle, and <PRE> <SUF> suffix <MID> prefix middle.
  tokens = np.array([[1, 2, 3, 4]], np.int32)
  words = np.array([[3, 1]], np.uint64)  # places 3 and 1
  made = {}
  for order in (PSM, SPM):
    rule = language_modelling.FillInTheMiddle(order=order, marks=(91, 92, 93))
    inputs, targets = rule.apply(tokens, words, first_sentinel=9)
    made[order] = (inputs.values.tolist(), targets.values.tolist())
  assert made[PSM] == ([91, 1, 92, 4, 93], [2, 3])
  assert made[SPM] == ([91, 92, 4, 93, 1], [2, 3])


def test_every_middle_is_as_likely():
  rule = language_modelling.FillInTheMiddle(order=PSM)
  words = random_words.draw((8, 4), num_rows=6000, words_per_row=2)
  tokens = np.tile(np.array([1, 2, 3], np.int32), (6000, 1))
  _, targets = rule.apply(tokens, words, first_sentinel=9)
  found = [tuple(row) for row in targets.split()]
  middles = {(1,), (2,), (3,), (1, 2), (2, 3), (1, 2, 3)}
  assert set(found) == middles
  # 1000 each, +- 29; 5 deviations are allowed.
  assert all(abs(found.count(x) - 1000) < 5 * 29 for x in middles)


@settings
@hypothesis.given(
    rules, strategies.lists(sizes, min_size=1, max_size=6)
)
def test_a_short_row_becomes_the_same_however_long_the_others_are(rule, sizes):
  rule_laws.assert_short_rows_do_not_depend_on_others(rule, sizes)


def test_text_without_marks_is_given_back_and_half_marked_text_is_refused():
  text = np.array([4, 5, 6], np.int32)
  np.testing.assert_array_equal(
      language_modelling.put_middle_back(text, marks=MARKS), text
  )
  with pytest.raises(ValueError, match=r'998, 997.*not both.*Pass inputs'):
    language_modelling.put_middle_back(
        np.array([999, 4, 998, 5]), marks=MARKS
    )


@pytest.mark.parametrize(
    ('shortest', 'longest'), [(-0.1, 0.5), (0.5, 1.1), (0.6, 0.4)]
)
def test_fractions_out_of_range_are_refused_with_the_mend(shortest, longest):
  with pytest.raises(ValueError, match=f'{shortest}.*{longest}.*split'):
    language_modelling.PrefixLM(shortest=shortest, longest=longest)
