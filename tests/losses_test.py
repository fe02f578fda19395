# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Losses against their formulas in float64."""

import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild import losses

_VOCAB = 11
# float32 has 6e-8; a loss is a few operations on it.
_RTOL = 1e-6


def _make_tokens(*, seed=0, batch=3, length=5, vocab=_VOCAB):
  """Logits, integer targets and 0/1 weights."""
  rng = np.random.RandomState(seed)
  logits = rng.normal(scale=3.0, size=(batch, length, vocab))
  targets = rng.randint(0, vocab, size=(batch, length))
  weights = rng.randint(0, 2, size=(batch, length))
  return (
      jnp.asarray(logits, jnp.float32),
      jnp.asarray(targets, jnp.int32),
      jnp.asarray(weights, jnp.int32),
  )


def _log_softmax(logits):
  """(log softmax, log z) in float64."""
  logits = np.asarray(logits, np.float64)
  log_z = np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
  return logits - log_z, log_z[..., 0]


def _soft_targets(targets, *, label_smoothing, vocab=_VOCAB):
  off = label_smoothing / (vocab - 1)
  soft = np.full((*targets.shape, vocab), off)
  np.put_along_axis(
      soft, np.asarray(targets)[..., None], 1.0 - label_smoothing, axis=-1
  )
  return soft


@pytest.mark.parametrize('label_smoothing', [0.0, 0.1])
@pytest.mark.parametrize('z_loss', [0.0, 0.01])
def test_loss_is_the_formula(label_smoothing, z_loss):
  logits, targets, weights = _make_tokens()
  log_softmax, log_z = _log_softmax(logits)
  soft = _soft_targets(targets, label_smoothing=label_smoothing)
  entropy = -np.sum(soft * np.log(np.maximum(soft, 1e-300)), axis=-1)
  w = np.asarray(weights)
  expected_z = np.sum(z_loss * log_z**2 * w)
  expected = expected_z + np.sum(
      (-np.sum(soft * log_softmax, axis=-1) - entropy) * w
  )
  loss, z, weight_sum = losses.compute_weighted_cross_entropy(
      logits, targets, weights, label_smoothing, z_loss
  )
  np.testing.assert_allclose(loss, expected, rtol=_RTOL)
  np.testing.assert_allclose(z, expected_z, rtol=_RTOL)
  assert weight_sum == w.sum()


@pytest.mark.parametrize('label_smoothing', [0.0, 0.1])
def test_gradient_is_the_formula(label_smoothing):
  logits, targets, weights = _make_tokens()
  z_loss, factor = 0.01, 7.0
  log_softmax, log_z = _log_softmax(logits)
  soft = _soft_targets(targets, label_smoothing=label_smoothing)
  scale = np.asarray(weights)[..., None] / factor
  expected = scale * (
      (1 + 2 * z_loss * log_z)[..., None] * np.exp(log_softmax) - soft
  )
  gradient = jax.grad(
      lambda x: losses.compute_weighted_cross_entropy(
          x, targets, weights, label_smoothing, z_loss, factor
      )[0]
  )(logits)
  np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.parametrize('label_smoothing', [0.0, 0.1])
def test_labels_and_distributions_give_the_same(label_smoothing):
  logits, targets, weights = _make_tokens(seed=1)
  soft = jnp.asarray(
      _soft_targets(targets, label_smoothing=label_smoothing), jnp.float32
  )

  def by_labels(x):
    loss, z = losses.cross_entropy_with_labels(
        x, targets, z_loss=0.1, label_smoothing=label_smoothing
    )
    return jnp.sum(loss * weights), (loss, z)

  def by_distributions(x):
    loss, z = losses.cross_entropy_with_logits(x, soft, z_loss=0.1)
    return jnp.sum(loss * weights), (loss, z)

  (_, one), one_gradient = jax.value_and_grad(by_labels, has_aux=True)(logits)
  (_, two), two_gradient = jax.value_and_grad(by_distributions, has_aux=True)(
      logits
  )
  np.testing.assert_allclose(one[0], two[0], rtol=_RTOL, atol=1e-6)
  np.testing.assert_allclose(one[1], two[1], rtol=_RTOL)
  np.testing.assert_allclose(one_gradient, two_gradient, atol=1e-6)


def test_returned_z_loss_passes_no_gradient():
  logits, targets, _ = _make_tokens()
  soft = jax.nn.one_hot(targets, _VOCAB)
  for per_token in (
      lambda x: losses.cross_entropy_with_logits(x, soft, 0.1)[1],
      lambda x: losses.cross_entropy_with_labels(x, targets, z_loss=0.1)[1],
  ):
    gradient = jax.grad(lambda x, f=per_token: jnp.sum(f(x)))(logits)
    assert not np.any(gradient)


