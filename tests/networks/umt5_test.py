# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""umT5: plain layers with a relative bias each are T5X's scanned layers."""

import functools

from flax import traverse_util
import jax
import numpy as np

from t5wild.networks import transformer
from tests.networks import decoders


@functools.partial(
    jax.jit, static_argnums=0, compiler_options=decoders.QUICK
)
def apply(network, params, *tokens):
  return network.apply({'params': params}, *tokens, enable_dropout=False)


def apart(stacked):
  """The parameters of scanned layers under the names of plain ones."""
  plain = {}
  for path, x in decoders.flat(stacked).items():
    side, *rest = path.split('/')
    if rest[0] != side:
      plain[path] = x
      continue
    for layer in range(x.shape[1]):
      kernel = x[:, layer]
      if kernel.ndim == 3:  # heads and kv apart
        is_out = '/out/' in path
        kernel = kernel.reshape(
            (-1, kernel.shape[2]) if is_out else (kernel.shape[0], -1)
        )
      plain['/'.join([side, f'layers_{layer}', *rest[1:]])] = kernel
  return traverse_util.unflatten_dict(plain, sep='/')


def test_plain_layers_with_a_bias_each_are_scanned_layers_unrolled(config):
  plain = transformer.Transformer(
      config.replace(
          num_encoder_layers=2,
          num_decoder_layers=2,
          positions='relative_bias_per_layer',
      )
  )
  scanned = transformer.Transformer(plain.config.replace(scan_layers=True))
  targets = decoders.make_targets()
  tokens = decoders.make_targets(seed=1), decoders.shift(targets), targets
  stacked = jax.jit(
      lambda key: scanned.init(key, *tokens, enable_dropout=False),
      compiler_options=decoders.QUICK,
  )(jax.random.PRNGKey(0))['params']
  params = apart(stacked)
  assert 'relpos_bias' in params['encoder']['layers_1']
  np.testing.assert_allclose(
      apply(plain, params, *tokens),
      apply(scanned, stacked, *tokens),
      rtol=1e-5,
      atol=1e-5,
  )
