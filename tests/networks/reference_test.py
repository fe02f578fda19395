# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Each architecture gives the logits of its formulas, written out in numpy.

The formulas are float64, one position of one head at a time, and share nothing
with the network: rotations are products of complex numbers, heads of keys are
looked up, not grouped.
"""

import numpy as np
import pytest

from tests.networks import decoders


def _normalize(x, config, params):
  if config.norm.startswith('rms'):
    scale = params['scale'] + (config.norm == 'rms_from_one')
    return x / np.sqrt((x**2).mean() + config.norm_epsilon) * scale
  x = (x - x.mean()) / np.sqrt(x.var() + config.norm_epsilon)
  return x * params['scale'] + params.get('bias', 0.0)


def _cap(x, cap):
  return x if cap is None else cap * np.tanh(x / cap)


def _wavelengths(half, config, kind):
  """Of each pair, in positions."""
  is_local = kind == 'local' and config.local_rotary_wavelength is not None
  base = (
      config.local_rotary_wavelength if is_local else config.rotary_wavelength
  )
  length = 2.0 * np.pi * base ** (np.arange(half) / half)
  if is_local:
    return length
  slowed = length * config.rotary_factor
  original = config.rotary_original_length
  if original is None:
    return slowed
  low, high = config.rotary_turns
  smooth = (original / length - low) / (high - low)
  between = 1.0 / ((1.0 - smooth) / slowed + smooth / length)
  return np.where(
      length > original / low,
      slowed,
      np.where(length < original / high, length, between),
  )


def _rotate(x, position, config, kind):
  half = x.size // 2
  pairs = x[:half] + 1j * x[half:]
  turned = pairs * np.exp(
      2j * np.pi * position / _wavelengths(half, config, kind)
  )
  return np.concatenate([turned.real, turned.imag])


def _head(config, params, x, *, name, number, position, kind):
  """Query, key or value of one head at one position."""
  size = config.head_dim
  of_head = slice(number * size, (number + 1) * size)
  x = x @ params[name]['kernel'][:, of_head]
  if config.attention_bias != 'none':
    x = x + params[name]['bias'][of_head]
  if name == 'value':
    return x
  if config.normalize_heads:
    scale = params[f'{name}_norm']['scale'] + (config.norm == 'rms_from_one')
    x = x / np.sqrt((x**2).mean() + config.norm_epsilon) * scale
  if config.positions == 'rotary':
    x = _rotate(x, position, config, kind)
  if name == 'query' and config.scale_queries:
    x = x / np.sqrt(config.query_pre_attn_scalar or size)
  return x


def _attend(config, params, x, position, kind):
  """Self-attention of one position of [length, embed], causal."""
  share = config.num_heads // (config.num_kv_heads or config.num_heads)
  heads = []
  for head in range(config.num_heads):
    query = _head(
        config, params, x[position], name='query', number=head,
        position=position, kind=kind,
    )  # fmt: skip
    logits, values = [], []
    window = config.local_window if kind == 'local' else len(x)
    for other in range(max(0, position + 1 - window), position + 1):
      at = {'number': head // share, 'position': other, 'kind': kind}
      key = _head(config, params, x[other], name='key', **at)
      logits.append(_cap(query @ key, config.attention_softcap))
      values.append(_head(config, params, x[other], name='value', **at))
    weights = np.exp(np.array(logits) - max(logits))
    heads.append(weights / weights.sum() @ np.array(values))
  out = np.concatenate(heads) @ params['out']['kernel']
  return out + params['out'].get('bias', 0.0)


ACTIVATIONS = {
    'linear': lambda x: x,
    'relu': lambda x: np.maximum(x, 0.0),
    'silu': lambda x: x / (1.0 + np.exp(-x)),
    'gelu': lambda x: (
        0.5 * x
        * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    ),
}  # fmt: skip


def _feed_forward(config, params, x):
  hidden = 1.0
  for index, name in enumerate(config.mlp_activations):
    kernel = 'wi' if len(config.mlp_activations) == 1 else f'wi_{index}'
    product = x @ params[kernel]['kernel'] + params[kernel].get('bias', 0.0)
    hidden = hidden * ACTIVATIONS[name](product)
  return hidden @ params['wo']['kernel'] + params['wo'].get('bias', 0.0)


def _layer(config, params, x, kind):
  def norms(name, x):
    return np.array([_normalize(row, config, params[name]) for row in x])

  def finish(name, x):
    return norms(f'post_{name}_layer_norm', x) if config.post_norms else x

  is_parallel = config.parallel_blocks
  first = 'layer_norm' if is_parallel else 'pre_self_attention_layer_norm'
  normed = norms(first, x)
  attended = np.array([
      _attend(config, params['self_attention'], normed, position, kind)
      for position in range(len(x))
  ])
  middle = x + finish('self_attention', attended)
  if not is_parallel:
    normed = norms('pre_mlp_layer_norm', middle)
  fed = np.array([_feed_forward(config, params['mlp'], row) for row in normed])
  return middle + finish('mlp', fed)


def by_the_formulas(config, params, tokens):
  """Logits [length, vocab] of one sequence."""
  params = params['decoder']
  table = params['token_embedder']['embedding']
  x = table[tokens]
  if config.embedding_scale == 'inputs':
    x = x * np.sqrt(config.emb_dim)
  for layer in range(config.num_layers):
    kind = config.layer_pattern[layer % len(config.layer_pattern)]
    x = _layer(config, params[f'layers_{layer}'], x, kind)
  x = np.array([_normalize(row, config, params['decoder_norm']) for row in x])
  if not config.logits_via_embedding:
    logits = x @ params['logits_dense']['kernel']
  elif config.embedding_scale == 'logits':
    logits = x @ table.T / np.sqrt(config.emb_dim)
  else:
    logits = x @ table.T
  return _cap(logits, config.logits_softcap)


def _in_float64(tree):
  if isinstance(tree, dict):
    return {name: _in_float64(value) for name, value in tree.items()}
  return np.asarray(tree, np.float64)


@pytest.mark.parametrize(
    'name',
    ['palm', 'llama', 'llama 3.1', 'gemma', 'gemma 3', 'with all else'],
)
def test_logits_are_those_of_the_formulas(name):
  network = decoders.make(name)
  params = decoders.make_variables(network)['params']
  targets = decoders.make_targets(1, 6)
  inputs = decoders.shift(targets)
  logits = decoders.apply(network, params, inputs, targets)
  expected = by_the_formulas(network.config, _in_float64(params), inputs[0])
  # float32 against float64, of logits up to about 5.
  np.testing.assert_allclose(logits[0], expected, rtol=1e-4, atol=2e-5)