def test_gradient_by_target_distribution_is_minus_log_softmax():
  logits, targets, _ = _make_tokens()
  soft = jax.nn.one_hot(targets, _VOCAB)
  gradient = jax.grad(
      lambda t: jnp.sum(losses.cross_entropy_with_logits(logits, t, 0.0)[0])
  )(soft)
  np.testing.assert_allclose(gradient, -_log_softmax(logits)[0], rtol=1e-5)


def test_backward_pass_keeps_no_copy_of_the_logits():
  logits, targets, weights = _make_tokens()
  _, vjp = jax.vjp(
      lambda x: losses.compute_weighted_cross_entropy(
          x, targets, weights, 0.1, 1e-4
      )[0],
      logits,
  )
  leaves = jax.tree.leaves(vjp)
  kept = [leaf for leaf in leaves if jnp.size(leaf) >= logits.size]
  assert len(kept) == 1
  np.testing.assert_array_equal(kept[0], logits)


def test_loss_of_bfloat16_logits_is_computed_in_float32():
  logits, targets, weights = _make_tokens()
  low = logits.astype(jnp.bfloat16)

  def loss_fn(x):
    return losses.compute_weighted_cross_entropy(x, targets, weights)[0]

  loss, gradient = jax.value_and_grad(loss_fn)(low)
  assert loss.dtype == jnp.float32
  assert gradient.dtype == jnp.bfloat16
  exact = loss_fn(low.astype(jnp.float32))
  np.testing.assert_allclose(loss, exact, rtol=_RTOL)


@pytest.mark.parametrize('label_smoothing', [0.0, 0.1])
def test_sharded_vocabulary_gives_the_same_without_gathering_logits(
    label_smoothing,
):
  logits, targets, weights = _make_tokens(batch=4, length=6, vocab=32)

  def loss_fn(x, targets, weights):
    return losses.compute_weighted_cross_entropy(
        x, targets, weights, label_smoothing, 1e-3
    )[0]

  step = jax.value_and_grad(loss_fn)
  mesh = jax.make_mesh(
      (2, 4),
      ('data', 'model'),
      axis_types=(jax.sharding.AxisType.Auto,) * 2,
  )
  of_logits = jax.NamedSharding(mesh, jax.P('data', None, 'model'))
  of_tokens = jax.NamedSharding(mesh, jax.P('data'))
  replicated = jax.NamedSharding(mesh, jax.P())
  sharded = jax.jit(
      step,
      in_shardings=(of_logits, of_tokens, of_tokens),
      out_shardings=(replicated, of_logits),
  )
  program = sharded.lower(logits, targets, weights).compile()
  assert 'all-gather' not in program.as_text()
  placed = jax.device_put(
      (logits, targets, weights), (of_logits, of_tokens, of_tokens)
  )
  loss, gradient = program(*placed)
  expected, expected_gradient = step(logits, targets, weights)
  np.testing.assert_allclose(loss, expected, rtol=_RTOL)
  np.testing.assert_allclose(gradient, expected_gradient, atol=1e-6)


def test_masked_classes_do_not_poison_the_loss():
  logits, targets, _ = _make_tokens()
  targets = jnp.minimum(targets, _VOCAB - 2)
  masked = logits.at[..., -1].set(-jnp.inf)
  loss, gradient = jax.value_and_grad(
      lambda x: losses.compute_weighted_cross_entropy(x, targets)[0]
  )(masked)
  assert np.isfinite(loss)
  assert np.all(np.isfinite(gradient))


def test_logits_far_from_zero_do_not_overflow():
  logits, targets, _ = _make_tokens()
  near = losses.compute_weighted_cross_entropy(logits, targets)[0]
  far = losses.compute_weighted_cross_entropy(logits + 1e4, targets)[0]
  # float32 at 1e4 keeps logits to 1e-3.
  np.testing.assert_allclose(far, near, rtol=2e-3)


def test_without_weights_every_target_counts():
  logits, targets, _ = _make_tokens()
  ones = jnp.ones_like(targets)
  loss, _, weight_sum = losses.compute_weighted_cross_entropy(logits, targets)
  weighted, _, _ = losses.compute_weighted_cross_entropy(logits, targets, ones)
  assert loss == weighted
  assert weight_sum == targets.size


def test_targets_of_another_shape_are_refused_with_both_shapes():
  logits, targets, _ = _make_tokens()
  with pytest.raises(ValueError, match=r'\(3, 5, 11\)[^()]*\(3, 4\)'):
    losses.compute_weighted_cross_entropy(logits, targets[:, :4])


