# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's names of parameters, and ours; both ways by one table.

T5 1.0 and 1.1, mT5, byT5, Flan-T5 and UL2 (T5ForConditionalGeneration and
MT5ForConditionalGeneration) and umT5: they differ in sizes, in whether the
feed-forward block is gated, whether the output is a layer of its own, and in
whether each layer has its own relative bias. Decoders alone have one name for
each part, whichever family they are of.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import re
from typing import Any

_MATRICES = {'q': 'query', 'k': 'key', 'v': 'value', 'o': 'out'}
_GATED = {'gate': 'wi_0', 'up': 'wi_1', 'down': 'wo'}
BIAS = 'SelfAttention.relative_attention_bias.weight'
EMBEDDING = 'shared.weight'
LOGITS = 'lm_head.weight'
LOGITS_KEY = 'target/decoder/logits_dense/kernel'
# The same array under other names.
COPIES = ('encoder.embed_tokens.weight', 'decoder.embed_tokens.weight')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
  """What decides about the names.

  Attributes:
    num_encoder_layers: Number of encoder layers.
    num_decoder_layers: Number of decoder layers.
    is_gated: Whether the feed-forward block multiplies two products.
    has_logits: Whether the output is a layer of its own.
    bias_per_layer: Whether each layer has a relative bias of its own.
  """

  num_encoder_layers: int
  num_decoder_layers: int
  is_gated: bool
  has_logits: bool
  bias_per_layer: bool

  @classmethod
  def of_network(cls, network: Mapping[str, Any]) -> 'Shape':
    """Reads it off what `hf_t5.read_config` returns."""
    return cls(
        num_encoder_layers=network['num_encoder_layers'],
        num_decoder_layers=network['num_decoder_layers'],
        is_gated=len(network['mlp_activations']) > 1,
        has_logits=not network['logits_via_embedding'],
        bias_per_layer=network['positions'] == 'relative_bias_per_layer',
    )

  @classmethod
  def of_ours(cls, keys: Iterable[str]) -> 'Shape':
    """Reads it off our keys; layers are plain."""
    keys = set(keys)
    return cls(
        num_encoder_layers=_count(keys, r'target/encoder/layers_(\d+)/.*'),
        num_decoder_layers=_count(keys, r'target/decoder/layers_(\d+)/.*'),
        is_gated=any('/mlp/wi_0/' in key for key in keys),
        has_logits=LOGITS_KEY in keys,
        bias_per_layer=any('/layers_0/relpos_bias/' in key for key in keys),
    )


def _count(names: Iterable[str], pattern: str) -> int:
  matches = (re.fullmatch(pattern, name) for name in names)
  return 1 + max((int(match[1]) for match in matches if match), default=-1)


@dataclasses.dataclass(frozen=True)
class Pair:
  """One parameter.

  Attributes:
    theirs: Hugging Face's name.
    ours: Our key.
    is_transposed: Whether the matrix lies the other way round.
    shape: Theirs; None: not known.
  """

  theirs: str
  ours: str
  is_transposed: bool = False
  shape: tuple[int, ...] | None = None


def pairs(shape: Shape) -> Iterator[Pair]:
  """Yields all parameters of a network."""
  yield Pair(EMBEDDING, 'target/token_embedder/embedding')
  if shape.has_logits:
    yield Pair(LOGITS, LOGITS_KEY, is_transposed=True)
  yield from _tower('encoder', shape.num_encoder_layers, shape)
  yield from _tower('decoder', shape.num_decoder_layers, shape)


def _tower(tower: str, num_layers: int, shape: Shape) -> Iterator[Pair]:
  ours = f'target/{tower}'
  yield Pair(
      f'{tower}.final_layer_norm.weight', f'{ours}/{tower}_norm/scale'
  )
  if not shape.bias_per_layer:
    yield Pair(
        f'{tower}.block.0.layer.0.{BIAS}',
        f'{ours}/relpos_bias/rel_embedding',
        is_transposed=True,
    )
  for number in range(num_layers):
    yield from _layer(
        tower, f'{tower}.block.{number}.layer', f'{ours}/layers_{number}', shape
    )


