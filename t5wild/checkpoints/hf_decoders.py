# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""config.json of Hugging Face's decoders, and the values of our network.

A network is a dict of the values of `TransformerConfig` by which decoders of
`transformers` differ. Both ways go by one description, and a network is written
as the family in whose config.json it can be read again.
"""

from collections.abc import Iterable, Mapping, Sequence
import itertools
from typing import Any

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import hf_rotary
from t5wild.checkpoints import hf_t5

Config = Mapping[str, Any]
Network = dict[str, Any]

_GEMMA = {
    'norm': 'rms_from_one', 'embedding_scale': 'inputs', 'activation': 'gelu',
    'head_dim': 256, 'tie_word_embeddings': True,
}  # fmt: skip
_GEMMA_2 = _GEMMA | {'post_norms': True, 'act_key': 'hidden_activation'}
# What is told by the family alone, and what holds where config.json is silent.
_FAMILIES: dict[str, dict[str, Any]] = {
    'llama': {},
    'mistral': {'kv_heads': 8, 'window': 4096},
    'qwen2': {'attention_bias': 'inputs', 'window': 4096},
    'qwen3': {'normalize_heads': True, 'head_dim': 128, 'window': 4096},
    'gemma': _GEMMA,
    'gemma2': _GEMMA_2 | {
        'kv_heads': 4, 'window': 4096, 'query_pre_attn_scalar': 256.0,
        'attn_logit_softcapping': 50.0, 'final_logit_softcapping': 30.0,
    },
    'gemma3_text': _GEMMA_2 | {
        'kv_heads': 4, 'window': 4096, 'query_pre_attn_scalar': 256.0,
        'normalize_heads': True,
    },
}  # fmt: skip
FAMILIES = tuple(_FAMILIES)
_CLASSES = {
    'llama': 'Llama', 'mistral': 'Mistral', 'qwen2': 'Qwen2', 'qwen3': 'Qwen3',
    'gemma': 'Gemma', 'gemma2': 'Gemma2', 'gemma3_text': 'Gemma3',
}  # fmt: skip
# Theirs: transformers' names of functions of flax.linen.
_ACTIVATIONS = {
    'silu': 'silu', 'swish': 'silu', 'relu': 'relu', 'gelu_new': 'gelu',
    'gelu_pytorch_tanh': 'gelu', 'gelu_fast': 'gelu',
}  # fmt: skip
_KINDS = {'sliding_attention': 'local', 'full_attention': 'global'}
_SIZES = {
    'vocab_size': 'vocab_size',
    'emb_dim': 'hidden_size',
    'mlp_dim': 'intermediate_size',
    'num_layers': 'num_hidden_layers',
    'num_heads': 'num_attention_heads',
}
# Values of other networks, none of which transformers has.
_FIXED = {
    'positions': 'rotary', 'scale_queries': True, 'parallel_blocks': False,
}  # fmt: skip


def read_config(config: Config, *, where: str) -> Network:
  """Returns the values of `TransformerConfig` that give the same network.

  Args:
    config: A config.json, of one of `FAMILIES`.
    where: Its folder, for errors.

  Raises:
    steps.NotACheckpointError: It lacks a size, or asks for what our networks
      do not have.
  """
  family = config['model_type']
  own = _FAMILIES[family]
  sizes = {ours: _size(config, name, where) for ours, name in _SIZES.items()}
  _refuse_unknown(config, where)
  head_dim = config.get('head_dim') or own.get('head_dim')
  tied = config.get('tie_word_embeddings')
  network = sizes | _FIXED | {
      'num_kv_heads': config.get('num_key_value_heads')
      or own.get('kv_heads', sizes['num_heads']),
      'head_dim': head_dim or sizes['emb_dim'] // sizes['num_heads'],
      'mlp_activations': (_activation(config, own, where), 'linear'),
      'logits_via_embedding': own.get('tie_word_embeddings', False)
      if tied is None
      else bool(tied),
      'embedding_scale': own.get('embedding_scale', 'none'),
      'norm': own.get('norm', 'rms'),
      'norm_epsilon': float(config.get('rms_norm_eps', 1e-6)),
      'post_norms': own.get('post_norms', False),
      'normalize_heads': own.get('normalize_heads', False),
      'attention_bias': own.get(
          'attention_bias', 'all' if config.get('attention_bias') else 'none'
      ),
      'mlp_bias': bool(config.get('mlp_bias', False)),
      **_caps(config, own),
      **_windows(config, own, sizes['num_layers'], where),
      **hf_rotary.read_config(config, where=where),
  }  # fmt: skip
  return canonical(network)


def architecture(family: str) -> str:
  """The class of transformers that a family is loaded by."""
  return f'{_CLASSES[family]}ForCausalLM'


def _size(config: Config, name: str, where: str) -> int:
  size = config.get(name)
  most = hf_t5.MOST_LAYERS if 'layers' in name else hf_t5.MOST_SIZE
  if type(size) is int and 0 < size <= most:
    return size
  raise steps.NotACheckpointError(
      f'{where}: {name} is {size!r} in config.json, expected a number from 1 '
      f'to {most}: copy config.json of the same model again'
  )


def _refuse_unknown(config: Config, where: str) -> None:
  """Refuses switches that change the numbers and that we do not have."""
  for name, plain in (
      ('use_bidirectional_attention', (None, False)),
      ('partial_rotary_factor', (None, 1.0, 1)),
  ):
    if config.get(name) not in plain:
      raise steps.NotACheckpointError(
          f'{where}: {name} is {config[name]!r} in config.json, expected '
          f'{plain[-1]!r}, as our networks have it: take another model'
      )


def _activation(config: Config, own: Mapping[str, Any], where: str) -> str:
  name = config.get('hidden_activation') or config.get('hidden_act')
  if name == 'gelu' and own.get('activation') == 'gelu':
    return 'gelu'  # Gemma's first files, which mean the approximation.
  ours = _ACTIVATIONS.get(name) if name else own.get('activation', 'silu')
  if ours is None:
    raise steps.NotACheckpointError(
        f'{where} has the activation {name!r}, expected one of '
        f'{sorted(_ACTIVATIONS)}: our networks have no other; take another '
        'model'
    )
  return ours


def _caps(config: Config, own: Mapping[str, Any]) -> Network:
  caps = {}
  for ours, name in (
      ('attention_softcap', 'attn_logit_softcapping'),
      ('logits_softcap', 'final_logit_softcapping'),
      ('query_pre_attn_scalar', 'query_pre_attn_scalar'),
  ):
    # Families without it ignore it.
    has = config['model_type'] in ('gemma2', 'gemma3_text')
    value = config.get(name, own.get(name)) if has else None
    caps[ours] = None if value is None else float(value)
  return caps


def _windows(
    config: Config, own: Mapping[str, Any], num_layers: int, where: str
) -> Network:
  family, window = config['model_type'], None
  if 'window' in own:
    window = config.get('sliding_window', own['window'])
  if family.startswith('qwen') and not config.get('use_sliding_window'):
    window = None
  if window is None:
    return {'layer_pattern': ('global',), 'local_window': None}
  if family == 'mistral':
    kinds = ['local']
  else:
    kinds = _kinds(config, num_layers, where)
  return {'layer_pattern': shortest_pattern(kinds), 'local_window': window}


def _kinds(config: Config, num_layers: int, where: str) -> list[str]:
  told = config.get('layer_types')
  if told is None:
    return [_default_kind(config, number) for number in range(num_layers)]
  unknown = set(told) - _KINDS.keys()
  if unknown or len(told) != num_layers:
    raise steps.NotACheckpointError(
        f'{where} has {len(told)} layer_types of {sorted(set(told))} in '
        f'config.json, expected {num_layers} of {sorted(_KINDS)}: our networks '
        'have no other layers; take another model'
    )
  return [_KINDS[kind] for kind in told]


def _default_kind(config: Config, number: int) -> str:
  """A layer's kind in files that say how they alternate, or nothing."""
  if config['model_type'].startswith('qwen'):
    is_local = number >= config.get('max_window_layers', 28)
  else:
    period = 2 if config['model_type'] == 'gemma2' else 6
    period = config.get('sliding_window_pattern') or config.get(
        '_sliding_window_pattern', period
    )
    is_local = (number + 1) % period != 0
  return 'local' if is_local else 'global'


