# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The parts that a configuration chooses, and how layers are stacked.

The `make_*` functions build modules under T5X's names: call them, like the
other functions here, from a compact method.
"""

from collections.abc import Sequence

from flax import linen as nn
from flax.linen import partitioning
import jax
from jax import Array
import jax.numpy as jnp
from jaxtyping import Float, Num

from t5wild.networks import attention
from t5wild.networks import config as config_lib
from t5wild.networks import embeddings
from t5wild.networks import layers
from t5wild.networks import masks
from t5wild.networks import norms
from t5wild.networks import quantization
from t5wild.networks import rotary

# Numbers of any type: initialised without types they are floats, as in T5X.
Tokens = Num[Array, 'batch length']
Embedded = Float[Array, 'batch length embed']
Bias = Float[Array, '1 heads bias_queries bias_keys']
Config = config_lib.LayerConfig


def make_attention(
    config: Config,
    name: str,
    *,
    is_cross: bool = False,
    like_to_like: bool = False,
    keep_encoded: bool = False,
    is_local: masks.IsLocal = False,
) -> attention.MultiHeadDotProductAttention:
  """Makes an attention block; across two sequences there is no distance."""
  is_rotary = config.positions == 'rotary' and not is_cross
  local_rotary = make_local_rotary(config) if is_rotary else None
  return attention.MultiHeadDotProductAttention(
      num_heads=config.num_heads,
      head_dim=config.head_dim,
      num_kv_heads=config.num_kv_heads,
      dtype=config.dtype,
      dropout_rate=config.dropout_rate,
      implementation=config.attention_implementation,
      float32_logits=config.float32_attention_logits,
      softcap=config.attention_softcap,
      rotary=make_rotary(config) if is_rotary else None,
      is_local=is_local,
      local_rotary=local_rotary,
      local_window=getattr(config, 'local_window', None),
      use_input_bias=config.attention_bias in ('inputs', 'all'),
      use_output_bias=config.attention_bias == 'all',
      scale_queries=config.scale_queries,
      query_pre_attn_scalar=config.query_pre_attn_scalar,
      scale_attn_logits=getattr(config, 'scale_attn_logits', False),
      normalize_heads=config.normalize_heads,
      norm_from_one=config.norm == 'rms_from_one',
      norm_epsilon=config.norm_epsilon,
      joined_kernels=not config.scan_layers,
      like_to_like=like_to_like,
      quantization=make_quantization(config),
      keep_encoded=keep_encoded,
      name=name,
  )


def make_rotary(config: Config) -> rotary.Rotary:
  """Makes the rotary positions, of layers that look as far as they like."""
  return rotary.Rotary(
      wavelength=config.rotary_wavelength,
      factor=config.rotary_factor,
      original_length=config.rotary_original_length,
      turns=tuple(config.rotary_turns),
  )


def make_local_rotary(config: Config) -> rotary.Rotary | None:
  """Makes those of local layers; None = they are the same."""
  wavelength = getattr(config, 'local_rotary_wavelength', None)
  return None if wavelength is None else rotary.Rotary(wavelength=wavelength)


def make_mlp(config: Config) -> layers.MlpBlock:
  """Makes the feed-forward block."""
  return layers.MlpBlock(
      config.mlp_dim,
      activations=config.mlp_activations,
      intermediate_dropout_rate=config.dropout_rate,
      use_bias=config.mlp_bias,
      dtype=config.dtype,
      quantization=make_quantization(config),
      name='mlp',
  )


def make_quantization(config: Config) -> layers.Quantization:
  """Says which products are of 8-bit numbers; None = none."""
  if config.quantization is None:
    return None
  return quantization.Quantization(
      number_format=config.quantization, layers=config.quantized_layers
  )


def make_norm(config: Config, name: str) -> nn.Module:
  """Makes the norm that the configuration names."""
  common = {
      'epsilon': config.norm_epsilon, 'dtype': config.dtype, 'name': name,
  }
  if config.norm.startswith('rms'):
    return norms.RmsNorm(
        scale_from_one=config.norm == 'rms_from_one', **common
    )
  return norms.LayerNorm(use_bias=config.norm == 'layer', **common)


def make_embedder(config: Config) -> embeddings.Embed:
  """Makes the table of token embeddings."""
  deviation = 1.0
  if config.embedding_scale != 'logits':  # so that the scores start of size 1
    deviation = config.emb_dim**-0.5
  return embeddings.Embed(
      config.vocab_size,
      config.emb_dim,
      dtype=config.dtype,
      embedding_init=nn.initializers.normal(stddev=deviation),
      name='token_embedder',
  )


def embed(
    config: Config, embedder: embeddings.Embed, tokens: Tokens
) -> Embedded:
  """Embeds tokens, at the scale that the configuration asks for."""
  x = embedder(tokens)
  if config.embedding_scale == 'inputs':
    x = x * jnp.asarray(config.emb_dim**0.5, x.dtype)
  return x


def score_tokens(
    config: Config, embedder: embeddings.Embed, y: Embedded
) -> Float[Array, 'batch length vocab']:
  """Scores every token as the next, in float32."""
  if config.logits_via_embedding:
    logits = embedder.attend(y)
    if config.embedding_scale == 'logits':
      # A shared table has entries of size 1, a layer's kernel 1/sqrt(embed).
      logits = logits / jnp.sqrt(y.shape[-1])
  else:
    logits = layers.DenseGeneral(
        config.vocab_size,
        kernel_axes=('embed', 'vocab'),
        dtype=jnp.float32,
        quantization=make_quantization(config),
        name='logits_dense',
    )(y)
  cap = config.logits_softcap
  return logits if cap is None else cap * jnp.tanh(logits / cap)


def make_shared_bias(
    config: Config, length: int, *, bidirectional: bool
) -> Bias | None:
  """Makes the bias that all layers of a stack share; None = they don't."""
  if config.scan_layers or config.positions != 'relative_bias':
    return None
  return _make_bias(config, length, bidirectional=bidirectional)


