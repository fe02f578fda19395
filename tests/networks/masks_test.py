# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Masks let through what they should and nothing else."""

import re

import jax.numpy as jnp
import numpy as np

from t5wild.networks import masks


def test_padding_neither_looks_nor_is_looked_at():
  real = jnp.array([[True, True, False]])
  mask = masks.make_attention_mask(real, real)
  np.testing.assert_array_equal(
      mask[0, 0], [[True, True, False], [True, True, False], [False] * 3]
  )


def test_causal_mask_is_a_lower_triangle_for_every_row():
  mask = masks.make_causal_mask(jnp.zeros((2, 4)))
  np.testing.assert_array_equal(mask[:, 0], [np.tri(4, dtype=bool)] * 2)


def test_combined_masks_allow_what_all_allow():
  a = jnp.array([[[[True, True, False]]]])
  b = jnp.array([[[[False, True, True]]]])
  np.testing.assert_array_equal(
      masks.combine_masks(a, None, b)[0, 0, 0], [False, True, False]
  )
  assert masks.combine_masks(None, None) is None


def test_decoder_mask_separates_packed_examples_and_opens_prefixes():
  # Two packed examples, [6 7 -> 8] and [3 4 -> 5], and one of padding.
  mask = masks.make_decoder_mask(
      jnp.array([[6, 7, 8, 3, 4, 5, 0]]),
      decoder_causal_attention=jnp.array([[1, 1, 0, 1, 1, 0, 0]]),
      decoder_segment_ids=jnp.array([[1, 1, 1, 2, 2, 2, 0]]),
  )
  expected = np.zeros((7, 7), bool)
  for start in (0, 3):
    block = expected[start : start + 3, start : start + 3]
    block |= np.tri(3, dtype=bool)
    block[:2, :2] = True
  np.testing.assert_array_equal(mask[0, 0], expected)


def test_decoder_masks_are_as_drawn():
  drawn = re.findall(
      r'^ *[0abc]((?: +[x.]){4})((?: +[x.]){4})$',
      masks.make_decoder_mask.__doc__,
      re.MULTILINE,
  )
  assert len(drawn) == 4
  causal, prefix = (
      [[mark == 'x' for mark in row.split()] for row in rows]
      for rows in zip(*drawn, strict=True)
  )
  targets = np.array([[5, 6, 7, 8]])
  is_prefix = np.array([[1, 1, 1, 0]])
  np.testing.assert_array_equal(
      masks.make_decoder_mask(targets)[0, 0], causal
  )
  np.testing.assert_array_equal(
      masks.make_decoder_mask(targets, decoder_causal_attention=is_prefix)[
          0, 0
      ],
      prefix,
  )
