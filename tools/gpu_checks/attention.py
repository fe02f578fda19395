# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients with every attention kernel, beside the reference.

The reference is float32 with plain products and a softmax. A kernel may be off
by twice what plain bfloat16 is, tensor by tensor, and a little more.
"""

from collections.abc import Mapping
import functools
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np

from t5wild.networks import attention_choice
from t5wild.networks import config as network_config
from t5wild.networks import decoder_only
from t5wild.networks import transformer
from t5wild.planner import hlo
from t5wild.planner import kernels

_SIZES = {
    'vocab_size': 256, 'emb_dim': 256, 'num_heads': 4, 'head_dim': 64,
    'mlp_dim': 256, 'dropout_rate': 0.0,
}  # fmt: skip
_T5 = network_config.T5Config(
    num_encoder_layers=2, num_decoder_layers=2, **_SIZES
)
_DECODER = network_config.TransformerConfig(num_layers=2, **_SIZES)
NETWORKS = {
    't5': _T5,
    't5_scanned': _T5.replace(scan_layers=True),
    'prefix_lm': _DECODER,
    'decoder': _DECODER.replace(
        positions='rotary', num_kv_heads=2, scale_queries=True
    ),
}
_TINY = {'emb_dim': 32, 'num_heads': 2, 'head_dim': 16, 'mlp_dim': 32}
_SMALL = {
    't5': {'num_encoder_layers': 1, 'num_decoder_layers': 1, **_TINY},
    'decoder': {'num_layers': 1, **_TINY},
}
_LITTLE = 0.02  # of the size of a tensor's gradient, on top


def check(*, small: bool) -> dict[str, Any]:
  """Checks each implementation that the networks' configuration takes."""
  length = 32 if small else 512
  checks = []
  for name in _SMALL if small else NETWORKS:
    config = NETWORKS[name]
    if small:
      config = config.replace(**_SMALL[name])
    checks += _check_network(name, config, make_batch(name, length))
  return {'length': length, 'checks': checks}


def _check_network(name, config, batch):
  params = _init(_network(config), batch)
  reference = _lower(config, params, batch).compile()(params, batch)
  config = config.replace(dtype='bfloat16')
  plain: dict[str, float] = {}
  entries: dict[str, dict[str, Any]] = {}  # by program
  # 'xla' first: the others are held against it.
  for kernel in sorted(
      attention_choice.IMPLEMENTATIONS, key=lambda each: each != 'xla'
  ):
    lowered = _lower(
        config.replace(attention_implementation=kernel), params, batch
    )
    program = lowered.as_text()
    if program in entries:
      entries[program]['name'] += f' {kernel}'
      continue
    compiled = lowered.compile()
    errors = relative_errors(compiled(params, batch), reference)
    plain = plain or errors
    entries[program] = entry(
        f'{name}: {kernel}', errors, plain=plain, text=compiled.as_text()
    )
  return list(entries.values())


def entry(
    name: str,
    errors: Mapping[str, float],
    *,
    plain: Mapping[str, float],
    text: str,
) -> dict[str, Any]:
  """What is told of a kernel.

  Args:
    name: of network and implementation.
    errors: of `relative_errors`.
    plain: those of plain bfloat16.
    text: the compiled program.
  """
  served = kernels.of_module(hlo.Module(text))
  wrong = {
      tensor: error
      for tensor, error in errors.items()
      if not error <= 2 * plain[tensor] + _LITTLE
  }
  return {
      'name': name,
      'ok': not wrong,
      'forward': served.attention_forward,
      'backward': served.attention_backward,
      'largest_error': max(errors.values()),
      'largest_error_of_xla': max(plain.values()),
      'wrong': wrong,
  }


def make_batch(name: str, length: int) -> dict[str, jax.Array]:
  """Packed rows, of two examples and some padding, as the network takes them.

  Args:
    name: one of `NETWORKS`.
    length: of the decoder's rows, and of the encoder's.
  """
  random = np.random.default_rng(0)
  tokens = random.integers(3, 256, (2, length)).astype(np.int32)
  first = length // 2
  end = length - length // 8
  segments = np.where(np.arange(length) < first, 1, 2) * np.ones_like(tokens)
  tokens[:, end:], segments[:, end:] = 0, 0
  batch = {
      'decoder_input_tokens': np.pad(tokens[:, :-1], ((0, 0), (1, 0))),
      'decoder_target_tokens': tokens,
      'decoder_segment_ids': segments,
  }
  if name.startswith('t5'):
    batch['encoder_input_tokens'] = tokens[:, ::-1].copy()
    batch['encoder_segment_ids'] = segments[:, ::-1].copy()
  if name == 'prefix_lm':
    places = np.arange(length) % first
    batch['decoder_causal_attention'] = (
        (places < first // 2) & (segments > 0)
    ).astype(np.int32)
  return jax.device_put(batch)


def relative_errors(found: Any, reference: Any) -> dict[str, float]:
  """Norm of the difference over the norm, of the loss and of each gradient."""
  found, reference = _flat(found), _flat(reference)
  return {
      name: float(
          jnp.linalg.norm(jnp.ravel(found[name] - wanted))
          / jnp.linalg.norm(jnp.ravel(wanted))
      )
      for name, wanted in reference.items()
  }


def _flat(loss_and_gradients: Any) -> dict[str, jax.Array]:
  loss, gradients = loss_and_gradients
  flat = flax.traverse_util.flatten_dict(gradients, sep='/')
  return {'loss': loss, **flat}


def _network(config: network_config.LayerConfig) -> Any:
  if isinstance(config, network_config.T5Config):
    return transformer.Transformer(config)
  return decoder_only.DecoderWrapper(config)


def _init(network: Any, batch: Mapping[str, jax.Array]) -> Any:
  init = jax.jit(functools.partial(network.init, enable_dropout=False))
  return init(jax.random.PRNGKey(0), **batch)['params']


def _lower(config, params, batch):
  """The program of the mean loss and its gradients."""
  network = _network(config)

  def loss_fn(params, batch):
    logits = network.apply({'params': params}, **batch, enable_dropout=False)
    targets = batch['decoder_target_tokens']
    scores = jax.nn.log_softmax(logits.astype(jnp.float32))
    chosen = jnp.take_along_axis(scores, targets[..., None], -1)[..., 0]
    return -jnp.sum(chosen * (targets > 0)) / jnp.sum(targets > 0)

  # TF32 and single bfloat16 passes are no reference.
  precision = 'highest' if config.dtype == jnp.float32 else None
  with jax.default_matmul_precision(precision):
    return jax.jit(jax.value_and_grad(loss_fn)).lower(params, batch)
