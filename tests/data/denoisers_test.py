# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Denoisers: nothing of the text is lost, lengths keep their promise."""

import functools

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import denoisers
from t5wild.data import random_words
from t5wild.data import spans
from tests.data import rule_laws

VOCAB_SIZE = 2000
EXTRA_IDS = 1000

settings = hypothesis.settings(deadline=None, max_examples=100)
densities = strategies.floats(0.02, 0.95)
rules = strategies.one_of(
    strategies.builds(
        denoisers.SpanDenoiser,
        noise_density=densities,
        mean_noise_span_length=strategies.none() | strategies.floats(1.0, 70.0),
    ),
    strategies.builds(denoisers.IidDenoiser, noise_density=densities),
)
sizes = strategies.integers(0, 300)


applied = functools.partial(
    rule_laws.apply_to_full_rows, first_sentinel=VOCAB_SIZE - 1, num_rows=2
)


@settings
@hypothesis.given(rules, sizes)
def test_inputs_and_targets_rebuild_the_text_exactly(rule, size):
  for text, inputs, targets in zip(*applied(rule, size), strict=True):
    filled = spans.fill_spans(
        inputs, targets, vocab_size=VOCAB_SIZE, extra_ids=EXTRA_IDS
    )
    np.testing.assert_array_equal(filled, text)


@settings
@hypothesis.given(rules, sizes)
def test_lengths_are_never_exceeded_and_met_where_exact(rule, size):
  lengths = rule.lengths(size)
  for _, inputs, targets in zip(*applied(rule, size), strict=True):
    made = (inputs.size, targets.size, inputs.size + targets.size)
    promised = (lengths.inputs, lengths.targets, lengths.total)
    assert np.all(np.array(made) <= promised)
    assert (inputs >= EXTRA_IDS).sum() <= lengths.num_sentinels
    if lengths.is_exact:
      assert made == promised


@settings
@hypothesis.given(rules, strategies.integers(0, 400))
def test_more_text_never_makes_less(rule, size):
  one, more = rule.lengths(size), rule.lengths(size + 1)
  assert one.inputs <= more.inputs
  assert one.targets <= more.targets
  assert one.total <= more.total
  assert one.num_sentinels <= more.num_sentinels
  assert rule.num_words(size) <= rule.num_words(size + 1)


@settings
@hypothesis.given(densities, strategies.integers(2, 300))
def test_noise_rate_is_the_density_within_half_a_token(density, size):
  wanted = min(max(size * density, 1), size - 1)
  for rule in (
      denoisers.IidDenoiser(noise_density=density),
      denoisers.SpanDenoiser(noise_density=density, mean_noise_span_length=8.0),
      denoisers.SpanDenoiser(
          noise_density=density, mean_noise_span_length=None
      ),
  ):
    _, _, targets = applied(rule, size)
    for row in targets:
      assert abs((row < EXTRA_IDS).sum() - wanted) <= 0.5


@settings
@hypothesis.given(densities, strategies.floats(1.0, 70.0))
def test_mean_span_is_the_one_asked_for_where_there_is_room(density, mean):
  size = 2000
  noise = size * density
  # Spans and the text between them take turns: no more spans than either.
  hypothesis.assume(noise / mean <= size - noise - 2)
  hypothesis.assume(noise >= 4 * mean)
  rule = denoisers.SpanDenoiser(
      noise_density=density, mean_noise_span_length=mean
  )
  plan = rule.plan(size)
  found = plan.num_noise_tokens / plan.num_noise_spans
  # The number of spans is rounded by at most a half of at least four.
  assert found == pytest.approx(mean, rel=0.15)


@settings
@hypothesis.given(densities, strategies.integers(2, 200))
def test_without_a_mean_the_end_of_the_text_is_one_span(density, size):
  rule = denoisers.SpanDenoiser(
      noise_density=density, mean_noise_span_length=None
  )
  for text, inputs, targets in zip(*applied(rule, size), strict=True):
    np.testing.assert_array_equal(
        np.concatenate([inputs[:-1], targets[1:]]), text
    )
    assert inputs[-1] == targets[0] == VOCAB_SIZE - 1


@settings
@hypothesis.given(
    rules, strategies.lists(sizes, min_size=1, max_size=6)
)
def test_a_short_row_becomes_the_same_however_long_the_others_are(rule, sizes):
  rule_laws.assert_short_rows_do_not_depend_on_others(rule, sizes)


def test_single_tokens_are_hidden_evenly():
  rule = denoisers.IidDenoiser(noise_density=0.25)
  words = random_words.draw((5, 5), num_rows=2000, words_per_row=8)
  tokens = np.tile(np.arange(1, 9, dtype=np.int32), (2000, 1))
  inputs, _ = rule.apply(tokens, words, first_sentinel=VOCAB_SIZE - 1)
  kept = np.bincount(inputs.values[inputs.values < 9], minlength=9)[1:]
  # Each place is kept in 1500 of 2000 rows, +- 19; 5 deviations are allowed.
  assert np.abs(kept - 1500).max() < 5 * 19


def test_neighbours_share_a_sentinel():
  # Two of three tokens hidden: neighbours in two draws of three.
  rule = denoisers.IidDenoiser(noise_density=0.67)
  words = random_words.draw((1, 5), num_rows=50, words_per_row=3)
  tokens = np.tile(np.arange(1, 4, dtype=np.int32), (50, 1))
  inputs, _ = rule.apply(tokens, words, first_sentinel=99)
  assert {tuple(row) for row in inputs.split()} == {
      (99, 3), (1, 99), (99, 2, 98),
  }


@pytest.mark.parametrize('density', [0.0, 1.0, -0.1, float('nan')])
def test_rates_out_of_range_are_refused_with_the_mend(density):
  match = rf'{density!r}.*between 0 and 1.*Set'
  with pytest.raises(ValueError, match=match):
    denoisers.IidDenoiser(noise_density=density)
  with pytest.raises(ValueError, match=match):
    denoisers.SpanDenoiser(noise_density=density, mean_noise_span_length=None)
  with pytest.raises(ValueError, match=r'0\.5.*at least 1.*Set'):
    denoisers.SpanDenoiser(noise_density=0.1, mean_noise_span_length=0.5)