def shortest_pattern(kinds: Sequence[str]) -> tuple[str, ...]:
  """The shortest beginning that, over and again, gives all."""
  return next(
      tuple(kinds[:length])
      for length in range(1, len(kinds) + 1)
      if all(kind == kinds[i % length] for i, kind in enumerate(kinds))
  )


def layer_kinds(network: Mapping[str, Any]) -> list[str]:
  """The kind of every layer of a network."""
  return list(
      itertools.islice(
          itertools.cycle(network['layer_pattern']), network['num_layers']
      )
  )


def canonical(network: Mapping[str, Any]) -> Network:
  """The same network in one way of saying it; sets nothing but values."""
  made = dict(network)
  made['num_kv_heads'] = made['num_kv_heads'] or made['num_heads']
  made['mlp_activations'] = tuple(
      'silu' if name == 'swish' else name for name in made['mlp_activations']
  )
  if made['embedding_scale'] == 'logits' and not made['logits_via_embedding']:
    made['embedding_scale'] = 'none'  # A layer of its own is not divided.
  scalar = made['query_pre_attn_scalar']
  made['query_pre_attn_scalar'] = float(scalar or made['head_dim'])
  made['layer_pattern'] = shortest_pattern(layer_kinds(made))
  if 'local' not in made['layer_pattern']:
    made |= {'local_window': None, 'local_rotary_wavelength': None}
  return made | hf_rotary.canonical(made)


