# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The network gives T5X's numbers and keeps its laws."""

import functools
import json
import math

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import transformer

# T5X's numbers come from another compiler version and another order of sums.
LOSS_TOLERANCE = 1e-6  # relative
GRADIENT_TOLERANCE = 1e-5  # of each tensor's largest value

jit = jax.jit


def flat(tree):
  return traverse_util.flatten_dict(tree, sep='/')


@functools.partial(jit, static_argnums=0)
def make_variables(network, key):
  tokens = jnp.ones((2, 6), jnp.int32)
  return network.init(key, tokens, tokens, tokens, enable_dropout=False)


@functools.cache
def init(network, seed=0):
  return make_variables(network, jax.random.PRNGKey(seed))


@functools.partial(jit, static_argnums=0)
def apply(network, params, batch, key=None, dropout_rows=None):
  return network.apply(
      {'params': params},
      *batch,
      enable_dropout=key is not None,
      rngs=None if key is None else {'dropout': key},
      dropout_rows=dropout_rows,
  )


def loss_fn(params, network, batch, key=None, dropout_rows=None):
  """Sum over real targets of cross entropy with T5X's z-loss of 1e-4."""
  logits = apply(network, params, batch, key, dropout_rows)
  targets = batch[2]
  log_z = jax.nn.logsumexp(logits, axis=-1)
  chosen = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
  return jnp.sum((log_z - chosen + 1e-4 * log_z**2) * (targets > 0))


loss_and_gradients = jit(jax.value_and_grad(loss_fn), static_argnums=1)


def make_batch(batch=4, inputs=12, targets=8, seed=0):
  random = np.random.RandomState(seed)
  encoder = random.randint(3, 300, (batch, inputs)).astype(np.int32)
  decoder = random.randint(3, 300, (batch, targets)).astype(np.int32)
  encoder[0, -3:] = 0
  decoder[0, -2:] = 0
  shifted = np.pad(decoder[:, :-1], ((0, 0), (1, 0)))
  return encoder, shifted, decoder


def assert_gradients_equal(actual, expected, tolerance):
  actual, expected = flat(actual), flat(expected)
  assert set(actual) == set(expected)
  for name, want in expected.items():
    error = np.abs(actual[name] - want).max()
    assert error <= tolerance * np.abs(want).max(), name


def test_initial_parameters_are_those_of_t5x(t5x):
  key, _ = jax.random.split(jax.random.PRNGKey(42))
  actual = flat(make_variables(t5x.network, key)['params'])
  expected = t5x.load('init_params_seed42')
  assert set(actual) == set(expected)
  for name, want in expected.items():
    np.testing.assert_array_equal(actual[name], want, err_msg=name)


def test_logical_axes_are_those_of_t5x(t5x):
  axes = flat(init(t5x.network)['params_axes'])
  expected = json.loads((t5x.folder / 'param_logical_axes.json').read_text())
  actual = {k.removesuffix('_axes'): list(v.names) for k, v in axes.items()}
  assert actual == expected


def test_logits_are_those_of_t5x(t5x):
  for batch in ('batch', 'decode_batch'):
    actual = apply(t5x.network, t5x.params, t5x.batch(batch))
    # Logits here go up to about 12.
    name = 'logits' if batch == 'batch' else 'decode_batch_logits'
    np.testing.assert_allclose(actual, t5x.outputs[name], atol=2e-5)


