# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding by networks that keep the keys and values of the encoded inputs.

T5X's way is a row of encoded inputs for each decode, whose keys and values the
network makes anew at each position. A network whose `decode` has an argument
`num_decodes` offers another: it keeps them in the collection `encoded`, once
for each input, however many decodes look at them.

    decode(..., decode=True, num_decodes=1)  the first call, on whole sequences:
                                             fills `cache` and `encoded`
    decode(..., decode=True, num_decodes=n)  a step, on n rows for each input,
                                             side by side: reads `encoded`
"""

import dataclasses
import inspect
from typing import Any

from flax import linen as nn
import jax
from jax import numpy as jnp

from t5wild.decoding import state as decoding_state
from t5wild.models import base


def is_kept_by(module: nn.Module) -> bool:
  """Tells whether a network offers it."""
  decode = getattr(type(module), 'decode', None)
  return decode is not None and (
      'num_decodes' in inspect.signature(decode).parameters
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoding:
  """Decodes of a batch of inputs.

  Attributes:
    module: the network.
    params: its parameters.
    encoded_inputs: [batch, input length, embed].
    raw_inputs: [batch, input length] tokens, for their padding.
    max_decode_length: length of the cache.
  """

  module: nn.Module
  params: base.PyTree
  encoded_inputs: jax.Array
  raw_inputs: jax.Array
  max_decode_length: int

  def start(self) -> tuple[decoding_state.Cache, base.PyTree]:
    """An empty cache of `batch` rows, and what is kept of the inputs.

    Compiled, this costs the cache's zeros and the keys and values of the
    inputs: nothing else is read of the forward pass.
    """
    shape = (self.raw_inputs.shape[0], self.max_decode_length)
    _, variables = self._apply(
        {}, jnp.ones(shape, jnp.int32), 1, mutable=['cache', 'encoded']
    )
    return variables['cache'], variables['encoded']

  def step(
      self,
      decoding_state: decoding_state.DecodingState,
      *,
      kept: base.PyTree,
      num_decodes: int,
  ) -> tuple[jax.Array, decoding_state.Cache]:
    """One step, on batch * num_decodes rows: (logits [rows, vocab], cache)."""
    logits, variables = self._apply(
        {'cache': decoding_state.cache, 'encoded': kept},
        decoding_state.cur_token,
        num_decodes,
        max_decode_length=self.max_decode_length,
        mutable=['cache'],
    )
    return jnp.squeeze(logits, axis=1), variables['cache']

  def _apply(self, variables, tokens, num_decodes, **more: Any):
    return self.module.apply(
        {'params': self.params, **variables},
        self.encoded_inputs,
        self.raw_inputs,
        tokens,
        tokens,
        enable_dropout=False,
        decode=True,
        num_decodes=num_decodes,
        method=self.module.decode,
        **more,
    )
