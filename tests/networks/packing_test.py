# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An encoder-decoder sees nothing of the example packed beside one."""

import functools

import jax
import numpy as np
import pytest

from t5wild.networks import transformer
from tests.networks import decoders


@functools.partial(jax.jit, static_argnums=0, compiler_options=decoders.QUICK)
def _apply(network, params, *batch):
  return network.apply({'params': params}, *batch, enable_dropout=False)


def _make_params(network, batch):
  return jax.jit(
      lambda key: network.init(key, *batch, enable_dropout=False),
      compiler_options=decoders.QUICK,
  )(jax.random.PRNGKey(0))['params']


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'scan_layers': True},
        {'positions': 'relative_bias_per_layer', 'mlp_activations': ('relu',)},
    ],
    ids=str,
)
def test_packed_examples_have_the_losses_they_have_alone(config, changes):
  network = transformer.Transformer(config.replace(**changes))
  sizes = [(7, 4), (5, 6)]  # of the inputs and targets of each example
  examples = []
  for seed, (inputs, targets) in enumerate(sizes):
    target = decoders.make_targets(1, targets, seed=seed)
    examples.append((
        decoders.make_targets(1, inputs, seed=10 + seed),
        decoders.shift(target),
        target,
    ))
  packed = [
      np.pad(np.concatenate(parts, axis=1), ((0, 0), (0, 3)))
      for parts in zip(*examples, strict=True)
  ]
  segments = [
      np.array([[1] * first + [2] * second + [0] * 3])
      for first, second in zip(*sizes, strict=True)
  ]
  params = _make_params(network, packed)
  logits = _apply(network, params, *packed, *segments)
  together = decoders.losses(logits, packed[2])[0]
  (_, first), (_, second) = sizes
  for example, here in zip(
      examples, (together[:first], together[first : first + second]),
      strict=True,
  ):  # fmt: skip
    alone = decoders.losses(_apply(network, params, *example), example[2])[0]
    np.testing.assert_allclose(here, alone, rtol=1e-5, atol=1e-5)
  # Without the segments' numbers they would see each other.
  unseparated = decoders.losses(_apply(network, params, *packed), packed[2])[0]
  moved = np.abs(unseparated - together)[: first + second]
  assert moved.min() > 1e-4
