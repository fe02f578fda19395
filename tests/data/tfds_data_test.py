# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A task whose data is not to be had is refused, with what to do."""

import types

import pytest

from t5wild import reachability
from t5wild.data import tfds_data


class _Builder:
  """What TFDS gives for a data set that is not prepared."""

  data_dir = '/data/made'

  def __init__(self):
    self.info = types.SimpleNamespace(splits={})

  def download_and_prepare(self):
    self.info.splits['train'] = 1


class _TheirBuilder(_Builder):
  __module__ = 'tensorflow_datasets.text.made'


def _task(builder, data_dir, **source):
  class Reader:
    name = 'made/x:1.0.0'
    tfds_splits = None

    @property
    def builder(self):
      if isinstance(builder, Exception):
        raise builder
      return builder

  reader = Reader()
  reader.data_dir = data_dir
  return types.SimpleNamespace(
      name='made_task', supports_caching=False, cache_dir=None,
      source=types.SimpleNamespace(tfds_dataset=reader, **source),
  )  # fmt: skip


@pytest.fixture
def no_network(monkeypatch):
  """Nothing answers."""
  monkeypatch.setattr(reachability, 'answers', lambda url: False)


def test_data_that_cannot_be_downloaded_is_refused_with_the_mend(
    tmp_path, no_network
):
  with pytest.raises(FileNotFoundError) as raised:
    tfds_data.check([_task(_TheirBuilder(), str(tmp_path))], use_cached=False)
  message = str(raised.value)
  assert 'made_task' in message
  assert f'  {tmp_path}/made/x/1.0.0\n' in message
  assert '--tfds_data_dir' in message
  assert 'within 5 s' in message


def test_a_bucket_that_is_out_of_reach_is_refused(no_network):
  with pytest.raises(FileNotFoundError, match='gs://bucket/made/x'):
    tfds_data.check([_task(_Builder(), 'gs://bucket')], use_cached=False)


def test_a_builder_of_the_users_own_needs_no_network(tmp_path, no_network):
  builder = _Builder()
  tfds_data.check([_task(builder, str(tmp_path))], use_cached=False)
  assert builder.info.splits


def test_what_tfds_cannot_read_is_told_in_its_words(tmp_path):
  task = _task(AssertionError('version 1.0.0 is unknown\nmore'), str(tmp_path))
  with pytest.raises(FileNotFoundError, match='version 1.0.0 is unknown'):
    tfds_data.check([task], use_cached=False)


def test_plain_files_serve_only_who_reads_them(tmp_path, no_network):
  path = tmp_path / 'made/x/train.jsonl'
  path.parent.mkdir(parents=True)
  path.touch()
  reads = _task(_TheirBuilder(), str(tmp_path), reads_plain_files=True)
  tfds_data.check([reads], use_cached=False)
  with pytest.raises(FileNotFoundError):
    tfds_data.check([_task(_TheirBuilder(), str(tmp_path))], use_cached=False)


def test_other_sources_are_not_looked_at():
  task = types.SimpleNamespace(name='x', source=object())
  tfds_data.check([task], use_cached=False)
