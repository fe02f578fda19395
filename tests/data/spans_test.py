# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Span corruption's laws: lengths, bounds, inverse, seeds."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import random_words
from t5wild.data import spans

VOCAB_SIZE = 384
EXTRA_IDS = 125

settings = hypothesis.settings(deadline=None, max_examples=100)
lengths = strategies.integers(0, 600)
keys = strategies.tuples(
    strategies.integers(-(2**63), 2**63 - 1), strategies.integers(0, 2**40)
)
densities = strategies.floats(0.05, 0.9)
means = strategies.floats(1.0, 12.0)


def corrupted(length, *, key=(0, 0), noise_density=0.15, mean=3.0, size=2000):
  tokens = np.random.default_rng(length).integers(3, 259, length, np.int32)
  inputs, targets = spans.corrupt_spans(
      tokens,
      key=key,
      vocab_size=size,
      noise_density=noise_density,
      mean_noise_span_length=mean,
  )
  return tokens, inputs, targets


def drawn_spans(plan, *, key, num_rows=1):
  words = random_words.draw(
      key, num_rows=num_rows, words_per_row=spans.num_words(plan)
  )
  return spans.draw_spans(plan, words)


@settings
@hypothesis.given(lengths, keys, densities, means)
def test_inputs_and_targets_rebuild_the_text_exactly(
    length, key, density, mean
):
  tokens, inputs, targets = corrupted(
      length, key=key, noise_density=density, mean=mean
  )
  filled = spans.fill_spans(inputs, targets, vocab_size=2000, extra_ids=1000)
  np.testing.assert_array_equal(filled, tokens)


@settings
@hypothesis.given(lengths, keys, densities, means)
def test_lengths_are_those_of_the_plan(length, key, density, mean):
  plan = spans.plan_for_tokens(
      length, noise_density=density, mean_noise_span_length=mean
  )
  _, inputs, targets = corrupted(
      length, key=key, noise_density=density, mean=mean
  )
  assert inputs.size + 1 == plan.inputs_length
  assert targets.size + 1 == plan.targets_length


@settings
@hypothesis.given(strategies.integers(2, 600), keys, densities, means)
def test_spans_are_apart_not_empty_and_as_many_as_planned(
    length, key, density, mean
):
  plan = spans.plan_for_tokens(
      length, noise_density=density, mean_noise_span_length=mean
  )
  starts, stops = drawn_spans(plan, key=key, num_rows=3)
  assert starts.shape == (3, plan.num_noise_spans)
  assert plan.num_noise_spans >= 1
  assert (stops > starts).all()
  assert (starts[:, 0] > 0).all()
  assert (starts[:, 1:] > stops[:, :-1]).all()
  assert (stops[:, -1] == length).all()
  assert ((stops - starts).sum(1) == plan.num_noise_tokens).all()


@settings
@hypothesis.given(strategies.integers(2, 2000), densities)
def test_noise_rate_is_the_density_within_half_a_token(length, density):
  plan = spans.plan_for_tokens(
      length, noise_density=density, mean_noise_span_length=3.0
  )
  wanted = min(max(length * density, 1), length - 1)
  assert abs(plan.num_noise_tokens - wanted) <= 0.5


@settings
@hypothesis.given(strategies.integers(3, 2048), densities, means)
def test_no_longer_text_would_fit_the_inputs(length, density, mean):
  hypothesis.assume(density != 0.5)  # T5 gives one token back there
  plan = spans.plan_for_inputs(
      length, noise_density=density, mean_noise_span_length=mean
  )
  longer = spans.plan_for_tokens(
      plan.tokens_length + 1, noise_density=density, mean_noise_span_length=mean
  )
  assert plan.inputs_length <= length < longer.inputs_length


# Published by T5 (Raffel et al., 2020; the released configurations of T5, mT5
# and ByT5): text, inputs and targets of span corruption.
@pytest.mark.parametrize(
    ('inputs', 'density', 'mean', 'tokens', 'targets'),
    [(512, 0.15, 3.0, 568, 114), (1024, 0.15, 3.0, 1137, 229)],
)
def test_lengths_are_those_that_t5_published(
    inputs, density, mean, tokens, targets
):
  plan = spans.plan_for_inputs(
      inputs, noise_density=density, mean_noise_span_length=mean
  )
  assert (plan.tokens_length, plan.targets_length) == (tokens, targets)
  assert plan.inputs_length == inputs


