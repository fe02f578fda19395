# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The sizes and switches of the networks, checked.

One family: what every layer is made of is in `LayerConfig`; an encoder-decoder
and a decoder alone add how many layers they have and how these are joined. The
defaults are T5's.
"""

from collections.abc import Sequence
from typing import Any

from flax import struct
import jax.numpy as jnp

from t5wild.networks import attention_choice
from t5wild.networks import layers
from t5wild.networks import quantization

REMAT_POLICIES = ('none', 'minimal', 'full')
POSITIONS = ('relative_bias', 'relative_bias_per_layer', 'rotary', 'none')
NORMS = ('rms', 'rms_from_one', 'layer', 'layer_without_bias')
ATTENTION_BIASES = ('none', 'inputs', 'all')
LAYER_KINDS = ('global', 'local')
EMBEDDING_SCALES = ('logits', 'inputs', 'none')


@struct.dataclass
class LayerConfig:
  """What the layers of a network are made of, by T5X's names where it has one.

  Attributes:
    vocab_size: number of tokens, of both sides.
    dtype: type of the activations; parameters are float32.
    emb_dim: size of an embedding.
    num_heads: number of attention heads.
    num_kv_heads: heads of keys and values, each shared by `num_heads /
      num_kv_heads` heads of queries (grouped-query attention; 1 = multi-query);
      None = one for each.
    head_dim: size of a head's query, key and value.
    mlp_dim: size of the hidden axis of the feed-forward blocks.
    mlp_activations: names in flax.linen; ('gelu', 'linear') = gated GELU,
      ('silu', 'linear') = SwiGLU.
    dropout_rate: dropout of every site.
    logits_via_embedding: score tokens by the embedding table instead of a layer
      of their own.
    embedding_scale: what sqrt(emb_dim) goes to: 'logits' = those by the table
      are divided by it, its entries being of size 1 (T5, PaLM); 'inputs' =
      embedded tokens are multiplied by it (Gemma); 'none' (Llama).
    norm: 'rms'; 'rms_from_one' = its parameter is added to 1 (Gemma); 'layer' =
      mean and variance, scale and bias; 'layer_without_bias' (PaLM).
    norm_epsilon: added to the mean square or variance.
    positions: 'relative_bias' = T5's, shared by plain layers and of each layer
      where these are scanned; 'relative_bias_per_layer' (umT5); 'rotary' =
      queries and keys are turned by their position; 'none'.
    rotary_wavelength: longest wavelength of rotary positions.
    rotary_factor: slow pairs of features turn so many times as slowly, for
      texts longer than those trained on; see `rotary.Rotary`.
    rotary_original_length: how long those were (Llama 3.1); None = all pairs
      are slowed.
    rotary_turns: which pairs are slow where it is not None.
    attention_bias: 'none'; 'inputs' = queries, keys and values get biases
      (Qwen 2); 'all' = the output too.
    mlp_bias: the feed-forward block's products get biases.
    scale_queries: multiply queries by 1/sqrt(head_dim) in the forward pass
      rather than, as T5 does, once in their initial kernel. The same at the
      start; Adafactor trains both alike, Adam does not.
    query_pre_attn_scalar: takes the place of head_dim there (Gemma 2); None =
      head_dim.
    normalize_heads: RMS norm of each head's queries and keys, its parameter
      added to 1 where `norm` is 'rms_from_one' (Gemma 3).
    attention_implementation: which kernel attends: 'auto' = a fused one where
      there is one that serves the layer, on GPUs cuDNN's, on TPUs JAX's;
      'xla' = products and a softmax; 'cudnn', 'splash', 'flash'. The run says
      which layer got what.
    attention_softcap: keeps attention logits within plus and minus this much by
      a tanh; None = as they are.
    logits_softcap: the same for the scores of tokens.
    float32_attention_logits: accumulate attention logits in float32.
    quantization: 'fp8' or 'int8' = dense layers multiply 8-bit numbers (see
      `quantization`); None = numbers of `dtype`.
    quantized_layers: which of them, a regular expression looked for in a
      layer's path (`decoder/layers_3/mlp/wo`); 'mlp', or 'attention|mlp|logits'
      with the scores of tokens.
    scan_layers: compile one layer and loop over stacked parameters: quicker to
      compile, slower to run on a CPU.
    remat_policy: what the backward pass computes anew: 'none' nothing,
      'minimal' all but products with parameters, 'full' whole layers.
    param_scan_axis: where stacked parameters have their layer axis.
    relative_bias_init_scale: factor on T5's initial relative position biases;
      with 10 heads look at certain distances from the start.
  """

  vocab_size: int
  dtype: Any = jnp.float32
  emb_dim: int = 512
  num_heads: int = 8
  num_kv_heads: int | None = None
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ('relu',)
  dropout_rate: float = 0.1
  logits_via_embedding: bool = False
  embedding_scale: str = 'logits'
  norm: str = 'rms'
  norm_epsilon: float = 1e-6
  positions: str = 'relative_bias'
  rotary_wavelength: float = 10_000.0
  rotary_factor: float = 1.0
  rotary_original_length: int | None = None
  rotary_turns: Sequence[float] = (1.0, 4.0)
  attention_bias: str = 'none'
  mlp_bias: bool = False
  scale_queries: bool = False
  query_pre_attn_scalar: float | None = None
  normalize_heads: bool = False
  attention_implementation: str = 'auto'
  attention_softcap: float | None = None
  logits_softcap: float | None = None
  float32_attention_logits: bool = False
  quantization: str | None = None
  quantized_layers: str = 'attention|mlp'
  scan_layers: bool = False
  remat_policy: str = 'none'
  param_scan_axis: int = 1
  relative_bias_init_scale: float = 1.0


@struct.dataclass
class T5Config(LayerConfig):
  """The sizes and switches of an encoder-decoder.

  Attributes:
    num_encoder_layers: number of encoder layers.
    num_decoder_layers: number of decoder layers.
    like_attends_to_like: begin with the same kernel for the queries of the
      decoder and the keys of the encoder, so that a sentinel looks first at the
      same sentinel. T5 draws them apart, and then a decoder needs several times
      as many steps until it makes use of its encoder.
  """

  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  like_attends_to_like: bool = False


@struct.dataclass
class TransformerConfig(LayerConfig):
  """The sizes and switches of a decoder alone.

  Attributes:
    num_layers: number of layers.
    parallel_blocks: attention and feed-forward block both read the layer's
      input through one norm and are added at once (PaLM), rather than one after
      the other.
    post_norms: also normalise what each block gives before it is added
      (Gemma 2).
    layer_pattern: kinds of the layers, over and again: 'global', or 'local',
      which looks no farther than `local_window`. ('local', 'global') in Gemma
      2, five local and one global in Gemma 3.
    local_window: how many positions a local layer sees to one side, itself
      included.
    local_rotary_wavelength: longest wavelength of a local layer's rotary
      positions, which are not slowed (Gemma 3); None = as in global ones.
  """

  num_layers: int = 6
  parallel_blocks: bool = False
  post_norms: bool = False
  layer_pattern: Sequence[str] = ('global',)
  local_window: int | None = None
  local_rotary_wavelength: float | None = None


def check_config(config: LayerConfig) -> None:
  """Raises ValueError where a value of the configuration can not work."""
  _check_choices(config)
  _check_numbers(config)
  _check_heads(config)
  if isinstance(config, TransformerConfig):
    _check_pattern(config)
  quantization.check(config)
  try:
    jnp.dtype(config.dtype)
  except TypeError:
    raise ValueError(
        f'{_name(config)}.dtype is {config.dtype!r}, expected the type of the '
        f"activations: set network.{_name(config)}.dtype to 'float32' or "
        "'bfloat16'"
    ) from None
  if not config.mlp_activations:
    raise ValueError(
        f'{_name(config)}.mlp_activations is {config.mlp_activations!r}, '
        "expected at least one activation: set it to ('gelu', 'linear')"
    )
  for activation in config.mlp_activations:
    layers.make_activation(activation)


def _name(config: LayerConfig) -> str:
  return type(config).__name__


def _check_choices(config: LayerConfig) -> None:
  for field, choices, advice in (
      (
          'remat_policy', REMAT_POLICIES,
          "'none' is fastest, 'full' takes the least memory",
      ),
      ('positions', POSITIONS, "'relative_bias' is T5's"),
      ('norm', NORMS, "'rms' is T5's"),
      ('embedding_scale', EMBEDDING_SCALES, "'logits' is T5's"),
      ('attention_bias', ATTENTION_BIASES, "'none' is T5's"),
      (
          'attention_implementation', attention_choice.IMPLEMENTATIONS,
          "'auto' takes the fastest that serves a layer",
      ),
  ):  # fmt: skip
    value = getattr(config, field)
    if value not in choices:
      raise ValueError(
          f'{_name(config)}.{field} is {value!r}, expected one of {choices}: '
          f'{advice}'
      )


def _check_numbers(config: LayerConfig) -> None:
  if not 0.0 <= config.dropout_rate < 1.0:
    raise ValueError(
        f'{_name(config)}.dropout_rate is {config.dropout_rate!r}, expected a '
        'probability to drop in [0, 1): set DROPOUT_RATE, 0.0 for none'
    )
  if config.relative_bias_init_scale < 0.0:
    raise ValueError(
        f'{_name(config)}.relative_bias_init_scale is '
        f'{config.relative_bias_init_scale!r}, expected a factor of at least '
        '0: leave it at 1.0 for the biases of T5'
    )
  sizes = ['vocab_size', 'emb_dim', 'num_heads', 'head_dim', 'mlp_dim']
  if isinstance(config, TransformerConfig):
    sizes.append('num_layers')
  for name in sizes:
    size = getattr(config, name)
    if size < 1:
      raise ValueError(
          f'{_name(config)}.{name} is {size!r}, expected at least 1: correct '
          'it in the model gin file'
      )
  for name in (
      'norm_epsilon', 'rotary_wavelength', 'attention_softcap',
      'logits_softcap', 'rotary_factor', 'rotary_original_length',
      'query_pre_attn_scalar', 'local_rotary_wavelength',
  ):  # fmt: skip
    value = getattr(config, name, None)
    if value is not None and value <= 0.0:
      raise ValueError(
          f'{_name(config)}.{name} is {value!r}, expected a number above 0'
          f'{_or_none(name)}: correct it '
          'in the model gin file'
      )


def _or_none(name: str) -> str:
  if name in ('norm_epsilon', 'rotary_wavelength', 'rotary_factor'):
    return ''
  return ', or None for no cap' if 'softcap' in name else ', or None'


def _check_pattern(config: TransformerConfig) -> None:
  pattern, window = config.layer_pattern, config.local_window
  if isinstance(pattern, str) or not pattern or set(pattern) - set(LAYER_KINDS):
    raise ValueError(
        f'{_name(config)}.layer_pattern is {pattern!r}, expected a sequence of '
        f"{LAYER_KINDS}: ('global',) lets every layer look as far as it likes"
    )
  if 'local' in pattern and (window is None or window < 1):
    raise ValueError(
        f'{_name(config)}.local_window is {window!r} and layer_pattern is '
        f'{pattern!r}, expected how far its local layers look, at least 1: set '
        "local_window, or layer_pattern to ('global',)"
    )


def _check_heads(config: LayerConfig) -> None:
  kv_heads = config.num_kv_heads
  if kv_heads is not None and (kv_heads < 1 or config.num_heads % kv_heads):
    raise ValueError(
        f'{_name(config)}.num_kv_heads is {kv_heads!r}, expected a divisor of '
        f'num_heads = {config.num_heads}: each head of keys serves as many '
        'heads of queries; None gives every one its own'
    )
  if config.positions == 'rotary' and config.head_dim % 2:
    raise ValueError(
        f'{_name(config)}.head_dim is {config.head_dim!r}, expected an even '
        "number for positions = 'rotary', which turns pairs of features: make "
        'it even, or choose other positions'
    )
  low, high = config.rotary_turns
  if not 0.0 < low < high:
    raise ValueError(
        f'{_name(config)}.rotary_turns is {config.rotary_turns!r}, expected '
        'two numbers above 0, the smaller first: (1.0, 4.0) is Llama 3.1\'s'
    )
  if getattr(config, 'like_attends_to_like', False) and (
      kv_heads not in (None, config.num_heads)
  ):
    raise ValueError(
        f'{_name(config)}.like_attends_to_like is True with num_kv_heads = '
        f'{kv_heads!r}, expected as many heads of keys as of queries, '
        f'{config.num_heads}: their initial kernels are one; set one of the '
        'two otherwise'
    )
