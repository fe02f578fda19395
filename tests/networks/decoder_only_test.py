# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder alone gives T5X's numbers; every architecture keeps the laws."""

import functools
import math

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import decoder_only
from tests.networks import decoders

TOLERANCE = {'rtol': 1e-5, 'atol': 1e-5}  # sums in another order
PREFIX_LENGTHS = np.array([4, 3, 7])

every_architecture = pytest.mark.parametrize('name', decoders.ARCHITECTURES)


# What T5X's own decoder-only network gives for this configuration, key and
# batch (jax 0.10, CPU): losses, and the tokens after each prefix.
T5X_CONFIG = decoder_only.TransformerConfig(
    vocab_size=96, emb_dim=32, num_heads=4, head_dim=16, mlp_dim=64,
    num_layers=2, mlp_activations=('gelu', 'linear'), dropout_rate=0.1,
)  # fmt: skip
T5X = {
    True: {
        'causal': 164.89588928222656,
        'prefix': 164.0145263671875,
        'packed prefix': 162.8728790283203,
        'dropout': 169.26963806152344,
        'tokens': [[65] * 4, [13] * 4, [80] * 4],
    },
    False: {
        'causal': 165.45962524414062,
        'prefix': 163.169189453125,
        'packed prefix': 166.88316345214844,
        'dropout': 167.13665771484375,
        'tokens': [[24, 87, 15, 3], [72, 94, 33, 65], [82, 92, 6, 24]],
    },
}


def make_t5x_batch():
  random = np.random.RandomState(0)
  targets = random.randint(1, 96, (3, 12)).astype(np.int32)
  targets[1, -3:] = 0
  prefix = np.arange(12) < PREFIX_LENGTHS[:, None]
  return decoders.shift(targets), targets, prefix.astype(np.int32)


