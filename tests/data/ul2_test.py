# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""UL2: the paper's denoisers, modes, lengths that fit, what is refused."""

import dataclasses

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import examples
from t5wild.data import objective_plans
from t5wild.data import spans
from t5wild.data import ul2
from t5wild.data import vocabularies

BYTES = vocabularies.ByteVocabulary(extra_ids=300)
PAPER_TEXTS = {'R': '[NLU]', 'S': '[S2S]', 'X': '[NLG]'}


def objective(inputs=511, targets=511, *, vocabulary=BYTES, **arguments):
  return ul2.make_objective(
      room=objective_plans.Room(inputs=inputs, targets=targets),
      vocabulary=vocabulary,
      **arguments,
  )


def test_the_denoisers_are_those_of_table_1_of_the_paper():
  found = {
      (x.mode, x.mean_noise_span_length, x.noise_density)
      for x in ul2.PAPER_DENOISERS
  }
  # (mean span, rate); S is one span of a quarter of the text.
  assert found == {
      ('R', 3, 0.15), ('R', 8, 0.15),
      ('S', None, 0.25),
      ('X', 3, 0.5), ('X', 8, 0.5), ('X', 64, 0.15), ('X', 64, 0.5),
  }  # fmt: skip
  assert len(ul2.PAPER_DENOISERS) == 7


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(
    strategies.integers(0, 1500),
    strategies.integers(0, 2**32),
    strategies.sampled_from([(127, 127), (63, 200), (511, 113)]),
)
def test_examples_rebuild_the_text_and_fit_with_one_mode_token_each(
    size, seed, room
):
  mixture = objective(*room)
  modes = ul2.mode_tokens(ul2.PAPER_DENOISERS, vocabulary=BYTES)
  text = np.random.default_rng(size).integers(3, 259, size, np.int32)
  inputs, targets = examples.make_examples([text], [(seed, 1)], mixture)
  found = []
  for row, target in zip(inputs.split(), targets.split(), strict=True):
    if not row.size:
      continue
    assert row.size <= room[0]
    assert target.size <= room[1]
    assert (row[0],) in modes.values()
    assert row[1:].max() <= BYTES.vocab_size - 1
    found.append(
        spans.fill_spans(row[1:], target, vocab_size=559, extra_ids=297)
    )
  joined = np.concatenate([*found, np.zeros(0, np.int32)])
  assert size - joined.size < mixture.min_tokens
  np.testing.assert_array_equal(joined, text[: joined.size])


def test_every_denoiser_fills_the_inputs_or_the_targets():
  room = objective_plans.Room(inputs=511, targets=113)
  for ingredient in objective(511, 113).ingredients:
    longer = ingredient.rule.lengths(ingredient.tokens_length + 1)
    assert room.fits(
        ingredient.rule.lengths(ingredient.tokens_length), num_mode_tokens=1
    )
    assert not room.fits(longer, num_mode_tokens=1)


def test_inputs_and_targets_share_one_room_for_a_decoder():
  mixture = ul2.make_objective(
      room=objective_plans.Room(inputs=None, targets=200), vocabulary=BYTES
  )
  text = np.random.default_rng(0).integers(3, 259, 5000, np.int32)
  inputs, targets = examples.make_examples([text], [(0, 1)], mixture)
  assert not inputs.values.size
  assert targets.lengths.max() == 200


def test_a_weight_of_zero_leaves_a_denoiser_and_its_mode_out():
  only_s = [
      dataclasses.replace(x, weight=float(x.mode == 'S'))
      for x in ul2.PAPER_DENOISERS
  ]
  vocabulary = vocabularies.ByteVocabulary(extra_ids=2)
  (ingredient,) = objective(
      denoisers=only_s, vocabulary=vocabulary
  ).ingredients
  assert ingredient.mode == (259,)
  assert ingredient.rule.mean_noise_span_length is None


def test_modes_are_the_lowest_sentinels_or_texts_or_nothing():
  def modes(**arguments):
    return ul2.mode_tokens(
        ul2.PAPER_DENOISERS, vocabulary=BYTES, **arguments
    )

  assert modes() == {'R': (259,), 'S': (260,), 'X': (261,)}
  spelt = modes(texts=PAPER_TEXTS)
  assert BYTES.decode(spelt['S']) == '[S2S]'
  assert modes(texts={}) == {'R': (), 'S': (), 'X': ()}


def test_modes_that_the_vocabulary_cannot_tell_are_refused():
  class Small(vocabularies.ByteVocabulary):
    def encode(self, text):
      del text
      return [self.unk_id]

  def modes(vocabulary, texts=None):
    ul2.mode_tokens(ul2.PAPER_DENOISERS, vocabulary=vocabulary, texts=texts)

  with pytest.raises(ValueError, match=r"2 sentinels.*at least 3.*'R'.*ids="):
    modes(vocabularies.ByteVocabulary(extra_ids=2))
  with pytest.raises(ValueError, match=r"no text for the mode 'S'.*Add it"):
    modes(BYTES, {'R': 'a', 'X': 'b'})
  with pytest.raises(ValueError, match=r"NLU.*\[2\].*none of them unknown.*S"):
    modes(Small(), PAPER_TEXTS)
  with pytest.raises(ValueError, match=r"'' of the mode 'R'.*expected some"):
    modes(BYTES, {'R': '', 'S': 'a', 'X': 'b'})


def test_too_few_sentinels_are_refused_and_the_mend_works():
  vocabulary = vocabularies.ByteVocabulary(extra_ids=100)
  with pytest.raises(ValueError, match=r'has 100 sent.*127 for.*3 for') as seen:
    objective(vocabulary=vocabulary)
  extra_ids = int(str(seen.value).split('extra_ids=')[1].split(',')[0])
  longest = int(str(seen.value).split('max_tokens_length = ')[1].rstrip('.'))
  objective(vocabulary=vocabularies.ByteVocabulary(extra_ids=extra_ids))
  objective(vocabulary=vocabulary, max_tokens_length=longest)
  with pytest.raises(ValueError, match='has 100 sentinels'):
    objective(vocabulary=vocabulary, max_tokens_length=longest + 3)


def test_lengths_without_room_and_weights_below_0_are_refused():
  with pytest.raises(ValueError, match=r'no room for text.*2 inputs.*Raise'):
    objective(2, 100)
  with pytest.raises(ValueError, match=r"'X'.*-1.*at least 0.*Correct"):
    ul2.Denoiser(mode='X', noise_density=0.5, weight=-1.0)
  with pytest.raises(ValueError, match=r'denoisers are \[\].*above 0'):
    objective(denoisers=())
  with pytest.raises(ValueError, match=r'1\.5.*between 0 and 1'):
    ul2.Denoiser(mode='X', noise_density=1.5)
