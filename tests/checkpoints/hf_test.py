# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face's models: read, written, and refused."""

import json
import os

import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import confinement
from t5wild.checkpoints import formats
from t5wild.checkpoints import hf_names
from t5wild.checkpoints import hf_writing
from t5wild.checkpoints import safetensors_files
from t5wild.checkpoints import stored

SHAPE = hf_names.Shape(
    num_encoder_layers=2, num_decoder_layers=3, is_gated=True, has_logits=True,
    bias_per_layer=False,
)  # fmt: skip
EMBED, HEADS, KV, MLP, VOCAB, BUCKETS = 8, 2, 3, 10, 12, 32


def _arrays(shape=SHAPE, dtype=np.float32):
  """Parameters by our keys."""
  rng = np.random.default_rng(0)
  sizes = {
      'token_embedder/embedding': (VOCAB, EMBED),
      'logits_dense/kernel': (EMBED, VOCAB),
      'rel_embedding': (HEADS, BUCKETS),
      'out/kernel': (HEADS * KV, EMBED),
      'wo/kernel': (MLP, EMBED),
      'wi/kernel': (EMBED, MLP),
      'wi_0/kernel': (EMBED, MLP),
      'wi_1/kernel': (EMBED, MLP),
      'scale': (EMBED,),
  }
  made = {}
  for pair in hf_names.pairs(shape):
    size = next(
        (n for end, n in sizes.items() if pair.ours.endswith(end)),
        (EMBED, HEADS * KV),
    )
    value = rng.standard_normal(size).astype(dtype)
    made[pair.ours] = stored.InMemory(value, key=pair.ours)
  return made


def _assert_read_back(folder, arrays):
  read = formats.read_structure(folder)
  assert read.keys() == arrays.keys() | {'state/step'}
  for key, array in arrays.items():
    numbers = np.asarray(array)
    assert read[key].dtype == numbers.dtype
    np.testing.assert_array_equal(np.asarray(read[key]), numbers, key)
    part = tuple(slice(n // 3, n // 2 + 1) for n in numbers.shape)
    np.testing.assert_array_equal(read[key].read(part), numbers[part], key)


@pytest.mark.parametrize('dtype', [np.float32, jnp.bfloat16])
@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'is_gated': False, 'has_logits': False},  # T5 1.0
        {'bias_per_layer': True},  # umT5
    ],
)
def test_what_is_written_is_read_back(tmp_path, dtype, changes):
  shape = hf_names.Shape(**{**vars(SHAPE), **changes})
  arrays = _arrays(shape, dtype)
  hf_writing.write(str(tmp_path), arrays)
  assert hf_names.Shape.of_ours(arrays) == shape
  _assert_read_back(tmp_path, arrays)


def test_file_named_outside_the_folder_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(hf_writing, '_MOST_FILE_BYTES', 2000)
  folder = tmp_path / 'model'
  hf_writing.write(str(folder), _arrays())
  index = folder / 'model.safetensors.index.json'
  content = json.loads(index.read_text())
  key = next(iter(content['weight_map']))
  content['weight_map'][key] = '../other.safetensors'
  index.write_text(json.dumps(content))
  with pytest.raises(confinement.UnsafeCheckpointError):
    formats.read_structure(folder)


def test_link_of_a_download_cache_is_read_where_the_user_says_so(tmp_path):
  folder = tmp_path / 'snapshot'
  arrays = _arrays()
  hf_writing.write(str(folder), arrays)
  (folder / 'model.safetensors').rename(tmp_path / 'blob')
  (folder / 'model.safetensors').symlink_to('../blob')
  with pytest.raises(confinement.UnsafeCheckpointError, match='trust_paths'):
    formats.read_structure(folder)
  read = formats.read_structure(folder, trust_paths=True)
  assert read.keys() >= arrays.keys()


@pytest.mark.parametrize('keep', [0, 4, 8, 100, -1])
def test_file_cut_off_is_refused(tmp_path, keep):
  hf_writing.write(str(tmp_path), _arrays())
  file = tmp_path / 'model.safetensors'
  file.write_bytes(file.read_bytes()[:keep])
  with pytest.raises(steps.NotACheckpointError, match='cut off'):
    formats.read_structure(tmp_path)


@pytest.mark.parametrize(
    'entry',
    [
        {'dtype': 'F32', 'shape': [2, 2], 'data_offsets': [0, 8]},
        {'dtype': 'F32', 'shape': [-1, -4], 'data_offsets': [0, 16]},
        {'dtype': 'F32', 'shape': [4], 'data_offsets': [-16, 0]},
        {'dtype': 'object', 'shape': [4], 'data_offsets': [0, 16]},
        {'dtype': 'F32', 'shape': [2**40], 'data_offsets': [0, 2**42]},
        {'dtype': 'F32', 'shape': [4]},
        7,
    ],
)
def test_header_that_lies_is_refused(tmp_path, entry):
  text = json.dumps({'a': entry}).encode()
  file = tmp_path / 'a.safetensors'
  file.write_bytes(len(text).to_bytes(8, 'little') + text + bytes(16))
  with pytest.raises(steps.NotACheckpointError):
    safetensors_files.read_file(str(file))