@functools.partial(
    jax.jit, static_argnums=0, static_argnames='length',
    compiler_options=decoders.QUICK,
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


@functools.partial(jax.jit, static_argnums=0, compiler_options=decoders.QUICK)
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
    compiler_options=decoders.QUICK,
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


@pytest.mark.parametrize('tied', [True, False])
def test_losses_and_decodes_are_those_of_t5x(tied):
  network = decoder_only.DecoderWrapper(
      T5X_CONFIG.replace(logits_via_embedding=tied)
  )
  inputs, targets, prefix = make_t5x_batch()
  params = jax.jit(
      lambda key: network.init(key, inputs, targets, enable_dropout=False)
  )(jax.random.PRNGKey(3))['params']

  @jax.jit
  def loss(prefix, segments, key):
    logits = network.apply(
        {'params': params},
        inputs,
        targets,
        decoder_causal_attention=prefix,
        decoder_segment_ids=segments,
        enable_dropout=key is not None,
        rngs=None if key is None else {'dropout': key},
    )
    return (decoders.losses(logits, targets) * (targets > 0)).sum()

  expected = T5X[tied]
  segments = np.repeat([[1] * 5 + [2] * 7], 3, axis=0)
  for name, arguments in (
      ('causal', (None, None, None)),
      ('prefix', (prefix, None, None)),
      ('packed prefix', (prefix, segments, None)),
      ('dropout', (None, None, jax.random.PRNGKey(5))),
  ):
    np.testing.assert_allclose(
        loss(*arguments), expected[name], rtol=1e-6, err_msg=name
    )
  cache, lengths = prefill(
      network, params, inputs * prefix, prefix, is_prefix=True
  )
  tokens = inputs[np.arange(3), lengths]
  decoded = []
  for _ in range(4):
    logits, cache = take_step(network, params, cache, tokens, length=12)
    tokens = np.argmax(logits, axis=-1)
    decoded.append(tokens)
  np.testing.assert_array_equal(np.stack(decoded, 1), expected['tokens'])


@pytest.mark.parametrize('scan_layers', [False, True])
def test_parameters_have_the_names_and_axes_of_t5x(scan_layers):
  network = decoders.make('t5x', scan_layers=scan_layers)
  variables = decoders.make_variables(network)
  shapes = {k: x.shape for k, x in decoders.flat(variables['params']).items()}
  if not scan_layers:
    expected = {
        'token_embedder/embedding': (48, 16),
        'relpos_bias/rel_embedding': (4, 32),
        'decoder_norm/scale': (16,),
        'logits_dense/kernel': (16, 48),
    }
    for layer in range(2):
      expected |= {
          f'layers_{layer}/{name}': shape
          for name, shape in {
              'pre_self_attention_layer_norm/scale': (16,),
              'self_attention/query/kernel': (16, 32),
              'self_attention/key/kernel': (16, 32),
              'self_attention/value/kernel': (16, 32),
              'self_attention/out/kernel': (32, 16),
              'pre_mlp_layer_norm/scale': (16,),
              'mlp/wi_0/kernel': (16, 24),
              'mlp/wi_1/kernel': (16, 24),
              'mlp/wo/kernel': (24, 16),
          }.items()
      }
    assert shapes == {f'decoder/{k}': v for k, v in expected.items()}
  else:
    assert shapes['decoder/decoder/self_attention/query/kernel'] == (
        16, 2, 4, 8,
    )  # fmt: skip
    assert shapes['decoder/decoder/relpos_bias/rel_embedding'] == (4, 2, 32)
  assert {f'{k}_axes' for k in shapes} == set(
      decoders.flat(variables['params_axes'])
  )


@every_architecture
@pytest.mark.parametrize('is_prefix', [False, True])
def test_packed_examples_have_the_losses_they_have_alone(name, is_prefix):
  network = decoders.make(name)
  params = decoders.make_variables(network)['params']
  lengths = [(4, 2), (5, 3)]  # of each example and its prefix
  examples = [
      decoders.make_targets(1, length, seed=seed)
      for seed, (length, _) in enumerate(lengths)
  ]
  prefixes = [
      (np.arange(length) < prefix).astype(np.int32)[None]
      for length, prefix in lengths
  ]

  def losses(inputs, targets, prefix, segments=None):
    logits = decoders.apply(
        network,
        params,
        inputs,
        targets,
        decoder_causal_attention=prefix if is_prefix else None,
        decoder_segment_ids=segments,
    )
    return decoders.losses(logits, targets)[0]

  packed = [
      np.pad(np.concatenate(parts, axis=1), ((0, 0), (0, 3)))
      for parts in ([*map(decoders.shift, examples)], examples, prefixes)
  ]
  segments = np.array([[1] * 4 + [2] * 5 + [0] * 3])
  together = losses(*packed, segments)
  for example, prefix, here in zip(
      examples, prefixes, (together[:4], together[4:9]), strict=True
  ):
    alone = losses(decoders.shift(example), example, prefix)
    np.testing.assert_allclose(here, alone, **TOLERANCE)


@pytest.mark.parametrize('name', ['t5x', 'palm'])
@pytest.mark.parametrize('is_prefix', [False, True])
def test_a_token_moves_only_the_logits_that_may_see_it(name, is_prefix):
  network = decoders.make(name, num_layers=1)
  params = decoders.make_variables(network)['params']
  targets = decoders.make_targets(1, 6)
  prefix = np.array([[1, 1, 1, 0, 0, 0]])
  inputs = np.concatenate([
      decoders.shift(targets),
      *(  # each row has one input changed
          np.where(np.arange(6) == i, 47, decoders.shift(targets))
          for i in range(6)
      ),
  ])
  logits = decoders.apply(
      network,
      params,
      inputs,
      np.repeat(targets, 7, axis=0),
      decoder_causal_attention=(
          np.repeat(prefix, 7, axis=0) if is_prefix else None
      ),
  )
  moved = np.abs(logits[1:] - logits[:1]).max(-1).T > 1e-4  # [seer, seen]
  sees = np.tril(np.ones((6, 6), bool))
  if is_prefix:
    sees[:3, :3] = True
  np.testing.assert_array_equal(moved, sees)


@every_architecture
@pytest.mark.parametrize('scan_layers', [False, True])
def test_decoding_step_by_step_gives_the_logits_of_teacher_forcing(
    name, scan_layers
):
  network = decoders.make(name, scan_layers=scan_layers)
  params = decoders.make_variables(network)['params']
  targets = decoders.make_targets()
  inputs = decoders.shift(targets)
  expected = decoders.apply(network, params, inputs, targets)
  cache = make_cache(network, params, jnp.asarray(inputs))
  for position in range(10):
    logits, cache = take_step(
        network, params, cache, inputs[:, position], length=10
    )
    np.testing.assert_allclose(logits, expected[:, position], **TOLERANCE)


@every_architecture
@pytest.mark.parametrize('is_prefix', [False, True])
@pytest.mark.parametrize('scan_layers', [False, True])
def test_decoding_after_a_prefill_gives_the_logits_of_teacher_forcing(
    name, is_prefix, scan_layers
):
  network = decoders.make(name, scan_layers=scan_layers)
  params = decoders.make_variables(network)['params']
  targets = decoders.make_targets()
  inputs = decoders.shift(targets)
  is_prompt = (np.arange(10) < PREFIX_LENGTHS[:, None]).astype(np.int32)
  expected = decoders.apply(
      network,
      params,
      inputs,
      targets,
      decoder_causal_attention=is_prompt if is_prefix else None,
  )
  cache, lengths = prefill(
      network, params, inputs * is_prompt, is_prompt, is_prefix=is_prefix
  )
  rows = np.arange(3)
  for step in range(5):  # past the end of the last row
    at = np.minimum(lengths + step, 9)
    logits, cache = take_step(network, params, cache, inputs[rows, at],
                              length=10)
    is_real = lengths + step < 10
    np.testing.assert_allclose(
        logits[is_real], expected[rows, at][is_real], **TOLERANCE
    )


def _stacked(plain, scanned):
  """The parameters of a plain network in the layout of a scanned one."""
  plain = decoders.flat(plain)
  stacked = {}
  for path, like in decoders.flat(scanned).items():
    if not path.startswith('decoder/decoder/'):
      stacked[path] = plain[path]
      continue
    name = path.removeprefix('decoder/decoder/')
    layers = [
        plain[f'decoder/layers_{layer}/{name}'].reshape(
            like.shape[:1] + like.shape[2:]
        )
        for layer in range(like.shape[1])
    ]
    stacked[path] = np.stack(layers, axis=1)
  return traverse_util.unflatten_dict(stacked, sep='/')


@pytest.mark.parametrize('name', sorted(set(decoders.ARCHITECTURES) - {'t5x'}))
def test_scanned_layers_give_the_logits_of_plain_ones(name):
  plain = decoders.make(name)
  scanned = decoders.make(name, scan_layers=True)
  params = decoders.make_variables(plain)['params']
  targets = decoders.make_targets()
  inputs = decoders.shift(targets)
  stacked = _stacked(params, decoders.make_variables(scanned)['params'])
  np.testing.assert_allclose(
      decoders.apply(scanned, stacked, inputs, targets),
      decoders.apply(plain, params, inputs, targets),
      **TOLERANCE,
  )


@pytest.mark.parametrize(
    ('name', 'policy'), [('palm', 'minimal'), ('gemma', 'full')]
)
def test_rematerialization_changes_no_number(name, policy):
  targets = decoders.make_targets()
  inputs = decoders.shift(targets)

  def loss_and_gradients(network):
    def loss(params):
      logits = network.apply(
          {'params': params},
          inputs,
          targets,
          enable_dropout=True,
          rngs={'dropout': jax.random.PRNGKey(1)},
      )
      return decoders.losses(logits, targets).sum()

    params = decoders.make_variables(decoders.make(name))['params']
    return jax.jit(
        jax.value_and_grad(loss), compiler_options=decoders.QUICK
    )(params)

  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(
          a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max()
      ),
      loss_and_gradients(decoders.make(name, remat_policy=policy)),
      loss_and_gradients(decoders.make(name)),
  )