def make_config(
    network: Mapping[str, Any], *, family: str | None = None
) -> dict[str, Any]:
  """Returns a config.json for a network, without tokens.

  Args:
    network: Values of `TransformerConfig`; others than those here are left out.
    family: One of `FAMILIES`; None: the first that has the network.

  Raises:
    ValueError: The family, or no family, has this network; names the values
      that differ.
  """
  wanted = canonical(network)
  differing = {}
  for name in FAMILIES if family is None else (family,):
    config = _config_of(wanted, name)
    read = read_config(config, where=name)
    differing[name] = [k for k in read if read[k] != wanted[k]]
    if not differing[name]:
      return config
  nearest = min(differing, key=lambda name: len(differing[name]))
  read = read_config(_config_of(wanted, nearest), where=nearest)
  lines = '\n'.join(
      f'  {k} = {wanted[k]!r}, in {nearest}: {read[k]!r}'
      for k in differing[nearest]
  )
  raise ValueError(
      f'no network of transformers is this one, expected one of '
      f'{list(differing)}; the nearest, {nearest}, differs in\n{lines}\nset '
      'these in the network and train it so, to write it for transformers'
  )


def _config_of(network: Mapping[str, Any], family: str) -> dict[str, Any]:
  """The config.json of a family that comes nearest."""
  own = _FAMILIES[family]
  ours = network['mlp_activations'][0]
  theirs = {'gelu': 'gelu_pytorch_tanh'}.get(ours, ours)
  if theirs not in _ACTIVATIONS:
    theirs = 'silu'
  config = {name: network[ours] for ours, name in _SIZES.items()} | {
      'architectures': [architecture(family)],
      'model_type': family,
      'num_key_value_heads': network['num_kv_heads'],
      'head_dim': network['head_dim'],
      own.get('act_key', 'hidden_act'): theirs,
      'tie_word_embeddings': network['logits_via_embedding'],
      'rms_norm_eps': network['norm_epsilon'],
      'attention_dropout': 0.0,
      'use_cache': True,
      **hf_rotary.make_config(network, has_local=family == 'gemma3_text'),
      **_windows_of(network, family),
  }
  if 'attention_bias' not in own and family != 'mistral':
    config['attention_bias'] = network['attention_bias'] == 'all'
  if family == 'llama':
    config['mlp_bias'] = network['mlp_bias']
  if 'query_pre_attn_scalar' in own:
    scalar = network['query_pre_attn_scalar']
    config |= {
        'query_pre_attn_scalar': int(scalar) if scalar % 1 == 0 else scalar,
        'attn_logit_softcapping': network['attention_softcap'],
        'final_logit_softcapping': network['logits_softcap'],
    }
  return config


def _windows_of(network: Mapping[str, Any], family: str) -> dict[str, Any]:
  own, kinds = _FAMILIES[family], layer_kinds(network)
  if 'window' not in own:
    return {}
  window = network['local_window']
  if family == 'mistral':
    return {'sliding_window': window}
  theirs = {ours: name for name, ours in _KINDS.items()}
  config = {
      'layer_types': [theirs[kind] for kind in kinds],
      # transformers' Gemmas want a number, whether a layer uses it or not.
      'sliding_window': window if window or 'qwen' in family else own['window'],
  }
  if family.startswith('qwen'):
    config['use_sliding_window'] = window is not None
    config['max_window_layers'] = _first_local(kinds)
  return config


def _first_local(kinds: Iterable[str]) -> int:
  """How many layers come before a local one."""
  return len(list(itertools.takewhile(lambda kind: kind == 'global', kinds)))