@pytest.mark.parametrize(
    ('key', 'loss', 'gradients'),
    [
        (None, 'loss/base_z1e-4', 'grads_nodropout'),
        (7, 'loss/dropout_key7', None),
        (11, None, 'grads_dropout_key11_microbatches_None'),
    ],
)
def test_loss_and_gradients_are_those_of_t5x(t5x, key, loss, gradients):
  actual_loss, actual_gradients = loss_and_gradients(
      t5x.params,
      t5x.network,
      t5x.batch('batch'),
      None if key is None else jax.random.PRNGKey(key),
  )
  if loss:
    np.testing.assert_allclose(
        actual_loss, t5x.outputs[loss], rtol=LOSS_TOLERANCE
    )
  if gradients:
    expected = traverse_util.unflatten_dict(t5x.load(gradients), sep='/')
    assert_gradients_equal(actual_gradients, expected, GRADIENT_TOLERANCE)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'scan_layers': True},
        {'positions': 'relative_bias_per_layer', 'num_decoder_layers': 2},
        {
            'positions': 'rotary', 'num_kv_heads': 2, 'norm': 'layer',
            'attention_softcap': 2.0, 'embedding_scale': 'inputs',
            'scan_layers': True,
        },
    ],
)  # fmt: skip
def test_decoding_step_by_step_gives_the_logits_of_teacher_forcing(
    config, changes
):
  network = transformer.Transformer(config.replace(**changes))
  params = init(network)['params']
  encoder, shifted, targets = make_batch()
  targets = np.maximum(targets, 1)  # the cache knows no padding
  length = targets.shape[1]
  expected = apply(network, params, (encoder, shifted, targets))

  @jit
  def start():
    ones = jnp.ones_like(targets)
    encoded = network.apply(
        {'params': params}, encoder, enable_dropout=False, method='encode'
    )
    _, made = network.apply(
        {'params': params},
        jnp.ones_like(encoder),
        ones,
        ones,
        enable_dropout=False,
        decode=True,
        mutable=['cache'],
    )
    return encoded, made['cache']

  @jit
  def step(cache, tokens):
    return network.apply(
        {'params': params, 'cache': cache},
        encoded,
        encoder,
        tokens,
        tokens,
        enable_dropout=False,
        decode=True,
        max_decode_length=length,
        mutable=['cache'],
        method='decode',
    )

  encoded, cache = start()
  leaves = {path.rsplit('/')[-1] for path in flat(cache)}
  assert leaves == {'cached_key', 'cached_value', 'cache_index'}
  for position in range(length):
    logits, changed = step(cache, shifted[:, position : position + 1])
    cache = changed['cache']
    np.testing.assert_allclose(
        logits[:, 0], expected[:, position], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize('scan_layers', [False, True])
def test_numbered_rows_keep_their_dropout_in_any_batch(config, scan_layers):
  network = transformer.Transformer(config.replace(scan_layers=scan_layers))
  params = init(network)['params']
  batch = make_batch()
  key = jax.random.PRNGKey(3)
  whole = apply(network, params, batch, key, jnp.arange(4))
  plain = apply(network, params, batch)
  assert np.abs(whole - plain).max() > 0.01
  rows = np.array([3, 1])
  part = apply(network, params, [x[rows] for x in batch], key, jnp.array(rows))
  # A product of fewer rows may sum in another order.
  np.testing.assert_allclose(part, whole[rows], rtol=1e-5, atol=1e-5)


def test_each_numbered_row_has_a_dropout_of_its_own(config):
  network = transformer.Transformer(config)
  params = init(network)['params']
  batch = [np.repeat(x[1:2], 3, axis=0) for x in make_batch()]
  rows = jnp.array([0, 1, 0])
  logits = apply(network, params, batch, jax.random.PRNGKey(3), rows)
  np.testing.assert_allclose(logits[0], logits[2], rtol=1e-5, atol=1e-5)
  assert np.abs(logits[0] - logits[1]).max() > 0.01


@pytest.mark.parametrize(
    ('scan_layers', 'policy'),
    [(False, 'minimal'), (False, 'full'), (True, 'full')],
)
def test_rematerialization_changes_no_number(config, scan_layers, policy):
  key = jax.random.PRNGKey(5)
  batch = make_batch()
  config = config.replace(scan_layers=scan_layers, num_encoder_layers=2)
  network = transformer.Transformer(config)
  params = init(network)['params']
  loss, gradients = loss_and_gradients(params, network, batch, key)
  other = transformer.Transformer(config.replace(remat_policy=policy))
  other_loss, other_gradients = loss_and_gradients(params, other, batch, key)
  np.testing.assert_allclose(other_loss, loss, rtol=LOSS_TOLERANCE)
  assert_gradients_equal(other_gradients, gradients, GRADIENT_TOLERANCE)


def test_full_rematerialization_takes_the_least_memory_scanned(config):
  config = config.replace(
      scan_layers=True, num_encoder_layers=8, num_decoder_layers=8
  )
  batch = make_batch(batch=4, inputs=64, targets=64)
  params = init(transformer.Transformer(config))['params']

  def temporary_bytes(policy):
    network = transformer.Transformer(config.replace(remat_policy=policy))
    compiled = loss_and_gradients.lower(params, network, batch).compile()
    return compiled.memory_analysis().temp_size_in_bytes

  full, minimal, none = map(temporary_bytes, ('full', 'minimal', 'none'))
  assert full < 0.35 * none
  assert full < minimal < none


def test_bfloat16_activations_stay_near_float32(config):
  network = transformer.Transformer(config)
  params = init(network)['params']
  batch = make_batch()
  key = jax.random.PRNGKey(5)
  loss, gradients = loss_and_gradients(params, network, batch, key)
  half = transformer.Transformer(
      config.replace(dtype='bfloat16', float32_attention_logits=True)
  )
  half_loss, half_gradients = loss_and_gradients(params, half, batch, key)
  assert half_loss.dtype == jnp.float32
  np.testing.assert_allclose(half_loss, loss, rtol=0.01)
  for name, want in flat(gradients).items():
    got = flat(half_gradients)[name]
    assert got.dtype == jnp.float32
    # bfloat16 has 8 bits; errors of many products mostly cancel.
    assert np.linalg.norm(got - want) < 0.1 * np.linalg.norm(want), name


def test_shared_embedding_scores_with_the_scaled_table(config):
  network = transformer.Transformer(config.replace(logits_via_embedding=True))
  params = init(network)['params']
  assert 'logits_dense' not in params['decoder']
  batch = make_batch()
  logits = apply(network, params, batch)
  doubled = dict(params, decoder=dict(params['decoder']))
  doubled['decoder']['decoder_norm'] = {
      'scale': 2 * params['decoder']['decoder_norm']['scale']
  }
  np.testing.assert_allclose(
      apply(network, doubled, batch), 2 * logits, rtol=1e-5, atol=1e-5
  )


@pytest.mark.parametrize('scan_layers', [False, True])
def test_queries_and_keys_can_begin_alike_and_biases_larger(
    config, scan_layers
):
  plain = config.replace(scan_layers=scan_layers)
  changed = plain.replace(
      like_attends_to_like=True, relative_bias_init_scale=10.0
  )
  before, after = (
      flat(init(transformer.Transformer(cfg))['params'])
      for cfg in (plain, changed)
  )
  scale = math.sqrt(config.head_dim)
  for name, kernel in after.items():
    if 'rel_embedding' in name:
      np.testing.assert_allclose(kernel, 10 * before[name], rtol=1e-6)
    elif 'encoder_decoder_attention/query' in name:
      key = after[name.replace('query', 'key')]
      np.testing.assert_allclose(scale * kernel, key, rtol=1e-6)
    elif 'encoder_decoder_attention' not in name:
      np.testing.assert_array_equal(kernel, before[name])


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'remat_policy': 'some'}, "'some'.*'none', 'minimal', 'full'"),
        ({'dropout_rate': 1.5}, r'1\.5.*\[0, 1\)'),
        ({'emb_dim': 0}, 'emb_dim is 0.*at least 1'),
        ({'mlp_activations': ('gleu',)}, "'gleu'.*linear"),
        (
            {'like_attends_to_like': True, 'num_kv_heads': 2},
            'like_attends_to_like is True with num_kv_heads = 2',
        ),
    ],
)
def test_impossible_configuration_is_refused_when_built(
    config, change, message
):
  with pytest.raises(ValueError, match=message):
    transformer.Transformer(config.replace(**change))


