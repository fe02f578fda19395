# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in T5X's native format: read, on any mesh, or refused."""

import gzip
import os
import pickle
import shutil

from flax import serialization
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import formats
from t5wild.checkpoints import restoring
from t5wild.checkpoints import stored
from t5wild.checkpoints import t5x_import
from t5wild.checkpoints import t5x_index
from t5wild.checkpoints import transforms
from tests.checkpoints import checkpoint_states as states
from tests.checkpoints import t5x_checkpoints

KERNEL = 'target/encoder/kernel'
KERNEL_FOLDER = 'target.encoder.kernel'


def _write(tmp_path, **kwargs):
  path = tmp_path / 'run' / 'checkpoint_7'
  t5x_checkpoints.write_native(path, states.make_numbers(7), **kwargs)
  return path


def _request(mesh_shape=(4, 2), **kwargs):
  numbers = states.make_numbers()
  mesh = states.make_mesh(mesh_shape)
  return restoring.Request(
      abstract_state=states.abstract(numbers),
      shardings=states.shardings_of(numbers, mesh),
      **kwargs,
  )


@pytest.mark.parametrize('mesh_shape', states.MESH_SHAPES)
@pytest.mark.parametrize('chunks', [(), {KERNEL: (4, 3)}])
def test_state_is_restored_with_its_bits_on_every_mesh(
    tmp_path, mesh_shape, chunks
):
  path = _write(tmp_path, chunks=chunks)
  request = _request(mesh_shape)
  restored = restoring.restore_state(str(path), request)
  states.assert_same_bits(restored, states.make_numbers(7))
  wanted = transforms.flatten(request.shardings)
  for key, leaf in transforms.flatten(restored).items():
    assert leaf.sharding == wanted[key]


@pytest.mark.parametrize('driver', ['file', 'gfile', 'gcs', 'old'])
@pytest.mark.parametrize('compressor', ['gzip', None])
@pytest.mark.parametrize('inline', [(), (KERNEL,)])
def test_every_way_t5x_has_written_is_read(
    tmp_path, driver, compressor, inline
):
  path = _write(tmp_path, driver=driver, compressor=compressor, inline=inline)
  read = formats.read_structure(path)
  states.assert_same_bits(
      transforms.unflatten({k: np.asarray(v) for k, v in read.items()}),
      states.make_numbers(7),
  )


def test_index_file_state_folder_and_placeholders_are_found_too(tmp_path):
  path = _write(tmp_path)
  assert steps.find(path / 'checkpoint') == (steps.T5X_NATIVE, path)
  # Orbax's layout of 2023: below state/, placeholders instead of specs.
  state = tmp_path / 'checkpoint_8' / 'state'
  shutil.copytree(path, state)
  leaves = transforms.flatten(states.make_numbers(7))
  content = {
      key: value if value.shape == () else (
          'PLACEHOLDER://' + key.replace('/', '.')
      )
      for key, value in leaves.items()
  }
  (state / 'checkpoint').write_bytes(
      serialization.msgpack_serialize(transforms.unflatten(content))
  )
  read = formats.read_structure(tmp_path / 'checkpoint_8')
  assert read.keys() == leaves.keys()
  np.testing.assert_array_equal(np.asarray(read[KERNEL]), leaves[KERNEL])


def test_bfloat16_is_read_as_saved_even_where_it_was_written_as_integers(
    tmp_path
):
  kernel = np.arange(12, dtype='f4').reshape(3, 4).astype(jnp.bfloat16)
  for version, written in ((3, kernel), (2, kernel.view(np.uint16))):
    path = tmp_path / f'checkpoint_{version}'
    t5x_checkpoints.write_native(
        path, {'target': {'w': written}}, version=version
    )
    read = formats.read_structure(path)['target/w']
    assert read.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(read), kernel)
    part = (slice(1, 2), slice(0, 3))
    np.testing.assert_array_equal(read.read(part), kernel[part])


def test_array_that_flax_cut_in_pieces_is_joined(tmp_path, monkeypatch):
  monkeypatch.setattr(serialization, 'MAX_CHUNK_SIZE', 64)
  path = _write(tmp_path, inline=(KERNEL,))
  read = np.asarray(formats.read_structure(path)[KERNEL])
  np.testing.assert_array_equal(
      read, states.make_numbers(7)['target']['encoder']['kernel']
  )


def test_run_directory_of_t5x_has_its_steps(tmp_path):
  path = _write(tmp_path)
  os.rename(path, path.parent / 'checkpoint_9')
  _write(tmp_path)
  (path.parent / 'checkpoint_8.tmp-1').mkdir()
  (path.parent / 'checkpoint_10').mkdir()
  assert steps.all_steps(path.parent) == [7, 9]


