# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's names of parameters, and ours; both ways by one table.

T5 1.0 and 1.1, mT5, byT5, Flan-T5 and UL2 (T5ForConditionalGeneration and
MT5ForConditionalGeneration) and umT5: they differ in sizes, in whether the
feed-forward block is gated, whether the output is a layer of its own, and in
whether each layer has its own relative bias. Of decoders alone, Llama and
Gemma.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import re

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
  def of_theirs(cls, names: Iterable[str]) -> 'Shape':
    """Reads it off Hugging Face's names."""
    names = set(names)
    return cls(
        num_encoder_layers=_count(names, r'encoder\.block\.(\d+)\..*'),
        num_decoder_layers=_count(names, r'decoder\.block\.(\d+)\..*'),
        is_gated=any('DenseReluDense.wi_0' in name for name in names),
        has_logits=LOGITS in names,
        bias_per_layer=f'encoder.block.1.layer.0.{BIAS}' in names,
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
  """

  theirs: str
  ours: str
  is_transposed: bool = False


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


def decoder_pairs(num_layers: int, *, has_logits: bool) -> Iterator[Pair]:
  """Yields all parameters of a decoder alone, as Llama and Gemma have them."""
  ours = 'target/decoder'
  yield Pair('model.embed_tokens.weight', f'{ours}/token_embedder/embedding')
  yield Pair('model.norm.weight', f'{ours}/decoder_norm/scale')
  if has_logits:
    yield Pair(LOGITS, LOGITS_KEY, is_transposed=True)
  for number in range(num_layers):
    layer, our_layer = f'model.layers.{number}', f'{ours}/layers_{number}'
    yield Pair(
        f'{layer}.input_layernorm.weight',
        f'{our_layer}/pre_self_attention_layer_norm/scale',
    )
    yield Pair(
        f'{layer}.post_attention_layernorm.weight',
        f'{our_layer}/pre_mlp_layer_norm/scale',
    )
    for letter, name in _MATRICES.items():
      yield Pair(
          f'{layer}.self_attn.{letter}_proj.weight',
          f'{our_layer}/self_attention/{name}/kernel',
          is_transposed=True,
      )
    for theirs, name in _GATED.items():
      yield Pair(
          f'{layer}.mlp.{theirs}_proj.weight',
          f'{our_layer}/mlp/{name}/kernel',
          is_transposed=True,
      )


def num_decoder_layers(names: Iterable[str]) -> int:
  """Returns the number of layers of a decoder alone, by its names."""
  return _count(names, r'model\.layers\.(\d+)\..*')
