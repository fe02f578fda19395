# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tiny decoders of each architecture, and what tests do with them."""

import functools

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from t5wild.networks import decoder_only

QUICK = {'xla_backend_optimization_level': 0}  # to compile
TINY = decoder_only.TransformerConfig(
    vocab_size=48,
    emb_dim=16,
    num_heads=4,
    head_dim=8,
    mlp_dim=24,
    num_layers=2,
    mlp_activations=('gelu', 'linear'),
    dropout_rate=0.1,
)
# What is not as in TINY, by whose decoder it is like.
ARCHITECTURES = {
    't5x': {},
    'umt5': {'positions': 'relative_bias_per_layer'},
    'palm': {
        'parallel_blocks': True,
        'positions': 'rotary',
        'num_kv_heads': 1,
        'norm': 'layer_without_bias',
        'mlp_activations': ('silu', 'linear'),
        'logits_via_embedding': True,
    },
    'llama': {
        'positions': 'rotary',
        'num_kv_heads': 2,
        'scale_queries': True,
        'mlp_activations': ('silu', 'linear'),
        'embedding_scale': 'none',
    },
    'llama 3.1': {
        'positions': 'rotary',
        'num_kv_heads': 2,
        'scale_queries': True,
        'mlp_activations': ('silu', 'linear'),
        'embedding_scale': 'none',
        'rotary_wavelength': 100.0,
        'rotary_factor': 8.0,
        'rotary_original_length': 64,
        'attention_bias': 'all',
        'mlp_bias': True,
    },
    'gemma': {
        'positions': 'rotary',
        'num_kv_heads': 1,
        'norm': 'rms_from_one',
        'post_norms': True,
        'scale_queries': True,
        'logits_via_embedding': True,
        'embedding_scale': 'inputs',
        'attention_softcap': 1.5,
        'logits_softcap': 2.0,
        'layer_pattern': ('local', 'global'),
        'local_window': 3,
        'query_pre_attn_scalar': 5.0,
    },
    'gemma 3': {
        'positions': 'rotary',
        'num_kv_heads': 2,
        'norm': 'rms_from_one',
        'post_norms': True,
        'scale_queries': True,
        'normalize_heads': True,
        'logits_via_embedding': True,
        'embedding_scale': 'inputs',
        'layer_pattern': ('local', 'global', 'local'),
        'local_window': 4,
        'rotary_factor': 4.0,
        'local_rotary_wavelength': 50.0,
    },
    'with all else': {
        'positions': 'none',
        'norm': 'layer',
        'normalize_heads': True,
        'mlp_activations': ('relu',),
        'parallel_blocks': True,
        'post_norms': True,
        'attention_bias': 'inputs',
        'layer_pattern': ('local',),
        'local_window': 4,
    },
}


def make(name: str, **changes) -> decoder_only.DecoderWrapper:
  """The network of an architecture."""
  return decoder_only.DecoderWrapper(
      TINY.replace(**(ARCHITECTURES[name] | changes))
  )


def flat(tree):
  """Arrays by their path."""
  return traverse_util.flatten_dict(tree, sep='/')


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _init(network, key):
  tokens = jnp.ones((2, 4), jnp.int32)
  return network.init(key, tokens, tokens, enable_dropout=False)


@functools.cache
def make_variables(network):
  """Initial variables, norms and biases moved off their plain start."""
  variables = _init(network, jax.random.PRNGKey(0))
  random = np.random.RandomState(1)
  moved = {
      path: x + 0.3 * random.standard_normal(x.shape).astype(np.float32)
      if path.endswith(('scale', 'bias', 'rel_embedding'))
      else x
      for path, x in flat(variables['params']).items()
  }
  params = traverse_util.unflatten_dict(moved, sep='/')
  return dict(variables, params=params)


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def apply(network, params, inputs, targets, **features):
  """Logits without dropout."""
  return network.apply(
      {'params': params}, inputs, targets, enable_dropout=False, **features
  )


def shift(targets):
  """Inputs of the decoder."""
  return np.pad(targets[:, :-1], ((0, 0), (1, 0)))


def make_targets(batch=3, length=10, seed=0):
  """Random tokens without padding."""
  random = np.random.RandomState(seed)
  return random.randint(1, TINY.vocab_size, (batch, length)).astype(np.int32)


def losses(logits, targets):
  """Cross entropy of each target: [batch, length]."""
  log_p = jax.nn.log_softmax(logits)
  return -jnp.take_along_axis(log_p, targets[..., None], -1)[..., 0]


@functools.partial(
    jax.jit, static_argnums=0, static_argnames='length',
    compiler_options=QUICK,
)
def take_step(network, params, cache, tokens, *, length):
  logits, changed = network.apply(
      {'params': params, 'cache': cache},
      tokens[:, None],
      tokens[:, None],
      enable_dropout=False,
      decode=True,
      max_decode_length=length,
      mutable=['cache'],
  )
  return logits[:, 0], changed['cache']


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def make_cache(network, params, tokens):
  _, made = network.apply(
      {'params': params},
      tokens,
      jnp.ones_like(tokens),
      enable_dropout=False,
      decode=True,
      mutable=['cache'],
  )
  return made['cache']


@functools.partial(
    jax.jit, static_argnums=0, static_argnames='is_prefix',
    compiler_options=QUICK,
)
def prefill(network, params, prompts, is_prompt, *, is_prefix):
  """A cache with all but the last token of each prompt, and their number."""
  lengths = is_prompt.sum(-1) - 1
  _, filled = network.apply(
      {'params': params},
      prompts,
      is_prompt,
      decoder_causal_attention=is_prompt if is_prefix else None,
      enable_dropout=False,
      prefill=True,
      prefill_lengths=lengths,
      mutable=['cache'],
  )
  return filled['cache'], lengths