def test_label_smoothing_outside_a_probability_is_refused():
  logits, targets, _ = _make_tokens()
  with pytest.raises(ValueError, match=r'label_smoothing is 1\.5'):
    losses.compute_weighted_cross_entropy(logits, targets, label_smoothing=1.5)


def test_special_normalisers_are_read_from_names_in_any_case():
  convert = losses.convert_special_loss_normalizing_factor_to_enum
  for factor in losses.SpecialLossNormalizingFactor:
    assert convert(factor.name) is factor
    assert convert(factor.name.lower()) is factor


def test_unknown_normaliser_names_the_closest():
  with pytest.raises(ValueError, match="mean 'NUM_REAL_TARGET_TOKENS'"):
    losses.convert_special_loss_normalizing_factor_to_enum('num_real_tokens')


_TARGETS = jnp.asarray([[1, 2, 3, 4, 0], [5, 6, 0, 0, 0]])
_MASK = np.asarray([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])


@pytest.mark.parametrize('factor', [None, 3.5, 2])
def test_constant_normaliser_is_returned_with_the_batch_weights(factor):
  batch = {'decoder_target_tokens': _TARGETS}
  assert losses.get_loss_normalizing_factor_and_weights(factor, batch) == (
      factor,
      None,
  )
  batch['decoder_loss_weights'] = _TARGETS
  _, weights = losses.get_loss_normalizing_factor_and_weights(factor, batch)
  assert weights is _TARGETS


@pytest.mark.parametrize(
    ('name', 'expected'),
    [('NUM_REAL_TARGET_TOKENS', 6.0), ('NUM_TOTAL_TARGET_TOKENS', 10)],
)
def test_token_counts_of_an_unweighted_batch(name, expected):
  batch = {'decoder_target_tokens': _TARGETS}
  factor, weights = losses.get_loss_normalizing_factor_and_weights(name, batch)
  assert factor == expected
  np.testing.assert_array_equal(weights, _MASK)


def test_real_tokens_are_the_sum_of_given_weights():
  weights = jnp.asarray(_MASK * 0.5)
  batch = {'decoder_target_tokens': _TARGETS, 'decoder_loss_weights': weights}
  factor, _ = losses.get_loss_normalizing_factor_and_weights(
      losses.SpecialLossNormalizingFactor.NUM_REAL_TARGET_TOKENS, batch
  )
  assert factor == 3.0


def _weights_by_loop(weights, segment_ids):
  """Weights divided by their sum over the segment; segments differ in id."""
  divided = np.zeros(weights.shape)
  for row, ids in enumerate(segment_ids):
    for segment in set(ids) - {0}:
      own = ids == segment
      total = weights[row, own].sum()
      if total:
        divided[row, own] = weights[row, own] / total
  return divided


def test_average_per_sequence_of_packed_rows_weighs_sequences_alike():
  segment_ids = np.asarray(
      [[1, 1, 1, 2, 2, 3, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2], [0] * 8, [4] * 8]
  )
  positions = np.asarray(
      [[0, 1, 2, 0, 1, 0, 0, 0], [0, *range(7)], [0] * 8, list(range(8))]
  )
  weights = np.random.RandomState(0).uniform(0.1, 2.0, size=(4, 8))
  weights[0, 3:5] = 0.0  # a sequence without weight
  weights *= segment_ids != 0
  factor, divided = losses.get_loss_normalizing_factor_and_weights(
      'AVERAGE_PER_SEQUENCE',
      {
          'decoder_target_tokens': jnp.asarray(segment_ids),
          'decoder_loss_weights': jnp.asarray(weights, jnp.float32),
          'decoder_segment_ids': jnp.asarray(segment_ids),
          'decoder_positions': jnp.asarray(positions),
      },
  )
  np.testing.assert_allclose(
      divided, _weights_by_loop(weights, segment_ids), rtol=1e-6
  )
  np.testing.assert_allclose(factor, 5.0, rtol=1e-6)


def test_average_per_sequence_of_unpacked_rows_weighs_rows_alike():
  targets = jnp.concatenate([_TARGETS, jnp.zeros((1, 5), jnp.int32)])
  factor, weights = losses.get_loss_normalizing_factor_and_weights(
      'AVERAGE_PER_SEQUENCE', {'decoder_target_tokens': targets}
  )
  np.testing.assert_allclose(weights.sum(axis=-1), [1.0, 1.0, 0.0], rtol=1e-6)
  np.testing.assert_allclose(factor, 2.0, rtol=1e-6)