def make_layer_bias(
    config: Config, shared: Bias | None, length: int, *, bidirectional: bool
) -> Bias | None:
  """Makes a layer's own bias where none is shared; None = positions differ."""
  if shared is not None or not config.positions.startswith('relative_bias'):
    return shared
  return _make_bias(config, length, bidirectional=bidirectional)


def _make_bias(config, length, *, bidirectional):
  return embeddings.RelativePositionBiases(
      config.num_heads,
      dtype=config.dtype,
      init_scale=config.relative_bias_init_scale,
      name='relpos_bias',
  )(length, length, bidirectional=bidirectional)


def pin(x: Embedded) -> Embedded:
  """Pins how a layer's activations lie on the mesh."""
  return partitioning.with_sharding_constraint(x, ('batch', 'length', 'embed'))


def _rematerialized(layer_cls, config: Config):
  """Makes a layer's backward pass compute anew what its policy does not save.

  Attention's products have batch axes and are cheap beside those with
  parameters, so 'minimal' computes them again.
  """
  if config.remat_policy == 'none':
    return layer_cls
  policy = None
  if config.remat_policy == 'minimal':
    policy = jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims
  # A loop's body can't share work with its surroundings, so there the barrier
  # that keeps XLA from undoing the recomputation is needless.
  return partitioning.remat(
      layer_cls, policy=policy, prevent_cse=not config.scan_layers
  )


def apply_layers(
    layer_cls, x: Embedded, layer_args: tuple, *, layer_fields: dict,
    num_layers: int, scanned_name: str, initializing: bool,
    is_local: Sequence[bool] | None = None,
) -> Embedded:
  """Sends x through all layers, plain or scanned.

  Args:
    layer_cls: class of a layer.
    x: inputs of the first layer.
    layer_args: what every layer gets besides x.
    layer_fields: fields of the layer module, `config` among them.
    num_layers: number of layers.
    scanned_name: name of the stacked layers' module.
    initializing: parameters are being made.
    is_local: what each layer gets after `layer_args`; None = nothing.
  """
  config = layer_fields['config']
  layer_cls = _rematerialized(layer_cls, config)
  if not config.scan_layers:
    for index in range(num_layers):
      own = () if is_local is None else (is_local[index],)
      layer = layer_cls(**layer_fields, name=f'layers_{index}')
      x, _ = layer(x, *layer_args, *own)
    return x
  axis = config.param_scan_axis
  own = () if is_local is None else (jnp.asarray(is_local),)
  scanned_cls = partitioning.scan_with_axes(
      layer_cls,
      variable_axes={
          'params': axis if initializing else partitioning.ScanIn(axis),
          'cache': 0,
          'encoded': 0,
      },
      split_rngs={'params': True, 'dropout': True},
      in_axes=(nn.broadcast,) * len(layer_args) + (0,) * len(own),
      length=num_layers,
      axis_name='layers',
  )
  layers_module = scanned_cls(**layer_fields, name=scanned_name)
  x, _ = layers_module(x, *layer_args, *own)
  return x