def _layer(tower: str, theirs: str, ours: str, shape: Shape) -> Iterator[Pair]:
  is_decoder = tower == 'decoder'
  own = 'self_attention' if is_decoder else 'attention'
  yield from _attention(f'{theirs}.0.SelfAttention', f'{ours}/{own}')
  yield Pair(
      f'{theirs}.0.layer_norm.weight', f'{ours}/pre_{own}_layer_norm/scale'
  )
  if shape.bias_per_layer:
    yield Pair(
        f'{theirs}.0.{BIAS}',
        f'{ours}/relpos_bias/rel_embedding',
        is_transposed=True,
    )
  if is_decoder:
    yield from _attention(
        f'{theirs}.1.EncDecAttention', f'{ours}/encoder_decoder_attention'
    )
    yield Pair(
        f'{theirs}.1.layer_norm.weight',
        f'{ours}/pre_cross_attention_layer_norm/scale',
    )
  last = 2 if is_decoder else 1
  for name in ('wi_0', 'wi_1', 'wo') if shape.is_gated else ('wi', 'wo'):
    yield Pair(
        f'{theirs}.{last}.DenseReluDense.{name}.weight',
        f'{ours}/mlp/{name}/kernel',
        is_transposed=True,
    )
  yield Pair(
      f'{theirs}.{last}.layer_norm.weight', f'{ours}/pre_mlp_layer_norm/scale'
  )


def _attention(theirs: str, ours: str) -> Iterator[Pair]:
  for letter, name in _MATRICES.items():
    yield Pair(
        f'{theirs}.{letter}.weight', f'{ours}/{name}/kernel', is_transposed=True
    )


def decoder_pairs(network: Mapping[str, Any]) -> Iterator[Pair]:
  """Yields all parameters of a decoder alone.

  Args:
    network: What `hf_decoders.read_config` returns.
  """
  ours, embed = 'target/decoder', network['emb_dim']
  table = (network['vocab_size'], embed)
  yield Pair(
      'model.embed_tokens.weight', f'{ours}/token_embedder/embedding',
      shape=table,
  )  # fmt: skip
  yield Pair('model.norm.weight', f'{ours}/decoder_norm/scale', shape=(embed,))
  if not network['logits_via_embedding']:
    yield Pair(LOGITS, LOGITS_KEY, is_transposed=True, shape=table)
  for number in range(network['num_layers']):
    theirs, layer = f'model.layers.{number}', f'{ours}/layers_{number}'
    for name, our_name in _norms(network).items():
      yield Pair(
          f'{theirs}.{name}.weight', f'{layer}/{our_name}/scale', shape=(embed,)
      )
    yield from _decoder_attention(
        f'{theirs}.self_attn', f'{layer}/self_attention', network
    )
    for name, our_name in _GATED.items():
      shape = (network['mlp_dim'], embed)
      yield from _dense(
          f'{theirs}.mlp.{name}_proj', f'{layer}/mlp/{our_name}',
          shape=shape[::-1] if name == 'down' else shape,
          has_bias=network['mlp_bias'],
      )  # fmt: skip


def _norms(network: Mapping[str, Any]) -> dict[str, str]:
  """A layer's norms of the whole embedding: theirs, and ours."""
  first = {'input_layernorm': 'pre_self_attention_layer_norm'}
  if not network['post_norms']:
    return first | {'post_attention_layernorm': 'pre_mlp_layer_norm'}
  return first | {
      'post_attention_layernorm': 'post_self_attention_layer_norm',
      'pre_feedforward_layernorm': 'pre_mlp_layer_norm',
      'post_feedforward_layernorm': 'post_mlp_layer_norm',
  }


def _decoder_attention(
    theirs: str, ours: str, network: Mapping[str, Any]
) -> Iterator[Pair]:
  embed, size = network['emb_dim'], network['head_dim']
  for letter, name in _MATRICES.items():
    heads = network['num_kv_heads' if letter in 'kv' else 'num_heads']
    shape = (heads * size, embed)
    yield from _dense(
        f'{theirs}.{letter}_proj', f'{ours}/{name}',
        shape=shape[::-1] if letter == 'o' else shape,
        has_bias=network['attention_bias'] == 'all'
        or (network['attention_bias'] == 'inputs' and letter != 'o'),
    )  # fmt: skip
  for letter in 'qk' if network['normalize_heads'] else '':
    yield Pair(
        f'{theirs}.{letter}_norm.weight',
        f'{ours}/{_MATRICES[letter]}_norm/scale',
        shape=(size,),
    )


def _dense(
    theirs: str, ours: str, *, shape: tuple[int, int], has_bias: bool
) -> Iterator[Pair]:
  yield Pair(
      f'{theirs}.weight', f'{ours}/kernel', is_transposed=True, shape=shape
  )
  if has_bias:
    yield Pair(f'{theirs}.bias', f'{ours}/bias', shape=shape[:1])
