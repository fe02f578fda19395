# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Caches written without seqio, and readers of them for any host."""

import json
import types

import numpy as np

from t5wild.data import cached_datasets
from t5wild.data import fingerprints
from t5wild.data import objectives
from t5wild.data import places
from t5wild.data import record_cache
from t5wild.data import record_format
from t5wild.data import shard_writer
from t5wild.data import vocabularies

VOCABULARY = vocabularies.ByteVocabulary(125)
# As on a model, which holds them by name.
ENCODER_DECODER = types.SimpleNamespace(class_name='EncDecFeatureConverter')
DECODER = types.SimpleNamespace(class_name='DecoderFeatureConverter')


def texts(count: int, *, seed: int = 0, longest: int = 300) -> list[np.ndarray]:
  """Documents of random bytes, whose first four tokens spell their number."""
  numbers = np.random.default_rng(seed)
  found = []
  for index in range(count):
    body = numbers.integers(3, 259, int(numbers.integers(0, longest)))
    digits = [3 + int(digit) for digit in f'{index:04d}']
    found.append(np.array([*digits, *body], np.int32))
  return found


def pairs(count: int, *, seed: int = 0) -> list[dict[str, np.ndarray]]:
  """Examples of heavy-tailed lengths; the inputs begin with their number."""
  numbers = np.random.default_rng(seed)
  found = []
  for index in range(count):
    sizes = np.exp(numbers.normal([4.0, 3.0], 1.0)).astype(int) + 2
    inputs, targets = (numbers.integers(3, 259, size) for size in sizes)
    digits = [3 + int(digit) for digit in f'{index:04d}']
    found.append({
        'inputs': np.array([*digits, *inputs, 1], np.int32),
        'targets': np.array([*targets, 1], np.int32),
    })
  return found


def write(
    root,
    documents,
    *,
    task: str = 'letters',
    split: str = 'train',
    num_shards: int = 3,
    vocabulary=VOCABULARY,
    rates=None,
) -> str:
  """Writes a cache of arrays (tokens) or of mappings (examples)."""
  is_tokens = isinstance(documents[0], np.ndarray)
  folder = record_cache.split_folder(str(root), task=task, split=split)
  places.make_folder(folder)
  schema = record_format.Schema(
      features=('targets',) if is_tokens else ('inputs', 'targets'),
      dtype='uint16',
  )
  plan = shard_writer.ShardPlan(
      folder=folder,
      num_shards=num_shards,
      schema=schema,
      max_record_tokens=128 if is_tokens else None,
  )
  shard_writer.write_text(
      places.join(folder, record_cache.PLAN),
      json.dumps({'num_shards': num_shards}),
  )
  shards = [
      plan.write(
          index,
          [
              {'targets': each} if is_tokens else each
              for each in documents[index::num_shards]
          ],
      )
      for index in range(num_shards)
  ]
  manifest = record_cache.Manifest(
      task=task,
      split=split,
      content='tokens' if is_tokens else 'examples',
      features={
          name: {
              'vocabulary': fingerprints.describe_vocabulary(vocabulary),
              'add_eos': True,
          }
          for name in ('inputs', 'targets')
      },
      schema=schema,
      task_description=['made by a test'],
      shards=shards,
      versions={},
  )
  shard_writer.write_text(
      places.join(folder, record_cache.MANIFEST), manifest.to_json()
  )
  shard_writer.write_text(
      places.join(str(root), record_cache.ROOT),
      json.dumps({'name': 'letters', 'rates': rates or {task: 1.0}}),
  )
  return folder


def config(root, **changes) -> cached_datasets.CachedDatasetConfig:
  """A small config of a cache of tokens."""
  values = {
      'cache_dir': root if isinstance(root, tuple) else str(root),
      'task_feature_lengths': {'inputs': 64, 'targets': 32},
      'batch_size': 24,
      'objective': objectives.span_corruption,
      'window_tokens': 4096,
      **changes,
  }
  return cached_datasets.CachedDatasetConfig(**values)


def pairs_config(root, **changes) -> cached_datasets.CachedDatasetConfig:
  """A config of a cache of pairs."""
  return config(
      root,
      objective=None,
      **{
          'task_feature_lengths': {'inputs': 512, 'targets': 114},
          'window_tokens': 1 << 17,
          **changes,
      },
  )


def reader(cfg, *, host: int = 0, num_hosts: int = 1, **arguments):
  """The reader of one host."""
  layout = types.SimpleNamespace(
      batch_size=arguments.pop('batch_size', cfg.batch_size),
      shard_id=host,
      num_shards=num_hosts,
  )
  arguments = {'feature_converter_cls': ENCODER_DECODER, **arguments}
  return cfg.make_reader(data_layout=layout, **arguments)


def batches(found, count: int) -> list[dict[str, np.ndarray]]:
  """The next batches of a reader."""
  return [next(found) for _ in range(count)]


def joined(parts) -> dict[str, np.ndarray]:
  """Rows of some batches, one after the other."""
  return {
      name: np.concatenate([part[name] for part in parts]) for name in parts[0]
  }


def assert_equal(left, right) -> None:
  """Refuses two batches that are not the same bits."""
  assert left.keys() == right.keys()
  for name, array in left.items():
    assert array.dtype == right[name].dtype, name
    np.testing.assert_array_equal(array, right[name], err_msg=name)


def origins_of(found) -> np.ndarray:
  """What the next batch of a reader is made of, which is read."""
  origins = np.concatenate(found.origins())
  next(found)
  return origins
