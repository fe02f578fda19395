# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Random objectives draw what T5 draws: the numbers are those of t5 0.9.4.

Each is the number of examples and a hash of them all, written by the `t5`
package for the same documents and seed.
"""

import functools
import hashlib
import json

import pytest
import seqio
import tensorflow as tf

from t5wild.tasks.t5 import chunks
from t5wild.tasks.t5 import denoising
from t5wild.tasks.t5 import noise
from t5wild.tasks.t5 import noise_masks
from t5wild.tasks.t5 import sentences

_SEED = 3
_VOCABULARY = seqio.ByteVocabulary(extra_ids=20)
_FEATURES = dict.fromkeys(('inputs', 'targets'), seqio.Feature(_VOCABULARY))
_LENGTHS = {'inputs': 64, 'targets': 64}
_DOCUMENTS = [
    [3 + (i * j + j // 7) % 200 for j in range(40 + 30 * i)]
    for i in range(1, 9)
]
_OBJECTIVES = {
    'span_corruption': (20, 'c9b15361bc1e5c7b'),
    'iid_denoising': (23, '088638074ca8176e'),
    'prefix_lm': (27, '74ffd5167c411c04'),
    'full_lm': (22, 'e0ae685b244e6e66'),
}
_NOISE = {
    ('iid_noise_mask', 'noise_token_to_sentinel'):
        (8, '71b0bbd0e454fa35'),
    ('iid_noise_mask', 'noise_span_to_sentinel'):
        (8, '671f1aaaa0d6628d'),
    ('iid_noise_mask', 'noise_span_to_unique_sentinel'):
        (8, '97d31a8702bf06b0'),
    ('iid_noise_mask', 'permute_noise_tokens'):
        (8, 'f8c84c5664547d38'),
    ('iid_noise_mask', 'noise_token_to_gathered_token'):
        (8, '909b38810b3dfc00'),
    ('iid_noise_mask', 'noise_token_to_random_token'):
        (8, '33ffb6a4bdeafc65'),
    ('iid_noise_mask', 'noise_token_to_random_token_or_sentinel'):
        (8, 'aa70079b31ae3f2a'),
    ('iid_noise_mask', 'drop_noise_tokens'):
        (8, '1676b8413c849077'),
    ('regular_noise_mask', 'noise_token_to_sentinel'):
        (8, 'f1b7622b6c4b87af'),
    ('regular_noise_mask', 'noise_span_to_sentinel'):
        (8, '7ca7330cbb5761a6'),
    ('regular_noise_mask', 'noise_span_to_unique_sentinel'):
        (8, 'fdf9fd365e7d3cb4'),
    ('regular_noise_mask', 'permute_noise_tokens'):
        (8, 'a54400ea9ab8013c'),
    ('regular_noise_mask', 'noise_token_to_gathered_token'):
        (8, 'fb2542d6bd1a4774'),
    ('regular_noise_mask', 'noise_token_to_random_token'):
        (8, '71a12b2e4f764c1f'),
    ('regular_noise_mask', 'noise_token_to_random_token_or_sentinel'):
        (8, '8e143ae99a8d8377'),
    ('regular_noise_mask', 'drop_noise_tokens'):
        (8, 'd87ad7cb9a7bc3bc'),
    ('random_spans_noise_mask', 'noise_token_to_sentinel'):
        (8, '49a79ec464a97f2d'),
    ('random_spans_noise_mask', 'noise_span_to_sentinel'):
        (8, '2e520ada118fd876'),
    ('random_spans_noise_mask', 'noise_span_to_unique_sentinel'):
        (8, 'b693f069aca5c259'),
    ('random_spans_noise_mask', 'permute_noise_tokens'):
        (8, 'aaed3ac08a2d5259'),
    ('random_spans_noise_mask', 'noise_token_to_gathered_token'):
        (8, '21a20c25ea1f0666'),
    ('random_spans_noise_mask', 'noise_token_to_random_token'):
        (8, '2c3572d7d257ee10'),
    ('random_spans_noise_mask', 'noise_token_to_random_token_or_sentinel'):
        (8, '1f56ff582784d03b'),
    ('random_spans_noise_mask', 'drop_noise_tokens'):
        (8, '80b589d760009b0b'),
}  # fmt: skip


def _tokens():
  return tf.data.Dataset.from_generator(
      lambda: ({'targets': tokens} for tokens in _DOCUMENTS),
      output_signature={'targets': tf.TensorSpec([None], tf.int32)},
  )


def _texts():
  return tf.data.Dataset.from_tensor_slices({
      'text': [
          f'The fat cat {i} sat. On the mat! It was? yes.\n'
          'New line here. And more. ' * 4
          for i in range(6)
      ]
  })


def _made(preprocess, dataset):
  """Number of examples, and a hash of them."""
  with seqio.utils.map_seed_manager(_SEED):
    examples = list(preprocess(dataset).as_numpy_iterator())
  plain = [
      {
          key: value.decode() if isinstance(value, bytes) else value.tolist()
          for key, value in sorted(example.items())
      }
      for example in examples
  ]
  text = json.dumps(plain, sort_keys=True)
  return len(examples), hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_an_objective_makes_the_examples_of_t5(name):
  objective = functools.partial(
      getattr(denoising, name),
      sequence_length=_LENGTHS,
      output_features=_FEATURES,
  )
  assert _made(objective, _tokens()) == _OBJECTIVES[name]


@pytest.mark.parametrize(('mask', 'inputs'), _NOISE)
def test_a_mask_and_what_becomes_of_it_are_those_of_t5(mask, inputs):
  denoise = functools.partial(
      denoising.denoise,
      output_features=_FEATURES,
      noise_density=0.3,
      noise_mask_fn=getattr(noise_masks, mask),
      inputs_fn=getattr(noise, inputs),
      targets_fn=noise.nonnoise_span_to_sentinel,
  )
  assert _made(denoise, _tokens()) == _NOISE[mask, inputs]


@pytest.mark.parametrize(
    ('preprocess', 'expected'),
    [
        (
            functools.partial(
                denoising.denoise,
                output_features=_FEATURES,
                noise_density=0.3,
                noise_mask_fn=functools.partial(
                    noise_masks.random_spans_noise_mask, random_roll=True
                ),
                inputs_fn=noise.drop_nonnoise_tokens,
            ),
            (8, 'b86b8516af07cbec'),
        ),
        (
            functools.partial(
                chunks.split_tokens_to_random_length,
                sequence_length=_LENGTHS,
                output_features=_FEATURES,
            ),
            (101, '9a48d2b015465740'),
        ),
        (
            functools.partial(
                chunks.select_random_chunk,
                output_features=_FEATURES,
                max_length=50,
                uniform_random_start=True,
                min_length=10,
            ),
            (8, 'aedf9400feeafa54'),
        ),
        (
            functools.partial(
                chunks.concatenate_and_split_to_fixed_length,
                sequence_length=_LENGTHS,
                output_features=_FEATURES,
            ),
            (23, 'bf58c950e54e390b'),
        ),
    ],
)
def test_tokens_are_cut_where_t5_cuts_them(preprocess, expected):
  assert _made(preprocess, _tokens()) == expected


@pytest.mark.parametrize(
    ('preprocess', 'expected'),
    [
        (
            functools.partial(
                sentences.random_split_text,
                min_words_per_segment=2,
                max_words_per_segment=9,
                max_words_total=20,
            ),
            (39, 'bfc15cae2a5fb70d'),
        ),
        (sentences.fill_in_the_blank, (12, 'f4c350f14f859fdc')),
        (sentences.fill_in_the_blank_sized, (6, '23155f048aaf00f9')),
        (sentences.neighboring_pairs, (114, '0c04225a4c2ced60')),
        (
            functools.partial(
                sentences.neighboring_pairs, reuse_sentences=False
            ),
            (72, 'fdcc14b2e61f8211'),
        ),
        (
            functools.partial(
                sentences.next_sentence_prediction,
                buffer_size=1,
                label_sentences=True,
            ),
            (114, '96152dbdfd83c4e5'),
        ),
    ],
)
def test_words_and_sentences_are_those_of_t5(preprocess, expected):
  assert _made(preprocess, _texts()) == expected


@pytest.mark.parametrize(
    ('length', 'expected'), [(512, (568, 114)), (114, (126, 26))]
)
def test_span_corruption_fills_the_inputs_as_in_the_t5_paper(length, expected):
  assert denoising.random_spans_helper(
      inputs_length=length,
      noise_density=0.15,
      mean_noise_span_length=3.0,
      extra_tokens_per_span_inputs=1,
      extra_tokens_per_span_targets=1,
  ) == expected


def test_targets_that_are_too_short_are_refused_with_the_length_they_need():
  with pytest.raises(ValueError, match='at least 114'):
    denoising.span_corruption(
        _tokens(), {'inputs': 512, 'targets': 100}, _FEATURES
    )


def test_fields_that_are_made_cannot_be_kept():
  with pytest.raises(ValueError, match='Leave them out'):
    chunks.split_tokens(
        _tokens(),
        max_tokens_per_segment=8,
        passthrough_feature_keys=['targets'],
    )