def test_at_density_one_half_targets_are_not_longer_than_inputs():
  plan = spans.plan_for_inputs(
      512, noise_density=0.5, mean_noise_span_length=3.0
  )
  assert plan.targets_length <= plan.inputs_length <= 512


def test_sentinels_descend_from_the_last_id_in_both():
  _, inputs, targets = corrupted(284, size=VOCAB_SIZE)
  first = VOCAB_SIZE - EXTRA_IDS
  expected = VOCAB_SIZE - 1 - np.arange(14)
  np.testing.assert_array_equal(inputs[inputs >= first], expected)
  np.testing.assert_array_equal(targets[targets >= first], expected)
  assert targets[0] == VOCAB_SIZE - 1


@settings
@hypothesis.given(keys)
def test_same_key_same_example_and_other_key_another(key):
  _, *first = corrupted(284, key=key)
  _, *again = corrupted(284, key=key)
  _, *other = corrupted(284, key=(key[0], key[1] + 1))
  np.testing.assert_array_equal(first[0], again[0])
  np.testing.assert_array_equal(first[1], again[1])
  assert not np.array_equal(first[0], other[0])


def test_every_split_of_the_noise_is_as_likely():
  # 5 tokens, 3 of them noise in 2 spans of (1, 2) or (2, 1), text (1, 1): two
  # outcomes. Of 2000 draws each has 1000 +- 22 (one deviation); 5 are allowed.
  plan = spans.SpanPlan(
      tokens_length=5,
      num_noise_tokens=3,
      num_noise_spans=2,
      inputs_length=5,
      targets_length=6,
  )
  starts, stops = drawn_spans(plan, key=(7, 0), num_rows=2000)
  first = (stops - starts)[:, 0].tolist()
  assert set(first) == {1, 2}
  assert abs(first.count(1) - 1000) < 5 * 22


def test_bits_are_pinned():
  # The bits of Philox 4x64, key (3, 5), as its authors define them and numpy
  # promises to keep: a change here changes what a resumed run reads.
  plan = spans.plan_for_tokens(
      40, noise_density=0.15, mean_noise_span_length=3.0
  )
  bits = np.random.Philox(key=np.array([3, 5], np.uint64))
  noise_cut = int(np.argsort(bits.random_raw(5), kind='stable')[0]) + 1
  text_cut = int(np.argsort(bits.random_raw(33), kind='stable')[0]) + 1
  starts, stops = drawn_spans(plan, key=(3, 5))
  assert starts.tolist() == [[text_cut, 34 + noise_cut]]
  assert stops.tolist() == [[text_cut + noise_cut, 40]]


def test_rows_drawn_together_are_those_drawn_alone():
  tokens = np.random.default_rng(0).integers(3, 259, (5, 90), np.int32)
  plan = spans.plan_for_tokens(
      90, noise_density=0.3, mean_noise_span_length=3.0
  )
  words = random_words.draw((1, 2), num_rows=5, words_per_row=88)
  noise = spans.noise_of_spans(plan, words)
  together = spans.replace_noise(tokens, noise, first_sentinel=383)
  for row in range(5):
    alone = spans.replace_noise(
        tokens[row : row + 1],
        spans.noise_of_spans(plan, words[row : row + 1]),
        first_sentinel=383,
    )
    for all_rows, one in zip(together, alone, strict=True):
      np.testing.assert_array_equal(all_rows.split()[row], one.values)


def test_fill_spans_takes_what_a_model_may_write():
  # Sentinels 9 and 8; the model repeats 9, leaves 8 out, begins with noise.
  filled = spans.fill_spans(
      np.array([3, 9, 4, 8]),
      np.array([5, 9, 6, 7, 9, 3]),
      vocab_size=10,
      extra_ids=2,
  )
  assert filled.tolist() == [3, 6, 7, 4]


@pytest.mark.parametrize('density', [0.0, 1.0, -1.0])
def test_density_out_of_range_is_refused_with_the_mend(density):
  with pytest.raises(ValueError, match=rf'{density}.*between 0 and 1.*Set'):
    spans.plan_for_inputs(64, noise_density=density)


def test_inputs_without_room_are_refused_with_the_mend():
  with pytest.raises(ValueError, match='length 2.*at least 3.*Raise'):
    spans.plan_for_inputs(2)
