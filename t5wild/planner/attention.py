# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a recipe's attention gets fused kernels on some devices.

By the rule that networks choose with, from what is known before tracing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from t5wild.networks import attention_choice


def fused_features(
    config: Any, batch: Mapping[str, Sequence[int]], platform: str
) -> int | None:
  """Features that fused kernels add to each head; None where some layer is not.

  Args:
    config: of the network.
    batch: shapes of the model's features.
    platform: of the devices: 'cpu', 'gpu' or 'tpu'.
  """
  implementation = getattr(config, 'attention_implementation', 'xla')
  features = 0
  for site in _sites(config, batch, platform):
    choice = attention_choice.choose(implementation, site)
    if choice.kernel == 'xla':
      return None
    options = attention_choice.kernel_options(choice.kernel, site, None)
    features = max(features, options.get('features', 0))
  return features


def _sites(
    config: Any, batch: Mapping[str, Sequence[int]], platform: str
) -> Iterator[attention_choice.Site]:
  """Each kind of attention layer, in training."""
  targets = batch['decoder_target_tokens'][1]
  inputs = batch.get('encoder_input_tokens', (0, 0))[1]
  is_packed = any(name.endswith('segment_ids') for name in batch)
  has_window = 'local' in getattr(config, 'layer_pattern', ())
  has_bias = str(getattr(config, 'positions', 'relative_bias')).startswith(
      'relative'
  )
  kinds = [(targets, targets, True)]
  if inputs:
    kinds += [(inputs, inputs, False), (targets, inputs, False)]
  for queries, keys, is_causal in kinds:
    yield attention_choice.Site(
        platform=platform,
        max_head_dim=attention_choice.max_head_dim(platform),
        dtype=np.dtype(jnp.dtype(config.dtype)),
        head_dim=config.head_dim,
        queries=queries,
        keys=keys,
        has_bias=has_bias and queries == keys,
        mask='sight',
        is_packed=is_packed,
        is_causal=is_causal,
        window='some layers' if has_window else None,
        softcap=getattr(config, 'attention_softcap', None) is not None,
    )
