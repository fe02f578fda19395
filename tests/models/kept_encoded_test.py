# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoding with kept keys and values gives what T5X's way gives."""

import functools

from flax.linen import partitioning
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild.decoding import beam
from t5wild.decoding import greedy
from t5wild.decoding import sampling
from t5wild.models import encoder_decoder
from t5wild.models import kept_encoded
from t5wild.networks import transformer
from tests import t5x_network

_BATCH, _INPUTS, _TARGETS = 8, 14, 6
_QUICK = {'xla_backend_optimization_level': 0}  # to compile
_TOP_9 = functools.partial(sampling.temperature_sample, topk=9)
_SMALL = {'num_encoder_layers': 1, 'num_decoder_layers': 1}
_NETWORKS = {
    'plain': _SMALL,
    'scanned': _SMALL | {'scan_layers': True, 'num_decoder_layers': 3},
    'grouped': _SMALL | {'num_kv_heads': 2, 'normalize_heads': True},
}


class _T5xNetwork(transformer.Transformer):
  """A network of a user who knows T5X's `decode` and no more."""

  def decode(
      self,
      encoded,
      encoder_input_tokens,
      decoder_input_tokens,
      decoder_target_tokens,
      enable_dropout=True,
      decode=False,
      max_decode_length=None,
      **more,
  ):
    assert encoded.shape[0] == decoder_input_tokens.shape[0]
    assert encoder_input_tokens.shape[0] == decoder_input_tokens.shape[0]
    return super().decode(
        encoded,
        encoder_input_tokens,
        decoder_input_tokens,
        decoder_target_tokens,
        enable_dropout=enable_dropout,
        decode=decode,
        max_decode_length=max_decode_length,
        **more,
    )


def _make_batch():
  random = np.random.RandomState(0)
  inputs = random.randint(3, 300, (_BATCH, _INPUTS))
  inputs[0, -5:] = 0
  return {
      'encoder_input_tokens': jnp.asarray(inputs),
      'decoder_input_tokens': jnp.zeros((_BATCH, _TARGETS), jnp.int32),
  }


def _config(network):
  return t5x_network.PLAIN.replace(**_NETWORKS[network])


def _make_model(
    decode_fn,
    *,
    network='plain',
    network_cls=transformer.Transformer,
    model_cls=encoder_decoder.EncoderDecoderModel,
):
  vocabulary = t5x_network.Vocabulary()
  return model_cls(
      network_cls(_config(network)), vocabulary, vocabulary, None,
      decode_fn=decode_fn,
  )  # fmt: skip


@functools.cache
def _make_variables(network='plain'):
  model = _make_model(None, network=network)
  shapes = {name: x.shape for name, x in _make_batch().items()}
  return jax.jit(
      lambda key: model.get_initial_variables(key, shapes),
      compiler_options=_QUICK,
  )(jax.random.PRNGKey(0))


def _compile(model, num_decodes, network='plain'):
  """The compiled decoding of all decodes, and its arguments."""
  arguments = _make_variables(network)['params'], _make_batch()

  def predict(params, batch):
    return model.predict_batch_with_aux(
        params, batch, num_decodes=num_decodes, return_all_decodes=True
    )

  lowered = jax.jit(predict).lower(*arguments)
  return lowered.compile(compiler_options=_QUICK), arguments


@pytest.mark.slow
@pytest.mark.parametrize(
    ('network', 'decode_fn', 'num_decodes'),
    [
        ('plain', greedy.greedy_decode, 1),
        ('plain', beam.beam_search, 4),
        ('scanned', beam.beam_search, 4),
        ('grouped', _TOP_9, 2),
    ],
)
def test_kept_keys_change_no_token_and_no_score(
    network, decode_fn, num_decodes
):
  make = functools.partial(_make_model, decode_fn, network=network)
  results = []
  for network_cls in (transformer.Transformer, _T5xNetwork):
    model = make(network_cls=network_cls)
    is_kept = kept_encoded.is_kept_by(model.module)
    assert is_kept == (network_cls is transformer.Transformer)
    predict, arguments = _compile(model, num_decodes, network)
    results.append(predict(*arguments))
  (tokens, aux), (expected, expected_aux) = results
  np.testing.assert_array_equal(tokens, expected)
  assert len(np.unique(tokens)) > 10
  # Products of four queries may be summed in another order than of one.
  np.testing.assert_allclose(aux['scores'], expected_aux['scores'], rtol=1e-6)


