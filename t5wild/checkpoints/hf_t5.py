# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""config.json of Hugging Face's T5 kinds, and the values of our network.

T5 1.0 and 1.1, mT5, byT5, Flan-T5 and UL2 are of `model_type` t5 or mt5, and
umT5 of its own; a network is a dict of the values of `T5Config` by which they
differ.
"""

from collections.abc import Mapping
from typing import Any

from t5wild.checkpoint_files import steps

Config = Mapping[str, Any]
Network = dict[str, Any]

FAMILIES = ('t5', 'mt5', 'umt5')
_CLASSES = {'t5': 'T5', 'mt5': 'MT5', 'umt5': 'UMT5'}
_SIZES = {
    'vocab_size': 'vocab_size',
    'emb_dim': 'd_model',
    'head_dim': 'd_kv',
    'mlp_dim': 'd_ff',
    'num_heads': 'num_heads',
    'num_encoder_layers': 'num_layers',
}
MOST_LAYERS = 10_000  # More would be a file that is made to harm.
MOST_SIZE = 2**31 - 1
_NUM_BUCKETS = 32
_BUCKETS = {
    'relative_attention_num_buckets': _NUM_BUCKETS,
    'relative_attention_max_distance': 128,
}
# Of a network of ours that transformers has; other values it has not.
_PLAIN = {
    'norm': 'rms', 'scale_queries': False, 'scale_attn_logits': False,
    'normalize_heads': False, 'attention_softcap': None, 'logits_softcap': None,
    'attention_bias': 'none', 'mlp_bias': False,
}  # fmt: skip


def architecture(family: str) -> str:
  """The class of transformers that a family is loaded by."""
  return f'{_CLASSES[family]}ForConditionalGeneration'


def scales_outputs(config: Config) -> bool:
  """Whether the decoder's outputs are divided by sqrt(d_model): T5 1.0."""
  if config['model_type'] == 'mt5':  # It never does, whatever is told.
    return False
  tied = config.get('tie_word_embeddings', True) is not False
  return bool(config.get('scale_decoder_outputs', tied))


def read_config(config: Config, *, where: str) -> Network:
  """Returns the values of `T5Config` that give the same network.

  Args:
    config: A config.json, of one of `FAMILIES`.
    where: Its folder, for errors.

  Raises:
    steps.NotACheckpointError: It lacks a size, or asks for what our networks
      do not have.
  """
  for name, ours in _BUCKETS.items():
    if config.get(name, ours) != ours:
      raise steps.NotACheckpointError(
          f'{where}: {name} is {config[name]!r} in config.json, expected '
          f'{ours}, as our networks have it: take another model'
      )
  sizes = {ours: _size(config, name, where) for ours, name in _SIZES.items()}
  if config.get('num_decoder_layers') is None:
    sizes['num_decoder_layers'] = sizes['num_encoder_layers']
  else:
    sizes['num_decoder_layers'] = _size(config, 'num_decoder_layers', where)
  per_layer = config['model_type'] == 'umt5'
  default = 'relu' if config['model_type'] == 't5' else 'gated-gelu'
  return sizes | {
      'mlp_activations': _activations(
          config.get('feed_forward_proj', default), where
      ),
      'logits_via_embedding': scales_outputs(config),
      'positions': 'relative_bias_per_layer' if per_layer else 'relative_bias',
      'norm_epsilon': float(config.get('layer_norm_epsilon', 1e-6)),
  }


def _size(config: Config, name: str, where: str) -> int:
  size = config.get(name)
  most = MOST_LAYERS if 'layers' in name else MOST_SIZE
  if type(size) is int and 0 < size <= most:
    return size
  raise steps.NotACheckpointError(
      f'{where}: {name} is {size!r} in config.json, expected a number from 1 '
      f'to {most}: copy config.json of the same model again'
  )


def _activations(projection: Any, where: str) -> tuple[str, ...]:
  gate, _, name = str(projection).rpartition('-')
  ours = {
      'relu': 'relu', 'silu': 'silu', 'swish': 'silu', 'gelu_new': 'gelu',
      'gelu_pytorch_tanh': 'gelu',
  }.get(name)  # fmt: skip
  if projection == 'gated-gelu':  # transformers means the approximation.
    ours = 'gelu'
  if ours is None or gate not in ('', 'gated'):
    raise steps.NotACheckpointError(
        f'{where}: feed_forward_proj is {projection!r} in config.json, '
        "expected one such as 'relu', 'gated-gelu' or 'gated-silu': our "
        'networks have no other; take another model'
    )
  return (ours, 'linear') if gate else (ours,)


