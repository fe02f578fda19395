# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A small text task for the tests of live data."""

import types

import numpy as np
import pytest


def write_texts(folder, *, count=12):
  """Files of different lengths, no line of them like another."""
  for index in range(count):
    generator = np.random.default_rng(index)
    lines = (
        ' '.join(map(str, generator.integers(0, 1000, 8)))
        for _ in range(4 + index)
    )
    (folder / f'{index:02}.txt').write_text('\n'.join(lines))


@pytest.fixture(scope='session')
def text_folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('texts')
  write_texts(folder)
  return folder


@pytest.fixture(scope='session')
def seqio():
  return pytest.importorskip('seqio')


@pytest.fixture(scope='session')
def text_task(seqio, text_folder):
  """Span corruption over twelve files, bytes, a small shuffle buffer."""
  from t5wild.tasks import local_text

  return local_text.text_task(
      str(text_folder), held_out_fraction=0.3, shuffle_buffer_size=20
  )


@pytest.fixture(scope='session')
def layout():
  """Makes the part of one host."""

  def make(batch_size=4, *, shard_id=0, num_shards=1):
    return types.SimpleNamespace(
        batch_size=batch_size, shard_id=shard_id, num_shards=num_shards
    )

  return make
