# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Mesh-TensorFlow T5 come under T5X's names."""

import json
import sys

import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import formats
from t5wild.checkpoints import stored
from t5wild.checkpoints import tf_import

# Mesh-TensorFlow's names of what T5X has in each layer.
_ENCODER = {
    'layer_000/SelfAttention/q': 'attention/query/kernel',
    'layer_000/SelfAttention/k': 'attention/key/kernel',
    'layer_000/SelfAttention/v': 'attention/value/kernel',
    'layer_000/SelfAttention/o': 'attention/out/kernel',
    'layer_000/layer_norm/scale': 'pre_attention_layer_norm/scale',
    'layer_001/DenseReluDense/wi_0/kernel': 'mlp/wi_0/kernel',
    'layer_001/DenseReluDense/wi_1/kernel': 'mlp/wi_1/kernel',
    'layer_001/DenseReluDense/wo/kernel': 'mlp/wo/kernel',
    'layer_001/rms_norm/scale': 'pre_mlp_layer_norm/scale',
}
_DECODER = {
    **{
        f'layer_000/SelfAttention/{a}': f'self_attention/{b}/kernel'
        for a, b in zip('qkvo', ('query', 'key', 'value', 'out'), strict=True)
    },
    **{
        f'layer_001/EncDecAttention/{a}': (
            f'encoder_decoder_attention/{b}/kernel'
        )
        for a, b in zip('qkvo', ('query', 'key', 'value', 'out'), strict=True)
    },
    'layer_000/layer_norm/scale': 'pre_self_attention_layer_norm/scale',
    'layer_001/layer_norm/scale': 'pre_cross_attention_layer_norm/scale',
    'layer_002/layer_norm/scale': 'pre_mlp_layer_norm/scale',
    'layer_002/DenseReluDense/wi_0/kernel': 'mlp/wi_0/kernel',
    'layer_002/DenseReluDense/wi_1/kernel': 'mlp/wi_1/kernel',
    'layer_002/DenseReluDense/wo/kernel': 'mlp/wo/kernel',
}
_BIAS = 'block_000/layer_000/SelfAttention/relative_attention_bias'


def _names(num_layers=2):
  """Mesh-TensorFlow's name -> T5X's, of all parameters."""
  names = {
      'shared/embedding': 'token_embedder/embedding',
      'decoder/logits/kernel': 'decoder/logits_dense/kernel',
  }
  for tower, layer in (('encoder', _ENCODER), ('decoder', _DECODER)):
    for number in range(num_layers):
      names |= {
          f'{tower}/block_{number:03d}/{a}': f'{tower}/layers_{number}/{b}'
          for a, b in layer.items()
      }
    names[f'{tower}/{_BIAS}'] = f'{tower}/relpos_bias/rel_embedding'
    last = 'final_layer_norm' if tower == 'encoder' else 'rms_norm'
    names[f'{tower}/{last}/scale'] = f'{tower}/{tower}_norm/scale'
  return names


def _array(value):
  return stored.InMemory(np.asarray(value), key='tf')


def test_every_parameter_of_t5x_has_its_name(t5x_fixtures):
  folder = t5x_fixtures / 'encoder_decoder'
  shapes = json.loads((folder / 'state_dict_shapes.json').read_text())
  given = {'global_step': _array(7)}
  for theirs, ours in _names().items():
    shape = shapes[f'target/{ours}'][0]
    given[theirs] = _array(np.zeros(shape, 'f4'))
    state = f'state/param_states/{ours}'
    if shapes[f'{state}/v'][0] == [1]:
      given[f'{theirs}_slot_vr'] = _array(
          np.zeros(shapes[f'{state}/v_row'][0], 'f4')
      )
      given[f'{theirs}_slot_vc'] = _array(
          np.zeros(shapes[f'{state}/v_col'][0], 'f4')
      )
    else:
      given[f'{theirs}_slot_v'] = _array(np.zeros(shape, 'f4'))
  renamed = tf_import.rename(given, where='p')
  assert {k: [list(v.shape), str(v.dtype)] for k, v in renamed.items()} == (
      shapes
  )
  assert int(np.asarray(renamed['state/step'])) == 7


def test_bias_of_every_layer_stays_in_its_layer():
  name = 'encoder/block_{:03d}/layer_000/SelfAttention/relative_attention_bias'
  one = tf_import.rename({name.format(0): _array([1.0])}, where='p')
  assert list(one) == ['target/encoder/relpos_bias/rel_embedding']
  two = {name.format(i): _array([float(i)]) for i in (0, 11)}
  assert sorted(tf_import.rename(two, where='p')) == [
      f'target/encoder/layers_{i}/relpos_bias/rel_embedding' for i in (0, 11)
  ]


def test_decoder_alone_and_older_networks_are_known():
  names = {
      'transformer/embedding': 'decoder/token_embedder/embedding',
      'transformer/block_001/layer_001/layer_norm/scale': (
          'decoder/layers_1/pre_mlp_layer_norm/scale'
      ),
      'transformer/final_layer_norm/scale': 'decoder/decoder_norm/scale',
      'transformer/logits/kernel': 'decoder/logits_dense/kernel',
      'encoder/block_002/layer_001/DenseReluDense/wi/kernel': (
          'encoder/layers_2/mlp/wi/kernel'
      ),
  }
  renamed = tf_import.rename({n: _array([0.0]) for n in names}, where='p')
  assert sorted(renamed) == sorted(f'target/{k}' for k in names.values())


def test_array_that_no_t5_has_is_named():
  with pytest.raises(steps.NotACheckpointError, match='bert/pooler'):
    tf_import.rename({'bert/pooler': _array([0.0])}, where='p')


def test_without_tensorflow_the_mend_is_told(tmp_path, monkeypatch):
  (tmp_path / 'model.ckpt-5.index').write_text('')
  monkeypatch.setitem(sys.modules, 'tensorflow', None)
  with pytest.raises(steps.NotACheckpointError, match='pip install tensorflow'):
    formats.read_structure(tmp_path / 'model.ckpt-5')


@pytest.mark.slow  # It imports TensorFlow.
def test_checkpoint_written_by_tensorflow_is_read(tmp_path):
  import tensorflow as tf

  numbers = np.arange(6, dtype='f4').reshape(2, 3)
  for step in (5, 30):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / f'model.ckpt-{step}'),
        tensor_names=['shared/embedding', 'global_step'],
        shape_and_slices=['', ''],
        tensors=[numbers * step, np.int64(step)],
    )
  (tmp_path / 'checkpoint').write_text(
      'model_checkpoint_path: "model.ckpt-30"\n'
  )
  for mode, expected in (('latest', [30]), ('all', [5, 30])):
    cfg = configs.RestoreCheckpointConfig(str(tmp_path), mode)
    paths = cfg.checkpoint_paths()
    assert paths == [str(tmp_path / f'model.ckpt-{s}') for s in expected]
  read = formats.read_structure(paths[0])
  assert read['state/step'].dtype == np.int32
  assert int(np.asarray(read['state/step'])) == 5
  embedding = read['target/token_embedder/embedding']
  np.testing.assert_array_equal(np.asarray(embedding), numbers * 5)
  part = (slice(1, 2), slice(0, 2))
  np.testing.assert_array_equal(embedding.read(part), numbers[part] * 5)
  (tmp_path / 'model.ckpt-5.index').write_bytes(b'words')
  with pytest.raises(steps.NotACheckpointError, match='copy all of them'):
    formats.read_structure(paths[0])
