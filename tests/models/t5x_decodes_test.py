# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The encoder-decoder model decodes what T5X decoded, by search and by draw."""

import functools

import jax
import numpy as np
import pytest

from t5wild.decoding import beam
from t5wild.decoding import sampling

# By the tag of the fixture: decoding function and arguments of the model.
_ALL = {'num_decodes': 4, 'return_all_decodes': True}
_DECODES = {
    'beam4_all': (beam.beam_search, _ALL),
    'beam1': (beam.beam_search, {}),
    'beam4_alpha0': (functools.partial(beam.beam_search, alpha=0.0), _ALL),
    'topk40_temp1_key3': (
        functools.partial(sampling.temperature_sample, topk=40), {},
    ),
    'topp0.9_temp0.7_key3_n3_all': (
        functools.partial(
            sampling.temperature_sample, temperature=0.7, topk=0, topp=0.9
        ),
        {'num_decodes': 3, 'return_all_decodes': True},
    ),
}  # fmt: skip


@pytest.mark.parametrize('tag', _DECODES)
def test_decodes_and_scores_are_those_of_t5x(t5x_run, tag):
  decode_fn, arguments = _DECODES[tag]
  model = t5x_run.make_model(decode_fn=decode_fn)
  predict = jax.jit(
      lambda params: model.predict_batch_with_aux(
          params, t5x_run.decode_batch, jax.random.PRNGKey(3), **arguments
      )
  )
  for params, name in (
      (t5x_run.params, tag), (t5x_run.noisy_params, f'noisy_{tag}')
  ):  # fmt: skip
    if f'decode/{name}/tokens' not in t5x_run.outputs:
      continue
    tokens, aux = predict(params)
    np.testing.assert_array_equal(
        tokens, t5x_run.outputs[f'decode/{name}/tokens'], err_msg=name
    )
    # Sums over up to 32 tokens, whose logits agree to 2e-5.
    np.testing.assert_allclose(
        aux['scores'], t5x_run.outputs[f'decode/{name}/scores'], rtol=1e-4,
        err_msg=name,
    )
