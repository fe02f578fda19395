# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's lesser decoding functions do what their names say."""

import jax
import jax.numpy as jnp
import numpy as np

from t5wild.decoding import t5x_names


def test_prompts_are_moved_to_either_end():
  prompts = jnp.array([[0, 5, 0, 6, 0], [1, 2, 3, 4, 5], [7, 0, 0, 0, 0]])
  assert t5x_names.right_align_prompts(prompts).tolist() == [
      [0, 0, 5, 0, 6], [1, 2, 3, 4, 5], [0, 0, 0, 0, 7]
  ]
  assert t5x_names.left_align_prompts(prompts).tolist() == [
      [5, 0, 6, 0, 0], [1, 2, 3, 4, 5], [7, 0, 0, 0, 0]
  ]


def test_top_beams_come_lowest_first():
  scores = jnp.array([[1.0, 3.0, 2.0]])
  beams = t5x_names.gather_topk_beams(
      {'x': jnp.array([[10, 30, 20]])}, scores, 1, 2
  )
  assert beams['x'].tolist() == [[20, 30]]
  values, places = t5x_names.top_k_two_stage(scores, 2)
  assert values.tolist() == [[3.0, 2.0]]
  assert places.tolist() == [[1, 2]]


def test_a_single_trial_has_no_axis_of_decodes():
  logits = jnp.array([[0.0, 9.0, 1.0]])
  tokens, score = t5x_names.temperature_sample_single_trial(
      jnp.zeros((1, 3), jnp.int32),
      {},
      lambda state: (logits, state.cache),
      -1,
      jax.random.PRNGKey(0),
      topk=1,
  )
  assert tokens.tolist() == [[1, 1, 1]]
  np.testing.assert_allclose(score, [0.0])