def test_arrays_of_t5x_are_read_alike_from_both_of_its_formats(t5x_fixtures):
  for name in ('encoder_decoder', 'encoder_decoder_scanned'):
    native, orbax = (
        formats.read_structure(t5x_fixtures / name / kind / 'checkpoint_300')
        for kind in ('ckpt_legacy', 'ckpt_orbax')
    )
    assert native.keys() == orbax.keys()
    for key, array in native.items():
      numbers = np.asarray(array)
      np.testing.assert_array_equal(numbers, np.asarray(orbax[key]), key)
      part = tuple(slice(n // 3, n // 2 + 1) for n in array.shape)
      np.testing.assert_array_equal(array.read(part), numbers[part], key)
      np.testing.assert_array_equal(orbax[key].read(part), numbers[part], key)


def _refusal(path, error=steps.NotACheckpointError):
  """What is said, by a restore that came to no array."""
  compiled = []
  with pytest.raises(error) as caught:
    restoring.restore_state(
        str(path), _request(), when_checked=lambda: compiled.append(1)
    )
  assert not compiled
  assert 'expected' in str(caught.value)
  return str(caught.value)


def test_array_that_is_missing_is_named(tmp_path):
  path = _write(tmp_path)
  shutil.rmtree(path / KERNEL_FOLDER)
  shutil.rmtree(path / 'target.encoder.scale')
  text = _refusal(path)
  assert '2 of its arrays' in text
  assert f'{KERNEL}: ' in text
  assert 'target/encoder/scale: ' in text
  assert 'copy it again' in text


@pytest.mark.parametrize('damage', ['remove', 'empty'])
def test_array_with_a_missing_piece_is_named_before_any_is_read(
    tmp_path, damage
):
  path = _write(tmp_path, chunks={KERNEL: (4, 8)})
  piece = path / KERNEL_FOLDER / '2.0'
  if damage == 'remove':
    piece.unlink()
  else:
    piece.write_bytes(b'')
  text = _refusal(path)
  assert KERNEL in text
  assert "'2.0'" in text


def test_array_with_a_piece_cut_off_is_named_when_it_is_read(tmp_path):
  path = _write(tmp_path)
  piece = path / KERNEL_FOLDER / '0.0'
  piece.write_bytes(piece.read_bytes()[:50])
  with pytest.raises(steps.NotACheckpointError, match=KERNEL):
    restoring.restore_state(str(path), _request())


def test_piece_that_is_not_compressed_as_said_is_no_array(tmp_path):
  path = _write(tmp_path, compressor=None)
  piece = path / KERNEL_FOLDER / '0.0'
  piece.write_bytes(gzip.compress(piece.read_bytes()))
  with pytest.raises(steps.NotACheckpointError, match=KERNEL):
    restoring.restore_state(str(path), _request())


def test_shape_in_the_index_that_is_not_that_of_the_array_is_refused(tmp_path):
  def other(key, spec):
    if key == KERNEL:
      spec['metadata']['shape'] = [16, 9]
    return spec

  text = _refusal(_write(tmp_path, change_spec=other))
  assert f'{KERNEL}: [16, 8] in its folder, [16, 9] in the index' in text


def test_floats_that_claim_to_be_whole_numbers_are_refused(tmp_path):
  path = _write(tmp_path)
  file = path / KERNEL_FOLDER / '.zarray'
  file.write_text(file.read_text().replace('<f4', '<i4'))
  text = _refusal(path)
  assert f'{KERNEL}: int32 in its folder, float32 in the index' in text


def test_other_model_is_told_by_both_shapes(tmp_path):
  path = _write(tmp_path)
  other = states.make_numbers()
  other['target']['encoder']['kernel'] = np.zeros((16, 4), 'f4')
  request = restoring.Request(
      abstract_state=states.abstract(other),
      shardings=states.shardings_of(other, states.make_mesh((4, 2))),
  )
  with pytest.raises(transforms.DifferentModelError) as caught:
    restoring.restore_state(str(path), request)
  assert f'{KERNEL}: float32[16, 4] | float32[16, 8]' in str(caught.value)


@pytest.mark.parametrize(
    ('content', 'word'),
    [
        (b'', 'cut off'),
        (b'words', 'cut off'),
        (pickle.dumps({'a': 1}), 'pickle'),
        (serialization.msgpack_serialize({'a': 1}), 'version 0'),
        (serialization.msgpack_serialize({'version': 1}), 'version 1'),
        (serialization.msgpack_serialize({'version': 3}), 'optimizer'),
        (
            serialization.msgpack_serialize(
                {'version': 3, 'optimizer': {'target': {'w': 'text'}}}
            ),
            'target/w',
        ),
        (
            serialization.msgpack_serialize(
                {'version': 3, 'optimizer': {'target': {'w': b'bytes'}}}
            ),
            'bytes',
        ),
        (
            serialization.msgpack_serialize(
                {'version': 3, 'optimizer': {'target': {'w': 1 + 2j}}}
            ),
            'extension 2',
        ),
        (b'\xdd\xff\xff\xff\xff', 'cut off'),  # A list of 4 billion entries.
        (b'\x91' * 5000, 'cut off'),  # Nested deeper than any stack.
    ],
)  # fmt: skip
def test_index_that_is_none_is_refused(tmp_path, content, word):
  path = _write(tmp_path)
  (path / 'checkpoint').write_bytes(content)
  text = _refusal(path)
  assert word in text
  assert str(path / 'checkpoint') in text


@pytest.mark.parametrize('version', [4, 99, True, '3', 3.0])
def test_index_of_a_version_that_t5x_never_wrote_is_refused(tmp_path, version):
  path = _write(tmp_path, version=version)
  assert (
      f'is of version {version!r}, expected 2 or 3, as T5X writes since 2020: '
      'copy it again'
  ) in _refusal(path)


def test_index_cut_off_anywhere_is_refused(tmp_path):
  path = _write(tmp_path)
  whole = (path / 'checkpoint').read_bytes()
  for size in range(0, len(whole), 97):
    (path / 'checkpoint').write_bytes(whole[:size])
    with pytest.raises(steps.NotACheckpointError):
      t5x_index.read_index(path)


def test_array_in_the_index_must_have_the_bytes_of_its_shape(tmp_path):
  path = _write(tmp_path, inline=(KERNEL,))
  file = path / 'checkpoint'
  whole = file.read_bytes()
  # msgpack: a list of three, the first a list of 16 and 8.
  shape = b'\x93\x92\x10\x08'
  assert whole.count(shape) == 1
  file.write_bytes(whole.replace(shape, b'\x93\x92\x7f\x7f'))
  assert '512 bytes for float32 of shape [127, 127]' in _refusal(path)
  file.write_bytes(whole.replace(b'float32', b'object_'))
  assert "dtype 'object_'" in _refusal(path)


def test_index_deeper_than_a_model_is_refused(tmp_path):
  path = _write(tmp_path)
  nested = {'w': 1}
  for _ in range(100):
    nested = {'a': nested}
  (path / 'checkpoint').write_bytes(
      serialization.msgpack_serialize(
          {'version': 3, 'optimizer': {'target': nested}}
      )
  )
  assert 'nested deeper' in _refusal(path)


def test_huge_index_is_refused_unread(tmp_path):
  path = _write(tmp_path)
  with open(path / 'checkpoint', 'ab') as file:
    file.truncate(2**33)  # Sparse: it takes no space.
  assert str(2**33) in _refusal(path)


@pytest.mark.parametrize('chunks', [[2**40, 8], [16, 9]])
def test_piece_that_claims_to_be_larger_than_its_array_is_refused(
    tmp_path, chunks
):
  path = _write(tmp_path)
  metadata = path / KERNEL_FOLDER / '.zarray'
  metadata.write_text(
      metadata.read_text().replace('"chunks":[16,8]', f'"chunks":{chunks}')
  )
  assert 'none larger than the array' in _refusal(path)


def test_array_that_no_memory_holds_is_refused_before_it_is_read():
  index = (slice(0, 2**40), slice(0, 2**20))
  with pytest.raises(MemoryError, match=r'target/w has 4,611,686,.*expected'):
    stored.check_memory('target/w', index, np.float32)


def test_piece_of_a_claimed_huge_array_is_looked_for_briefly(tmp_path):
  path = _write(tmp_path)
  folder = path / KERNEL_FOLDER
  metadata = (folder / '.zarray').read_text()
  (folder / '.zarray').write_text(
      metadata.replace('"shape":[16,8]', '"shape":[10000000000000,8]')
      .replace('"chunks":[16,8]', '"chunks":[1,1]')
  )

  def same(key, spec):
    if key == KERNEL:
      spec['metadata']['shape'] = [10**13, 8]
    return spec

  other = tmp_path / 'other'
  t5x_checkpoints.write_native(
      other, states.make_numbers(7), change_spec=same
  )
  shutil.copy(other / 'checkpoint', path / 'checkpoint')
  arrays = formats.read_structure(path)
  with pytest.raises(steps.NotACheckpointError, match=KERNEL):
    t5x_import.check_complete(arrays.values(), str(path))
