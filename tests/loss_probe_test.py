# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of the probe: fixed, and those of a language model alone."""

import jax
import numpy as np
import pytest

from t5wild import loss_probe

_SHAPES = {
    name: jax.ShapeDtypeStruct((16, 8), np.int32)
    for name in (
        'encoder_input_tokens', 'decoder_target_tokens', 'decoder_input_tokens',
        'decoder_loss_weights', 'encoder_segment_ids', 'encoder_positions',
    )
}  # fmt: skip


def test_the_examples_are_the_same_for_any_number_of_rows():
  few = loss_probe.make_batch(_SHAPES, vocab_size=100, rows=4)
  many = loss_probe.make_batch(_SHAPES, vocab_size=100, rows=12)
  assert few.keys() == _SHAPES.keys()
  for name, values in few.items():
    np.testing.assert_array_equal(many[name], np.tile(values, (3, 1)))
    assert values.dtype == np.int32
  tokens = few['decoder_target_tokens']
  assert tokens.min() >= 1
  assert tokens.max() < 100
  np.testing.assert_array_equal(
      few['decoder_input_tokens'][:, 1:], tokens[:, :-1]
  )


def test_examples_of_another_length_or_vocabulary_have_another_name():
  def name(vocab_size=100, rows=4, shapes=_SHAPES):
    return loss_probe.name_of(
        loss_probe.make_batch(shapes, vocab_size=vocab_size, rows=rows)
    )

  longer = {
      n: jax.ShapeDtypeStruct((16, 9), np.int32) for n in _SHAPES
  }  # fmt: skip
  assert name() == name(rows=12)
  assert len({name(), name(vocab_size=99), name(shapes=longer)}) == 3


class _Model:
  """Has a vocabulary; its trainer gives each batch the loss it is told."""

  class _Vocabulary:
    vocab_size = 100

  input_vocabulary = output_vocabulary = _Vocabulary()

  def __init__(self, loss):
    self.loss = loss

  data_mesh_size = 1

  def host_rows(self, rows):
    return slice(rows)

  def global_batch(self, batch):
    return batch

  def compile_eval(self, batches):
    pass

  def eval_batches(self, name, batches):
    class _Metric:

      def __init__(self, loss):
        self.loss = np.float32(loss)

      def compute(self):
        return self.loss

    jax.tree_util.register_pytree_node(
        _Metric, lambda m: ((m.loss,), None), lambda _, leaf: _Metric(*leaf)
    )
    return {'loss_per_nonpadding_target_token': _Metric(self.loss)}, 1


def _probe(loss, *, length=8):
  fake = _Model(loss)
  probe = loss_probe.LossProbe(trainer=fake, model=fake, partitioner=fake)
  probe.prepare({
      name: jax.ShapeDtypeStruct((16, length), np.int32) for name in _SHAPES
  })
  return probe


def test_another_loss_of_the_same_examples_is_refused_and_of_others_is_told(
    tmp_path, caplog
):
  (tmp_path / 'integrity').mkdir()
  probe = _probe(2.0)
  probe.write(str(tmp_path), probe.start())
  _probe(2.0).check(str(tmp_path))
  with pytest.raises(loss_probe.OtherModelError, match='another model'):
    _probe(2.5).check(str(tmp_path))
  _probe(2.5, length=12).check(str(tmp_path))


@pytest.mark.parametrize('change', [
    {'image': jax.ShapeDtypeStruct((16, 8, 8), np.float32)},
    {'labels': jax.ShapeDtypeStruct((16, 8), np.int32)},
])
def test_other_models_have_none(change):
  assert loss_probe.make_batch(
      {**_SHAPES, **change}, vocab_size=100, rows=4
  ) is None
