# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A training step of T5 1.1 in plain JAX, as fast as we can make it on a CPU.

It shares no code with t5wild and gives the same loss and gradients, so that
the time t5wild takes beyond it is what modules, axes, metrics and generality
cost. No classes of layers, no sharding, one layout: parameters as nested dicts
by T5X's names.
"""

import hashlib
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

Params = dict[str, Any]


class Sizes(NamedTuple):
  """What the step has to know of the model; the rest it reads off shapes."""

  num_encoder_layers: int = 4
  num_decoder_layers: int = 4
  num_heads: int = 4
  dropout_rate: float = 0.1
  z_loss: float = 0.0


def site_key(key: jax.Array, *path: str) -> jax.Array:
  """The key that Flax gives the first draw of the module at this path.

  Flax folds in the first four bytes of a SHA-1 over the names and the number of
  the draw.
  """
  digest = hashlib.sha1()
  for name in path:
    digest.update(name.encode())
  digest.update(b'\x01')
  return jax.random.fold_in(key, np.uint32(int.from_bytes(digest.digest()[:4])))


class _Dropout:
  """Draws the scales of all sites of one step."""

  def __init__(self, key, rate):
    self._key = key
    self._rate = rate

  def __call__(self, shape, *path):
    """1 / (1 - rate) where kept, 0 where dropped; None without dropout."""
    if self._key is None or not self._rate:
      return None
    keep_rate = 1.0 - self._rate
    keep = jax.random.bernoulli(site_key(self._key, *path), keep_rate, shape)
    return jnp.where(keep, np.float32(1.0 / keep_rate), np.float32(0.0))

  def scaled(self, x, *path):
    """x with one draw for all positions."""
    scale = self((x.shape[0], 1, x.shape[2]), *path)
    return x if scale is None else x * scale


@jax.custom_vjp
def _multiply(x, kernels):
  """Products of one [rows, p] with several [p, q].

  A CPU's product that contracts the first axes of both sides runs at little
  more than half the speed, so the backward pass copies the narrower side's
  transpose first. The barrier keeps XLA from folding the copy back.
  """
  return tuple(x @ kernel for kernel in kernels)


def _multiply_backward(residuals, gradients):
  x, kernels = residuals
  d_x = sum(g @ k.T for g, k in zip(gradients, kernels, strict=True))
  if all(g.shape[1] >= x.shape[1] for g in gradients):
    x_t = lax.optimization_barrier(x.T)
    return d_x, tuple(x_t @ g for g in gradients)
  barrier = lax.optimization_barrier
  return d_x, tuple(barrier(barrier(g.T) @ x).T for g in gradients)


_multiply.defvjp(lambda x, ks: (_multiply(x, ks), (x, ks)), _multiply_backward)


def _products(x, *kernels):
  """[batch, length, p] times each [p, q], as products of matrices."""
  batch, length, width = x.shape
  products = _multiply(x.reshape(batch * length, width), kernels)
  return tuple(y.reshape(batch, length, -1) for y in products)


def _norm(x, scale):
  mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
  return x * lax.rsqrt(mean_square + 1e-6) * scale


def _heads_first(x, num_heads):
  batch, length, _ = x.shape
  return x.reshape(batch, length, num_heads, -1).swapaxes(1, 2)


def _batched(left, right, left_axis, right_axis):
  """Products over [batch, heads], contracting one axis of each side."""
  return lax.dot_general(
      left, right, (((left_axis,), (right_axis,)), ((0, 1), (0, 1)))
  )


@jax.custom_vjp
def _attend(query, key, value, mask_bias, relative_bias):
  """Softmax attention, divided by the total after the value product."""
  return _attend_forward(query, key, value, mask_bias, relative_bias)[0]


def _attend_forward(query, key, value, mask_bias, relative_bias):
  logits = _batched(query, key, 3, 3) + mask_bias
  if relative_bias is not None:
    logits = logits + relative_bias
  weights = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
  total = jnp.sum(weights, axis=-1, keepdims=True)
  mixed = _batched(weights, value, 3, 2) / total
  return mixed, (query, key, value, weights, total, mixed, relative_bias)


def _attend_backward(residuals, gradient):
  query, key, value, weights, total, mixed, relative_bias = residuals
  gradient = gradient / total
  through_total = jnp.sum(gradient * mixed, axis=-1, keepdims=True)
  d_logits = weights * (_batched(gradient, value, 3, 3) - through_total)
  # The narrow sides are transposed, for the reason told in _multiply.
  barrier = lax.optimization_barrier
  d_key_t = barrier(_batched(barrier(query.swapaxes(2, 3)), d_logits, 3, 2))
  d_value_t = barrier(_batched(barrier(gradient.swapaxes(2, 3)), weights, 3, 2))
  return (
      _batched(d_logits, key, 3, 2),
      d_key_t.swapaxes(2, 3),
      d_value_t.swapaxes(2, 3),
      None,
      None if relative_bias is None else d_logits.sum(0, keepdims=True),
  )


_attend.defvjp(_attend_forward, _attend_backward)


def _attention(params, x, source, biases, dropout, path, num_heads):
  """One attention block, up to and with its output product."""
  q, k, v, out = (params[n]['kernel'] for n in ('query', 'key', 'value', 'out'))
  if source is x:
    projected = _products(x, q, k, v)
  else:
    projected = _products(x, q) + _products(source, k, v)
  query, key, value = (_heads_first(y, num_heads) for y in projected)
  batch, heads, keys, _ = key.shape
  scale = dropout((batch, heads, 1, keys), *path)
  if scale is not None:
    # One draw for all queries: dropping a weight is dropping a value's row.
    value = value * scale.reshape(batch, heads, keys, 1)
  mixed = _attend(query, key, value, *biases).swapaxes(1, 2)
  return _products(mixed.reshape(*x.shape[:2], -1), out)[0]


def _mlp(params, x, dropout, path):
  gate, up = _products(x, params['wi_0']['kernel'], params['wi_1']['kernel'])
  hidden = dropout.scaled(jax.nn.gelu(gate) * up, *path, 'Dropout_0')
  return _products(hidden, params['wo']['kernel'])[0]


def _buckets(queries, keys, bidirectional):
  """Bucket of each pair of positions (Raffel et al. 2020, section 2.1)."""
  distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
  half = 16 if bidirectional else 32
  base = np.where(distance > 0, half, 0) if bidirectional else 0
  distance = np.abs(distance) if bidirectional else np.maximum(-distance, 0)
  exact = half // 2
  ratio = distance.astype(np.float32) / exact + np.finfo(np.float32).eps
  far = np.log(ratio) / np.log(128 / exact) * (half - exact)
  far = np.minimum(exact + far.astype(np.int32), half - 1)
  return base + np.where(distance < exact, distance, far)


def _relative_bias(table, length, bidirectional):
  """[1, heads, length, length] from [heads, buckets]."""
  buckets = _buckets(length, length, bidirectional).reshape(-1)
  one_hot = (buckets[None, :] == np.arange(32)[:, None]).astype(np.float32)
  return (table @ one_hot).reshape(1, -1, length, length)


def _mask_bias(allowed):
  """0 where allowed, very low elsewhere: [batch, 1, queries, keys]."""
  return jnp.where(allowed, 0.0, -1e10)[:, None].astype(jnp.float32)


@jax.custom_vjp
def _embed(table, tokens):
  return table[tokens]


def _embed_backward(residuals, gradient):
  tokens, vocab = residuals
  one_hot = (tokens.reshape(-1, 1) == jnp.arange(vocab.size)).astype(
      gradient.dtype
  )
  return one_hot.T @ gradient.reshape(-1, gradient.shape[-1]), None


_embed.defvjp(
    lambda table, tokens: (
        table[tokens],
        (tokens, jnp.zeros(table.shape[0], bool)),
    ),
    _embed_backward,
)


def _encode(params, tokens, table, dropout, sizes):
  real = tokens > 0
  biases = (
      _mask_bias(real[:, :, None] & real[:, None, :]),
      _relative_bias(
          params['relpos_bias']['rel_embedding'], tokens.shape[1], True
      ),
  )
  x = dropout.scaled(_embed(table, tokens), 'encoder', 'Dropout_0')
  for index in range(sizes.num_encoder_layers):
    name = f'layers_{index}'
    path, layer = ('encoder', name), params[name]
    y = _norm(x, layer['pre_attention_layer_norm']['scale'])
    y = _attention(
        layer['attention'], y, y, biases, dropout, (*path, 'attention'),
        sizes.num_heads,
    )
    x = x + dropout.scaled(y, *path, 'Dropout_0')
    y = _norm(x, layer['pre_mlp_layer_norm']['scale'])
    y = _mlp(layer['mlp'], y, dropout, (*path, 'mlp'))
    x = x + dropout.scaled(y, *path, 'Dropout_1')
  x = _norm(x, params['encoder_norm']['scale'])
  scale = dropout(x.shape, 'encoder', 'Dropout_1')
  return x if scale is None else x * scale


def _decode(params, encoded, batch, table, dropout, sizes):
  inputs = batch['decoder_input_tokens']
  targets = batch['decoder_target_tokens']
  length = targets.shape[1]
  real = targets > 0
  causal = np.tril(np.ones((length, length), bool))
  self_biases = (
      _mask_bias(real[:, :, None] & real[:, None, :] & causal),
      _relative_bias(params['relpos_bias']['rel_embedding'], length, False),
  )
  source_real = batch['encoder_input_tokens'] > 0
  cross_biases = _mask_bias(real[:, :, None] & source_real[:, None, :]), None
  x = dropout.scaled(_embed(table, inputs), 'decoder', 'Dropout_0')
  for index in range(sizes.num_decoder_layers):
    name = f'layers_{index}'
    path, layer = ('decoder', name), params[name]
    y = _norm(x, layer['pre_self_attention_layer_norm']['scale'])
    y = _attention(
        layer['self_attention'], y, y, self_biases, dropout,
        (*path, 'self_attention'), sizes.num_heads,
    )
    x = x + dropout.scaled(y, *path, 'Dropout_0')
    y = _norm(x, layer['pre_cross_attention_layer_norm']['scale'])
    y = _attention(
        layer['encoder_decoder_attention'], y, encoded, cross_biases, dropout,
        (*path, 'encoder_decoder_attention'), sizes.num_heads,
    )
    x = x + dropout.scaled(y, *path, 'Dropout_1')
    y = _norm(x, layer['pre_mlp_layer_norm']['scale'])
    y = _mlp(layer['mlp'], y, dropout, (*path, 'mlp'))
    x = x + dropout.scaled(y, *path, 'Dropout_2')
  x = _norm(x, params['decoder_norm']['scale'])
  x = dropout.scaled(x, 'decoder', 'Dropout_1')
  return _products(x, params['logits_dense']['kernel'])[0]


def _cross_entropy(logits, targets, weights, z_loss):
  """Weighted sum over tokens of cross entropy plus z_loss * log(Z)^2."""
  highest = lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
  shifted = logits - highest
  log_z = jnp.log(jnp.sum(jnp.exp(shifted), axis=-1)) + highest[..., 0]
  one_hot = targets[..., None] == np.arange(logits.shape[-1])
  chosen = jnp.sum(jnp.where(one_hot, logits, 0.0), axis=-1)
  loss = log_z - chosen
  if z_loss:
    loss = loss + z_loss * lax.square(log_z)
  return jnp.sum(loss * weights)


def loss_fn(
    params: Params,
    batch: dict[str, jax.Array],
    key: jax.Array | None,
    *,
    sizes: Sizes,
) -> jax.Array:
  """The loss of a batch, summed over real target tokens.

  Args:
    params: nested dicts, T5X's names and plain layout.
    batch: encoder_input_tokens, decoder_input_tokens, decoder_target_tokens,
      decoder_loss_weights; unpacked, padded with 0.
    key: of the dropout; None = no dropout.
    sizes: of the model.
  """
  dropout = _Dropout(key, sizes.dropout_rate)
  table = params['token_embedder']['embedding']
  encoded = _encode(
      params['encoder'], batch['encoder_input_tokens'], table, dropout, sizes
  )
  logits = _decode(params['decoder'], encoded, batch, table, dropout, sizes)
  return _cross_entropy(
      logits,
      batch['decoder_target_tokens'],
      batch['decoder_loss_weights'],
      sizes.z_loss,
  )