@pytest.mark.slow
def test_encoded_inputs_are_not_repeated_for_each_decode():
  cfg = _config('plain')
  rows = _BATCH * 4
  keys = (rows, cfg.num_heads, _INPUTS, cfg.head_dim)
  encoded = (rows, _INPUTS, cfg.emb_dim)
  is_repeated = []
  for network_cls in (transformer.Transformer, _T5xNetwork):
    model = _make_model(beam.beam_search, network_cls=network_cls)
    program = _compile(model, 4)[0].as_text()
    is_repeated.append(
        any(
            f'[{",".join(map(str, shape))}]' in program
            for shape in (keys, encoded)
        )
    )
  assert is_repeated == [False, True]


class _OwnSteps(encoder_decoder.EncoderDecoderModel):
  """A model of a user who overrides T5X's step: token 7 is never decoded."""

  def _compute_logits_from_slice(
      self, decoding_state, params, encoded_inputs, raw_inputs,
      max_decode_length,
  ):  # fmt: skip
    assert encoded_inputs.shape[:2] == raw_inputs.shape == (_BATCH * 4, _INPUTS)
    logits, cache = super()._compute_logits_from_slice(
        decoding_state, params, encoded_inputs, raw_inputs, max_decode_length
    )
    return logits.at[:, 7].set(-1e9), cache


@pytest.mark.slow
def test_a_model_with_steps_of_its_own_gets_the_arguments_of_t5x():
  model = _make_model(beam.beam_search, model_cls=_OwnSteps)
  predict, arguments = _compile(model, 4)
  tokens, _ = predict(*arguments)
  assert not np.any(tokens == 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('shape', 'num_decodes'), [((8, 1, 1), 3), ((2, 2, 2), 3), ((1, 4, 2), 1)]
)
def test_decodes_are_equal_on_every_mesh(shape, num_decodes):
  model = _make_model(beam.beam_search)
  predict, (params, batch) = _compile(model, num_decodes)
  tokens, aux = predict(params, batch)
  rules = (
      ('batch', 'data'), ('heads', 'model'), ('joined_kv', 'model'),
      ('mlp', 'model'), ('vocab', 'model'), ('length', 'sequence'),
  )  # fmt: skip
  names = ('data', 'model', 'sequence')
  mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(shape), names)
  rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data'))
  axes = partitioning.get_axis_names(_make_variables()['params_axes'])

  def put(x, spec):
    spec = partitioning.logical_to_mesh_axes(spec, rules)
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))

  with jax.set_mesh(mesh), partitioning.axis_rules(rules):
    on_mesh, on_mesh_aux = jax.jit(
        lambda params, batch: model.predict_batch_with_aux(
            params, batch, num_decodes=num_decodes, return_all_decodes=True
        ),
        compiler_options=_QUICK,
    )(jax.tree.map(put, params, axes), jax.device_put(batch, rows))
  np.testing.assert_array_equal(on_mesh, tokens)
  # Summed over devices in another order.
  np.testing.assert_allclose(
      on_mesh_aux['scores'], aux['scores'], rtol=1e-5
  )


def test_rows_that_are_not_decodes_of_the_inputs_are_refused():
  network = transformer.Transformer(_config('plain'))
  tokens = jnp.ones((5, 1), jnp.int32)

  def decode(params, **more):
    return network.apply(
        {'params': params}, jnp.ones((2, 4, 32)), jnp.ones((2, 4), jnp.int32),
        tokens, tokens,
        enable_dropout=False, method='decode', mutable=['cache'], **more,
    )  # fmt: skip

  params = _make_variables()['params']
  with pytest.raises(ValueError, match='num_decodes=3.*5 rows.*2 encoded'):
    decode(params, decode=True, num_decodes=3)
  with pytest.raises(ValueError, match='decode=False'):
    decode(params, num_decodes=1)
