# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A stranger's checkpoint is read inside its own folder and nowhere else."""

import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorstore

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import confinement
from t5wild.checkpoints import formats
from t5wild.checkpoints import manager as manager_lib
from tests.checkpoints import t5x_checkpoints

SECRET = np.arange(4, dtype='f4') + 1000


@pytest.fixture
def secret(tmp_path):
  """An array beside the checkpoint, which it must not reach."""
  folder = tmp_path / 'secret'
  array = tensorstore.open(
      {
          'driver': 'zarr',
          'dtype': 'float32',
          'kvstore': {'driver': 'file', 'path': str(folder)},
          'metadata': {'shape': [4]},
      },
      create=True,
      open=True,
  ).result()
  array.write(SECRET).result()
  return folder


def _write(tmp_path, change_spec=lambda key, spec: spec):
  path = tmp_path / 'theirs' / 'checkpoint_1'
  t5x_checkpoints.write_native(
      path,
      {'target': {'w': np.zeros(4, 'f4'), 'b': np.ones(4, 'f4')}},
      change_spec=lambda key, spec: (
          change_spec(key, spec) if key == 'target/w' else spec
      ),
  )
  return path


def _refusal(path):
  with pytest.raises(confinement.UnsafeCheckpointError) as caught:
    formats.read_structure(path)
  text = str(caught.value)
  assert 'trust_paths' in text
  assert str(path) in text
  return text


def _store(**store):
  return lambda key, spec: spec | {'kvstore': store}


SPECS = {
    'absolute': _store(driver='file', path='{secret}'),
    'absolute in a bucket': _store(driver='gcs', bucket='b', path='/x'),
    'above': _store(driver='file', path='../../secret'),
    'above in the middle': _store(driver='file', path='a/../../../secret'),
    'above, written otherwise': _store(driver='file', path='..\\..\\secret'),
    'here': _store(driver='file', path='.'),
    'nothing': _store(driver='file', path=''),
    'no path': _store(driver='file'),
    'path that is none': _store(driver='file', path=['..']),
    'scheme': _store(driver='file', path='file:///etc'),
    'pipeline': _store(driver='file', path='a|zip:b'),
    'host': _store(driver='http', base_url='http://example.com', path='x'),
    'other store': _store(driver='s3', bucket='b', path='x'),
    'endpoint': _store(
        driver='gcs', bucket='b', path='x', endpoint='http://example.com'
    ),
    'store in a store': _store(
        driver='ocdbt', base={'driver': 'file', 'path': '{secret}'}
    ),
    'store by url': lambda key, spec: spec | {'kvstore': 'file://{secret}'},
    'old path': lambda key, spec: spec
    | {'kvstore': {'driver': 'gcs', 'bucket': 'b'}, 'path': '/x'},
    'other driver': lambda key, spec: spec | {'driver': 'neuroglancer'},
    'array of an array': lambda key, spec: spec
    | {'driver': 'cast', 'base': {'driver': 'zarr'}},
    'context': lambda key, spec: spec | {'context': {'gcs_project': 'x'}},
    'transform': lambda key, spec: spec
    | {'transform': {'input_exclusive_max': [2]}},
    'permutation': lambda key, spec: spec
    | {'transform': {'input_exclusive_max': [4], 'output': [{}]}},
    'placeholder': lambda key, spec: 'PLACEHOLDER://../../secret',
}


@pytest.mark.parametrize('name', SPECS)
def test_spec_that_leads_out_is_refused(tmp_path, secret, name):
  def change(key, spec):
    return _fill(SPECS[name](key, spec), str(secret))

  text = _refusal(_write(tmp_path, change))
  assert 'target/w' in text


def _fill(value, secret):
  if isinstance(value, str):
    return value.replace('{secret}', secret)
  if isinstance(value, dict):
    return {key: _fill(item, secret) for key, item in value.items()}
  return value


@pytest.mark.parametrize(
    'store',
    [
        {'driver': 'file', 'path': '{secret}'},
        {'driver': 'file', 'path': '../../secret'},
        'file://{secret}/',
    ],
)
def test_spec_that_leads_out_is_followed_where_the_user_says_so(
    tmp_path, secret, store
):
  path = _write(
      tmp_path,
      lambda key, spec: spec | {'kvstore': _fill(store, str(secret))},
  )
  _refusal(path)
  read = formats.read_structure(path, trust_paths=True)
  np.testing.assert_array_equal(np.asarray(read['target/w']), SECRET)
  np.testing.assert_array_equal(np.asarray(read['target/b']), np.ones(4))


def test_transform_that_only_says_the_shape_is_none(tmp_path):
  path = _write(
      tmp_path,
      lambda key, spec: spec
      | {
          'transform': {
              'input_exclusive_max': [[4]], 'input_inclusive_min': [0]
          }
      },
  )
  assert np.asarray(formats.read_structure(path)['target/w']).shape == (4,)


@pytest.mark.parametrize('what', ['array', 'piece', 'index'])
def test_link_out_of_the_checkpoint_is_refused(tmp_path, secret, what):
  path = _write(tmp_path)
  inside, outside = {
      'array': (path / 'target.w', secret),
      'piece': (path / 'target.w' / '0', secret / '0'),
      'index': (path / 'checkpoint', tmp_path / 'moved'),
  }[what]
  if what == 'index':
    shutil.copy(inside, outside)
  if inside.is_dir():
    shutil.rmtree(inside)
  else:
    inside.unlink()
  inside.symlink_to(outside)
  assert str(outside) in _refusal(path)
  formats.read_structure(path, trust_paths=True)


