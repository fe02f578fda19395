# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of the probe: fixed, and those of a language model alone."""

import jax
import numpy as np
import pytest

from t5wild import loss_probe

_SHAPES = {
    name: jax.ShapeDtypeStruct((16, 8), np.int32)
    for name in (
        'encoder_input_tokens', 'decoder_target_tokens', 'decoder_input_tokens',
        'decoder_loss_weights', 'encoder_segment_ids', 'encoder_positions',
    )
}  # fmt: skip


def test_the_examples_are_the_same_for_any_number_of_rows():
  few = loss_probe.make_batch(_SHAPES, vocab_size=100, rows=4)
  many = loss_probe.make_batch(_SHAPES, vocab_size=100, rows=12)
  assert few.keys() == _SHAPES.keys()
  for name, values in few.items():
    np.testing.assert_array_equal(many[name], np.tile(values, (3, 1)))
    assert values.dtype == np.int32
  tokens = few['decoder_target_tokens']
  assert tokens.min() >= 1
  assert tokens.max() < 100
  np.testing.assert_array_equal(
      few['decoder_input_tokens'][:, 1:], tokens[:, :-1]
  )


@pytest.mark.parametrize('change', [
    {'image': jax.ShapeDtypeStruct((16, 8, 8), np.float32)},
    {'labels': jax.ShapeDtypeStruct((16, 8), np.int32)},
])
def test_other_models_have_none(change):
  assert loss_probe.make_batch(
      {**_SHAPES, **change}, vocab_size=100, rows=4
  ) is None