def test_folder_with_pickles_alone_is_refused(tmp_path):
  (tmp_path / 'config.json').write_text('{"model_type": "t5"}')
  (tmp_path / 'pytorch_model.bin').write_bytes(b'')
  with pytest.raises(steps.NotACheckpointError, match='pickles'):
    formats.read_structure(tmp_path)


def test_other_networks_are_refused_both_ways(tmp_path):
  arrays = _arrays()
  hf_writing.write(str(tmp_path / 'a'), arrays)
  config = tmp_path / 'a' / 'config.json'
  config.write_text(config.read_text().replace('"t5"', '"bert"'))
  with pytest.raises(steps.NotACheckpointError, match="'bert'"):
    formats.read_structure(tmp_path / 'a')
  arrays['target/encoder/adapter/kernel'] = arrays.pop(hf_names.LOGITS_KEY)
  with pytest.raises(ValueError, match='adapter'):
    hf_writing.write(str(tmp_path / 'b'), arrays)
  assert not (tmp_path / 'b').exists()


def test_array_that_is_missing_is_named(tmp_path):
  hf_writing.write(str(tmp_path), _arrays())
  file = str(tmp_path / 'model.safetensors')
  arrays = dict(safetensors_files.read_file(file))
  kept = {k: stored.InMemory(np.asarray(v), key=k) for k, v in arrays.items()}
  del kept['encoder.final_layer_norm.weight']
  os.remove(file)
  safetensors_files.write_file(file, kept)
  with pytest.raises(
      steps.NotACheckpointError, match='encoder.final_layer_norm'
  ):
    formats.read_structure(tmp_path)


@pytest.mark.parametrize('name', ['F8_E4M3', 'I8', 'F4', 'U16'])
def test_packed_numbers_are_refused_with_the_mend(tmp_path, name):
  text = json.dumps(
      {'a': {'dtype': name, 'shape': [4], 'data_offsets': [0, 4]}}
  ).encode()
  file = tmp_path / 'a.safetensors'
  file.write_bytes(len(text).to_bytes(8, 'little') + text + bytes(16))
  with pytest.raises(steps.NotACheckpointError, match='quantised.*take'):
    safetensors_files.read_file(str(file))


def test_weights_of_whole_numbers_are_refused_with_the_mend(tmp_path):
  hf_writing.write(str(tmp_path), _arrays())
  file = tmp_path / 'model.safetensors'
  content = file.read_bytes()
  # The first name of float32 in the header: the bytes stay.
  file.write_bytes(content.replace(b'"F32"', b'"I32"', 1))
  with pytest.raises(
      steps.NotACheckpointError, match='1 arrays of whole numbers.*int32.*take'
  ):
    formats.read_structure(tmp_path)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'quantization_config': {'bits': 4}}, 'quantization_config'),
        ({'d_ff': MLP + 1}, r'wi_0.weight: \[10, 8\] in its file, \[11, 8\]'),
        ({'d_model': None}, 'd_model is None'),
        ({'num_layers': 3}, 'lacks 9 arrays.*encoder.block.2'),
        ({'num_layers': True}, 'num_layers is True'),
        ({'relative_attention_max_distance': 64}, 'max_distance is 64'),
        ({'feed_forward_proj': 'gated-tanh'}, "'gated-tanh'.*'gated-silu'"),
        ({'model_type': 'gemma3'}, "'gemma3'.*text-only"),
        ({'model_type': ['t5']}, 'model_type'),
        ({'model_type': 'llama'}, 'hidden_size is None'),
    ],
)
def test_config_of_another_model_is_refused(tmp_path, change, words):
  folder = tmp_path / 'model'
  hf_writing.write(str(folder), _arrays())
  config = json.loads((folder / 'config.json').read_text()) | change
  (folder / 'config.json').write_text(json.dumps(config))
  with pytest.raises(steps.NotACheckpointError, match=words):
    formats.read_structure(folder)


@pytest.mark.parametrize(
    'text', ['', '[]', '{"model_type": ', '[' * 100_000, '{"a": NaN}', '\0']
)
def test_config_that_is_no_json_object_is_refused(tmp_path, text):
  hf_writing.write(str(tmp_path / 'm'), _arrays())
  (tmp_path / 'm' / 'config.json').write_text(text)
  with pytest.raises(steps.NotACheckpointError, match='expected'):
    formats.read_structure(tmp_path / 'm')


@pytest.mark.parametrize('weight_map', [None, [], {'a': 7}, {'a': None}])
def test_index_without_places_is_refused(tmp_path, weight_map):
  hf_writing.write(str(tmp_path / 'm'), _arrays())
  (tmp_path / 'm' / 'model.safetensors').unlink()
  (tmp_path / 'm' / 'model.safetensors.index.json').write_text(
      json.dumps({'weight_map': weight_map})
  )
  with pytest.raises(steps.NotACheckpointError, match='weight_map'):
    formats.read_structure(tmp_path / 'm')


def test_half_precision_stays_as_it_is(tmp_path):
  arrays = _arrays(dtype=np.float16)
  hf_writing.write(str(tmp_path / 'm'), arrays)
  _assert_read_back(tmp_path / 'm', arrays)
