# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decodes of one input lie side by side on the batch axis."""

import flax
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import state


def test_expansion_repeats_rows_side_by_side():
  expanded = state.flat_batch_beam_expand(jnp.asarray([[1, 2], [3, 4]]), 2)
  np.testing.assert_array_equal(expanded, [[1, 2], [1, 2], [3, 4], [3, 4]])


@pytest.mark.parametrize('offset', [0, 1])
def test_flattening_undoes_unflattening(offset):
  x = jnp.arange(2 * 6 * 3).reshape((2, 6, 3) if offset else (6, 2, 3))
  split = state.unflatten_beam_dim(x, 3, 2, offset)
  assert split.shape[offset : offset + 2] == (3, 2)
  np.testing.assert_array_equal(state.flatten_beam_dim(split, offset), x)


def test_unflattened_expansion_holds_equal_decodes():
  x = jnp.arange(4 * 3).reshape(4, 3)
  beams = state.unflatten_beam_dim(state.flat_batch_beam_expand(x, 5), 4, 5)
  np.testing.assert_array_equal(beams, np.repeat(x[:, None], 5, axis=1))


def _make_cache():
  return {
      'decoder': {
          'layers_0': {
              'cached_key': jnp.ones((2, 3)),
              'cache_index': jnp.zeros(()),
          },
          'relpos_bias': {'cached_bias': jnp.ones((1, 4))},
      }
  }


@pytest.mark.parametrize('kind', [dict, flax.core.freeze])
def test_cache_map_spares_entries_without_a_batch_axis(kind):
  cache = kind(_make_cache())
  mapped = state.cache_map(lambda x: state.flat_batch_beam_expand(x, 2), cache)
  assert type(mapped) is type(cache)
  shapes = jax.tree.map(jnp.shape, flax.core.unfreeze(mapped))
  assert shapes == {
      'decoder': {
          'layers_0': {'cached_key': (4, 3), 'cache_index': ()},
          'relpos_bias': {'cached_bias': (1, 4)},
      }
  }


def test_cache_map_reaches_the_index_when_told():
  mapped = state.cache_map(lambda x: x + 1, _make_cache(), apply_to_index=True)
  assert mapped['decoder']['layers_0']['cache_index'] == 1
  np.testing.assert_array_equal(
      mapped['decoder']['relpos_bias']['cached_bias'], np.ones((1, 4))
  )
