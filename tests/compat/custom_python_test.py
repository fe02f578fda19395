# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Python that was written against T5X does what it did there."""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip('seqio')


@pytest.fixture
def theirs(t5x_names):
  """The module of code that imports t5x."""
  path = pathlib.Path(__file__).with_name('their_code.py')
  spec = importlib.util.spec_from_file_location('their_code', path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _batch():
  tokens = np.random.default_rng(0).integers(3, 300, (8, 4)).astype(np.int32)
  return {
      'encoder_input_tokens': jnp.asarray(tokens),
      'decoder_input_tokens': jnp.asarray(np.pad(tokens, ((0, 0), (1, 0))))[
          :, :-1
      ],
      'decoder_target_tokens': jnp.asarray(tokens),
      'decoder_loss_weights': jnp.ones((8, 4), jnp.int32),
  }


def _params(theirs, model):
  return model.get_initial_variables(
      jax.random.PRNGKey(0), theirs.SHAPES
  )['params']


def test_an_overridden_loss_with_a_metric_of_its_own_trains(theirs):
  model = theirs.make_model(theirs.FocalModel, gamma=0.25, z_loss=0.0)
  plain = theirs.make_model(z_loss=0.0)
  params = _params(theirs, plain)
  loss, metrics = model.loss_fn(params, _batch(), None)
  np.testing.assert_allclose(
      loss, 0.25 * plain.loss_fn(params, _batch(), None)[0], rtol=1e-5
  )
  assert metrics['my/focal'].compute() == pytest.approx(float(loss), rel=1e-5)
  trainer, values = theirs.train(model, [_batch()] * 2, shapes=theirs.SHAPES)
  assert int(trainer.train_state.step) == 2
  assert 'my/focal' in values


def test_overridden_logits_reach_loss_and_scores(theirs):
  model, plain = theirs.make_model(theirs.DoubledLogits), theirs.make_model()
  params = _params(theirs, plain)
  np.testing.assert_allclose(
      model._compute_logits(params, _batch()),
      2.0 * plain._compute_logits(params, _batch()),
  )
  assert not np.allclose(
      model.score_batch(params, _batch()), plain.score_batch(params, _batch())
  )


@pytest.mark.parametrize('network', ['WithAxes', 'WithBoxes'])
def test_a_model_from_nothing_trains_however_its_network_names_axes(
    theirs, network
):
  model = theirs.Regression(
      getattr(theirs, network)(),
      theirs.HalvedAdafactor(min_dim_size_to_factor=2),
  )
  batch = {'x': jnp.ones((8, 4)), 'y': jnp.zeros((8,))}
  trainer, values = theirs.train(
      model,
      [batch] * 3,
      shapes={'x': (8, 4), 'y': (8,)},
      trainer_cls=theirs.CountingTrainer,
      note='mine',
  )
  assert trainer.note == 'mine'
  kernel = trainer.train_state.params['kernel']
  assert np.all(np.asarray(kernel)[:, 0] < 1.0)  # moved towards the target
  axes = theirs.make_partitioner().get_logical_axes(trainer.train_state)
  assert tuple(axes.params['kernel']) == ('embed', 'mlp')
  assert 'loss' in values


def test_configs_are_subclassed_and_made_with_t5x_arguments(theirs):
  assert theirs.PinnedRestore(path='/none', mode='latest').is_pinned
  assert theirs.CHECKPOINT_CONFIG.save.period == 10


def test_a_logit_callback_steers_sampling(theirs):
  logits = jnp.array([[9.0, 1.0, 2.0]])
  decodes, _ = theirs.decoding.temperature_sample(
      jnp.zeros((1, 4), jnp.int32),
      {},
      lambda state: (logits, state.cache),
      -1,
      logit_callback_fn=theirs.first_token_zero,
  )
  assert decodes.tolist() == [[[2, 2, 2, 2]]]


def test_what_utils_had_for_binaries_is_there(theirs, tmp_path):
  utils, model = theirs.utils, theirs.make_model()
  partitioner = theirs.make_partitioner()
  _, state = theirs.make_state(model, partitioner, theirs.SHAPES)
  utils.log_model_info(str(tmp_path / 'info.txt'), state, partitioner)
  assert 'parameters: ' in (tmp_path / 'info.txt').read_text()
  batch = utils.get_zeros_batch_like_spec(
      {'x': jax.ShapeDtypeStruct((2, 3), jnp.int32)}
  )
  assert batch['x'].shape == (2, 3)
  assert utils.round_vocab_size_to_multiple(model.input_vocabulary) == 384
  assert utils.get_local_data(jnp.ones(2)).shape == (2,)
  assert utils.flatten_dict_string_keys({'a': {'b': 1}}) == {'a/b': 1}
  utils.sync_global_devices('here')
  utils.multihost_assert_equal({'a': np.ones(1)}, 'differs')


def test_axis_names_are_overridden_by_rules(theirs):
  model = theirs.make_model()
  variables = model.get_initial_variables(jax.random.PRNGKey(0), theirs.SHAPES)
  changed = theirs.utils.override_params_axes_names(
      variables, [('.*/wi/kernel', ('embed', 'mine'))]
  )
  axes = changed['params_axes']['decoder']['layers_0']['mlp']['wi']
  assert axes['kernel_axes'].names == ('embed', 'mine')
  with pytest.raises(ValueError, match='expected 2 names'):
    theirs.utils.override_params_axes_names(
        variables, [('.*/wi/kernel', ('embed',))]
    )