def shape_of(key: str, network: Mapping[str, Any]) -> tuple[int, ...]:
  """Returns the shape of a parameter of plain layers, by our key."""
  embed, mlp = network['emb_dim'], network['mlp_dim']
  joined = network['num_heads'] * network['head_dim']
  ends = {
      'scale': (embed,),
      'token_embedder/embedding': (network['vocab_size'], embed),
      'logits_dense/kernel': (embed, network['vocab_size']),
      'rel_embedding': (network['num_heads'], _NUM_BUCKETS),
      'out/kernel': (joined, embed),
      'mlp/wo/kernel': (mlp, embed),
      'mlp/wi/kernel': (embed, mlp),
      'mlp/wi_0/kernel': (embed, mlp),
      'mlp/wi_1/kernel': (embed, mlp),
      'kernel': (embed, joined),  # Queries, keys and values.
  }
  return next(shape for end, shape in ends.items() if key.endswith(end))


def check_network(network: Mapping[str, Any]) -> None:
  """Refuses a network of ours that transformers has not.

  Args:
    network: Values of `T5Config`; those that are not there are T5's.

  Raises:
    ValueError: Names the values.
  """
  wrong = {
      name: network[name]
      for name, plain in _PLAIN.items()
      if network.get(name, plain) != plain
  }
  if not str(network.get('positions', 'relative_bias')).startswith('relative'):
    wrong['positions'] = network['positions']
  heads = network.get('num_heads')
  if network.get('num_kv_heads') not in (None, heads):
    wrong['num_kv_heads'] = network['num_kv_heads']
  tied = network.get('logits_via_embedding', False)
  scale = network.get('embedding_scale', 'logits')
  if scale == 'inputs' or (tied and scale != 'logits'):
    wrong['embedding_scale'] = scale
  if wrong:
    raise ValueError(
        f'no T5 of transformers has {wrong}, expected the values of T5, '
        f'{ {name: _PLAIN.get(name) for name in wrong} }: '
        'set these in the network and train it so, to write it for transformers'
    )


def make_config(
    network: Mapping[str, Any], *, family: str | None = None
) -> dict[str, Any]:
  """Returns a config.json for a network, without tokens.

  Args:
    network: What `read_config` returns.
    family: One of `FAMILIES`; None: umt5 where each layer has its own relative
      bias, else t5.

  Raises:
    ValueError: The family has another network.
  """
  check_network(network)
  per_layer = network['positions'] == 'relative_bias_per_layer'
  if family is None:
    family = 'umt5' if per_layer else 't5'
  if (family == 'umt5') != per_layer:
    raise ValueError(
        f'family is {family!r} and positions are {network["positions"]!r}, '
        "expected 'umt5' for 'relative_bias_per_layer' and no other: leave "
        '--family out'
    )
  if family == 'mt5' and network['logits_via_embedding']:
    raise ValueError(
        f'family is {family!r} and the output is scored by the embedding, '
        'expected a layer of its own, as transformers has for mT5: take t5'
    )
  return {name: network[ours] for ours, name in _SIZES.items()} | _BUCKETS | {
      'architectures': [architecture(family)],
      'model_type': family,
      'is_encoder_decoder': True,
      'num_decoder_layers': network['num_decoder_layers'],
      'feed_forward_proj': _projection(network['mlp_activations']),
      'layer_norm_epsilon': network['norm_epsilon'],
      # Whether outputs are divided by sqrt(d_model) and scored by the table.
      'tie_word_embeddings': network['logits_via_embedding'],
      'dropout_rate': 0.1,
      'use_cache': True,
  }  # fmt: skip


def _projection(activations: Any) -> str:
  names = {'relu': 'relu', 'silu': 'silu', 'swish': 'silu', 'gelu': 'gelu_new'}
  activations = tuple(activations)
  ours, *gates = activations
  if ours not in names or gates not in ([], ['linear']):
    raise ValueError(
        f'mlp_activations is {activations!r}, expected one of {sorted(names)}, '
        "alone or with 'linear' after it, as transformers has for T5: it "
        'cannot be written for transformers'
    )
  if not gates:
    return names[ours]
  return 'gated-gelu' if ours == 'gelu' else f'gated-{names[ours]}'
