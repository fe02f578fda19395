# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Attends by the kernel that serves a layer, and says which that is."""

from collections.abc import Sequence
import dataclasses

from flax.core import meta
from jax import Array
from jaxtyping import Float

from t5wild.networks import attention_choice
from t5wild.networks import dot_product
from t5wild.networks import fused_attention
from t5wild.networks import sight as sight_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """What a layer asks for.

  Attributes:
    implementation: one of `attention_choice.IMPLEMENTATIONS`.
    path: of the layer's module.
    is_step: it has a cache to decode with.
    window_differs: between the scanned layers that this one stands for.
    float32_logits: see `dot_product.dot_product_attention`; fused kernels
      always do so.
    softcap: see there.
  """

  implementation: str
  path: Sequence[str]
  is_step: bool = False
  window_differs: bool = False
  float32_logits: bool = False
  softcap: float | None = None


def attend(
    query: Float[Array, 'batch heads queries kv'],
    key: Float[Array, 'batch kv_heads keys kv'],
    value: Float[Array, 'batch kv_heads keys kv'],
    sight: sight_lib.MaskOrSight | None,
    bias: Float[Array, '#batch heads queries keys'] | None,
    *,
    options: Options,
) -> Float[Array, 'batch heads queries kv']:
  """Averages the values; see `dot_product.dot_product_attention`."""
  if options.implementation == 'xla':
    choice = attention_choice.Choice(kernel='xla')
  else:
    site = _site_of(query, key, sight, bias, options)
    choice = attention_choice.choose(options.implementation, site)
    attention_choice.tell(options.implementation, options.path, choice, site)
  if choice.kernel == 'xla':
    return dot_product.dot_product_attention(
        query, key, value, sight_lib.as_mask(sight), bias,
        options.float32_logits, options.softcap,
    )
  return fused_attention.attend(
      query, key, value, sight=sight, bias=bias, kernel=choice.kernel,
      **attention_choice.kernel_options(choice.kernel, site, options.softcap),
  )


def _site_of(query, key, sight, bias, options) -> attention_choice.Site:
  axis = fused_attention.sequence_axis()
  mask = 'none' if sight is None else 'pairs'
  of_sight = {}
  if isinstance(sight, sight_lib.Sight):
    mask = 'sight'
    of_sight = {
        'is_packed': sight.is_packed,
        'has_prefix': sight.prefix is not None,
        'is_causal': sight.is_causal,
        'window': sight.window,
    }
  if options.window_differs:
    of_sight['window'] = 'some layers'
  platform = attention_choice.platform()
  return attention_choice.Site(
      platform=platform,
      max_head_dim=attention_choice.max_head_dim(platform),
      dtype=query.dtype,
      head_dim=query.shape[-1],
      queries=query.shape[2],
      keys=key.shape[2],
      is_step=options.is_step,
      has_bias=bias is not None,
      mask=mask,
      softcap=options.softcap is not None,
      sequence_shards=1 if axis is None else meta.get_global_mesh().shape[axis],
      **of_sight,
  )