def test_index_named_by_its_file_is_confined_to_its_folder(tmp_path, secret):
  path = _write(tmp_path)
  shutil.rmtree(path / 'target.w')
  (path / 'target.w').symlink_to(secret)
  with pytest.raises(confinement.UnsafeCheckpointError):
    formats.read_structure(path / 'checkpoint')


def test_links_inside_and_to_the_checkpoint_are_followed(tmp_path):
  path = _write(tmp_path)
  shutil.move(path / 'target.w', path / 'elsewhere')
  (path / 'target.w').symlink_to('elsewhere')
  link = tmp_path / 'checkpoint_1'
  link.symlink_to(path)
  read = formats.read_structure(link)
  np.testing.assert_array_equal(np.asarray(read['target/w']), np.zeros(4))


def test_pipe_in_a_checkpoint_is_refused_rather_than_waited_for(tmp_path):
  path = _write(tmp_path)
  (path / 'target.w' / '0').unlink()
  os.mkfifo(path / 'target.w' / '0')
  assert 'neither a file nor a folder' in _refusal(path)


@pytest.mark.parametrize('key', ['..', 'a/../../b', '/etc', 'a//b'])
def test_name_of_an_array_that_is_a_path_out_is_refused(tmp_path, key):
  path = tmp_path / 'checkpoint_1'
  t5x_checkpoints.write_native(path, {'target': {key: np.zeros(1, 'f4')}})
  _refusal(path)


def _save_ours(tmp_path):
  manager = manager_lib.CheckpointManager(
      tmp_path / 'run', config=configs.SaveCheckpointConfig()
  )
  manager.save(1, {'target': {'w': SECRET}, 'state': {'step': np.int32(1)}})
  manager.close()
  return tmp_path / 'run' / 'checkpoint_1'


@pytest.mark.parametrize('name', ['state/manifest.ocdbt', 'state', 'dataset'])
def test_link_out_of_a_checkpoint_of_orbax_is_refused(tmp_path, name):
  path = _save_ours(tmp_path)
  (path / 'dataset').mkdir(exist_ok=True)
  shutil.move(path / name, tmp_path / 'moved')
  (path / name).symlink_to(tmp_path / 'moved')
  _refusal(path)
  read = formats.read_structure(path, trust_paths=True)
  np.testing.assert_array_equal(np.asarray(read['target/w']), SECRET)


def test_name_of_an_orbax_array_that_is_a_path_out_is_refused(tmp_path):
  path = _save_ours(tmp_path)
  metadata = path / 'state' / '_METADATA'
  metadata.write_text(metadata.read_text().replace('"w"', '"../../w"'))
  _refusal(path)


def _checksum(data):
  """CRC-32C, as a manifest of OCDBT ends with."""
  total = 0xFFFFFFFF
  for byte in data:
    total ^= byte
    for _ in range(8):
      total = (total >> 1) ^ (0x82F63B78 if total & 1 else 0)
  return (total ^ 0xFFFFFFFF).to_bytes(4, 'little')


@pytest.mark.parametrize('is_absolute', [False, True])
def test_file_that_a_manifest_names_outside_of_its_folder_is_not_read(
    tmp_path, is_absolute
):
  folder, evil = tmp_path / 'a', tmp_path / 'b'
  store = {'driver': 'ocdbt', 'base': f'file://{folder}/'}
  uncompressed = {'config': {'compression': None, 'max_inline_value_bytes': 0}}
  kvstore = tensorstore.KvStore.open(store | uncompressed).result()
  kvstore.write('key', bytes(SECRET)).result()
  data = (folder / 'manifest.ocdbt').read_bytes()
  (file,) = (folder / 'd').iterdir()
  name = f'd/{file.name}'
  assert data.endswith(_checksum(data[:-4]))
  assert data.count(name.encode()) == 1
  out = '../' + 'x' * (len(name) - 3)
  if is_absolute:
    out = f'/tmp/{tmp_path.name}'.ljust(len(name), 'x')[: len(name)]
  data = data[:-4].replace(name.encode(), out.encode())
  evil.mkdir()
  (evil / 'manifest.ocdbt').write_bytes(data + _checksum(data))
  file.rename(out if is_absolute else evil / out)
  try:
    kvstore = tensorstore.KvStore.open(
        {'driver': 'ocdbt', 'base': f'file://{evil}/'}
    ).result()
    with pytest.raises(ValueError, match='Invalid key'):
      kvstore.read('key').result()
  finally:
    (pathlib.Path(out) if is_absolute else evil / out).unlink()


def test_nothing_is_written_into_a_checkpoint_that_is_read(tmp_path):
  path = _write(tmp_path)
  before = {p: p.stat().st_mtime_ns for p in sorted(path.rglob('*'))}
  read = formats.read_structure(path)
  formats.check_complete(read.values(), str(path))
  for leaf in read.values():
    np.asarray(leaf)
  assert before == {p: p.stat().st_mtime_ns for p in sorted(path.rglob('*'))}


def test_user_is_told_as_of_any_other_path_that_is_no_checkpoint():
  assert issubclass(
      confinement.UnsafeCheckpointError, steps.NotACheckpointError
  )