def test_packed_decoding_is_refused(config):
  network = transformer.Transformer(config)
  encoder, shifted, targets = make_batch()
  ones = np.ones_like(encoder), np.ones_like(targets)
  with pytest.raises(ValueError, match='encoder_segment_ids.*pack=False'):
    jax.eval_shape(
        lambda key: network.init(
            key,
            encoder,
            shifted,
            targets,
            *ones,
            enable_dropout=False,
            decode=True,
        ),
        jax.random.key(0),
    )


def test_decoders_can_ask_whether_caches_have_a_layer_axis(config):
  assert not transformer.Transformer(config).scan_layers
  assert transformer.Transformer(config.replace(scan_layers=True)).scan_layers


@pytest.mark.parametrize(
    ('sizes', 'count'),
    [
        # The parameters of the published checkpoints.
        ((32128, 512, 6, 8, 8, 1024), 76_961_152),  # T5 1.1 small
        ((250112, 768, 12, 12, 12, 2048), 582_401_280),  # mT5 base
        ((384, 1472, 6, 12, 4, 3584), 299_637_760),  # ByT5 small
    ],
)
def test_published_sizes_have_the_published_number_of_parameters(
    config, sizes, count
):
  names = (
      'vocab_size', 'emb_dim', 'num_heads', 'num_encoder_layers',
      'num_decoder_layers', 'mlp_dim',
  )
  network = transformer.Transformer(
      config.replace(head_dim=64, **dict(zip(names, sizes, strict=True)))
  )
  tokens = jax.ShapeDtypeStruct((1, 4), jnp.int32)
  variables = jax.eval_shape(
      lambda key, x: network.init(key, x, x, x, enable_dropout=False)['params'],
      jax.random.key(0),
      tokens,
  )
  assert sum(math.prod(x.shape) for x in jax.tree.leaves(variables)) == count
