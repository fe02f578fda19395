# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The decoder alone keeps its laws, whatever its architecture."""

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.networks import decoders

TOLERANCE = {'rtol': 1e-5, 'atol': 1e-5}  # sums in another order
PREFIX_LENGTHS = np.array([4, 3, 7])

every_architecture = pytest.mark.parametrize('name', decoders.ARCHITECTURES)


@pytest.mark.parametrize(
    ('name', 'scan_layers'),
    [
        *((name, False) for name in decoders.ARCHITECTURES),
        ('t5x', True), ('gemma', True),
    ],
)  # fmt: skip
@pytest.mark.parametrize('is_prefix', [False, True])
def test_packed_examples_have_the_losses_they_have_alone(
    name, scan_layers, is_prefix
):
  network = decoders.make(name, scan_layers=scan_layers)
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
  cache = decoders.make_cache(network, params, jnp.asarray(inputs))
  for position in range(10):
    logits, cache = decoders.take_step(
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
  cache, lengths = decoders.prefill(
      network, params, inputs * is_prompt, is_prompt, is_prefix=is_prefix
  )
  rows = np.arange(3)
  for step in range(5):  # past the end of the last row
    at = np.minimum(lengths + step, 9)
    logits, cache = decoders.take_step(
        network, params, cache, inputs[rows, at], length=10
    )
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
  cache = decoders.make_cache(network, params, jnp.asarray(tokens))
  with pytest.raises(ValueError, match='pad the prompt'):
    network.apply(
        {'params': params, 'cache': cache}, tokens[:, :5], tokens[:, :5],
        enable_dropout=False, mutable=['cache'], prefill=True,
    )  # fmt: skip
