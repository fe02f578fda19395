# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Paths on S3, as far as they are looked at without a server."""

import importlib.util

from etils import epath
from etils.epath import gpath
from orbax.checkpoint._src.serialization import tensorstore_utils
import pytest

from t5wild.checkpoint_files import kvstores
from t5wild.checkpoint_files import s3_paths
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import s3_driver

_VARIABLES = (
    'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3', 'AWS_REGION',
    'AWS_DEFAULT_REGION',
)  # fmt: skip


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
  for name in _VARIABLES:
    monkeypatch.delenv(name, raising=False)
  s3_paths._prepare.cache_clear()
  yield
  s3_paths._prepare.cache_clear()


def test_s3_is_not_left_to_tensorflow_which_does_not_know_it():
  path = epath.Path('s3://bucket/run') / 'checkpoint_1'
  assert isinstance(path, s3_paths.S3Path)
  assert isinstance(path.parent, s3_paths.S3Path)
  assert str(path) == 's3://bucket/run/checkpoint_1'
  assert not isinstance(epath.Path('gs://bucket/run'), s3_paths.S3Path)


def test_without_its_library_a_path_on_s3_names_what_to_install(monkeypatch):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(
      steps.UnwritableError, match=r"s3fs is not installed.*t5wild\[s3\]"
  ):
    steps.check_writable('s3://bucket/run', process=0)


def test_whatever_fails_on_s3_is_an_os_error_with_the_path(monkeypatch):

  class ConnectionClosedError(Exception):
    """Such as botocore has."""

  class Broken:
    def __getattr__(self, name):
      def fail(*args, **kwargs):
        raise ConnectionClosedError('no answer')

      return fail

  monkeypatch.setattr(s3_paths.S3Path, '_backend', Broken())
  path = epath.Path('s3://bucket/run')
  for call in (
      path.exists, path.is_dir, path.rmtree, path.unlink, path.read_text,
      path.stat, lambda: path.write_text(''), lambda: list(path.iterdir()),
  ):  # fmt: skip
    with pytest.raises(OSError, match='s3://bucket/run: ConnectionClosedErr'):
      call()


def test_every_call_that_is_wrapped_is_one_of_etils():
  assert all(hasattr(gpath.PosixGPath, name) for name in s3_paths._CALLS)


def test_a_folder_on_s3_is_not_made_so_no_misspelt_bucket_is(monkeypatch):
  monkeypatch.setattr(s3_paths.S3Path, '_backend', None)  # not asked
  epath.Path('s3://buckett/run').mkdir(parents=True, exist_ok=True)


def test_tensorstore_is_told_where_aws_variables_say_the_server_is(monkeypatch):
  assert 'endpoint' not in kvstores.make_kvstore('s3://bucket/run', '')
  monkeypatch.setenv('AWS_ENDPOINT_URL', 'http://everything/')
  monkeypatch.setenv('AWS_DEFAULT_REGION', 'here')
  spec = kvstores.make_kvstore('s3://bucket/run', 'a')
  assert spec['endpoint'] == 'http://everything'
  assert spec['aws_region'] == 'here'
  assert (spec['driver'], spec['path']) == ('s3', 'run/a/')
  monkeypatch.setenv('AWS_ENDPOINT_URL_S3', 'http://s3')
  monkeypatch.setenv('AWS_REGION', 'there')
  spec = kvstores.make_kvstore('s3://bucket/run', 'a')
  assert (spec['endpoint'], spec['aws_region']) == ('http://s3', 'there')


@pytest.mark.parametrize('use_ocdbt', [True, False])
def test_orbax_names_a_place_on_s3_as_its_twin_on_gs(use_ocdbt):
  s3_driver.install()
  build = tensorstore_utils.build_kvstore_tspec
  twin, spec = (
      build(f'{scheme}://bucket/run/state', 'name', use_ocdbt=use_ocdbt)
      for scheme in ('gs', 's3')
  )
  if use_ocdbt:
    assert spec.pop('driver') == twin.pop('driver') == 'ocdbt'
    assert spec.pop('path') == twin.pop('path')
    spec, twin = spec['base'], twin['base']
  settings = kvstores.s3_settings()
  assert spec == twin | {'driver': 's3'} | settings
  assert twin['driver'] == 'gcs' and twin['bucket'] == 'bucket'