LLAMA = {
    'positions': 'rotary', 'mlp_activations': ('silu', 'linear'),
    'head_dim': 128,
}  # fmt: skip
GEMMA = {
    'positions': 'rotary', 'norm': 'rms_from_one', 'head_dim': 256,
    'logits_via_embedding': True, 'embedding_scale': 'inputs',
    'vocab_size': 256_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ('changes', 'count'),
    [
        # The parameters of the published checkpoints.
        (  # Llama 2 7B
            LLAMA | {
                'vocab_size': 32_000, 'emb_dim': 4096, 'num_heads': 32,
                'mlp_dim': 11_008, 'num_layers': 32,
            },
            6_738_415_616,
        ),
        (  # Llama 3 8B
            LLAMA | {
                'vocab_size': 128_256, 'emb_dim': 4096, 'num_heads': 32,
                'num_kv_heads': 8, 'mlp_dim': 14_336, 'num_layers': 32,
            },
            8_030_261_248,
        ),
        (  # Gemma 2B
            GEMMA | {
                'emb_dim': 2048, 'num_heads': 8, 'num_kv_heads': 1,
                'mlp_dim': 16_384, 'num_layers': 18,
            },
            2_506_172_416,
        ),
        (  # Gemma 2 2B
            GEMMA | {
                'emb_dim': 2304, 'num_heads': 8, 'num_kv_heads': 4,
                'mlp_dim': 9216, 'num_layers': 26, 'post_norms': True,
            },
            2_614_341_888,
        ),
    ],
)  # fmt: skip
def test_published_sizes_have_the_published_number_of_parameters(
    changes, count
):
  network = decoder_only.DecoderWrapper(
      decoders.TINY.replace(scan_layers=True, **changes)  # quicker to trace
  )
  tokens = jax.ShapeDtypeStruct((1, 4), jnp.int32)
  params = jax.eval_shape(
      lambda key, x: network.init(key, x, x, enable_dropout=False)['params'],
      jax.random.key(0),
      tokens,
  )
  assert sum(math.prod(x.shape) for x in jax.tree.leaves(params)) == count


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'num_kv_heads': 3}, 'num_kv_heads is 3.*divisor of num_heads = 4'),
        ({'num_kv_heads': 0}, 'num_kv_heads is 0.*divisor'),
        ({'positions': 'rotary', 'head_dim': 3}, 'head_dim is 3.*even'),
        ({'positions': 'rope'}, "'rope'.*'rotary'"),
        ({'norm': 'batch'}, "'batch'.*'rms'"),
        ({'embedding_scale': True}, "True.*'logits'"),
        ({'logits_softcap': 0.0}, r'logits_softcap is 0\.0.*above 0.*None'),
        ({'norm_epsilon': -1.0}, r'norm_epsilon is -1\.0.*above 0'),
        ({'num_layers': 0}, 'TransformerConfig.num_layers is 0.*at least 1'),
        ({'mlp_activations': ()}, r'mlp_activations is \(\).*at least one'),
    ],
)
def test_impossible_configuration_is_refused_when_built(change, message):
  with pytest.raises(ValueError, match=message):
    decoder_only.DecoderWrapper(decoders.TINY.replace(**change))


def test_a_cache_is_filled_with_one_unpacked_prompt_at_a_time():
  network = decoders.make('t5x')
  params = decoders.make_variables(network)['params']
  tokens = decoders.make_targets()

  def call(**modes):
    network.apply(
        {'params': params}, tokens, tokens, enable_dropout=False,
        mutable=['cache'], **modes,
    )  # fmt: skip

  with pytest.raises(ValueError, match='decode=True and prefill=True'):
    call(decode=True, prefill=True)
  with pytest.raises(ValueError, match='decoder_segment_ids.*pack=False'):
    call(decode=True, decoder_segment_ids=tokens)
  cache = make_cache(network, params, jnp.asarray(tokens))
  with pytest.raises(ValueError, match='pad the prompt'):
    network.apply(
        {'params': params, 'cache': cache}, tokens[:, :5], tokens[:, :5],
        enable_dropout=False, mutable=['cache'], prefill=True,
    )  # fmt: skip
