# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes GLUE's RTE as TFDS does: TFDS itself needs more packages to write."""

from collections.abc import Mapping, Sequence
import json
import pathlib
from typing import Any

import tensorflow as tf

_FEATURES = 'tensorflow_datasets.core.features.'
_TEXT = {'pythonClassName': f'{_FEATURES}text_feature.Text', 'text': {}}
_FIELDS = {
    'sentence1': _TEXT,
    'sentence2': _TEXT,
    'label': {
        'pythonClassName': f'{_FEATURES}class_label_feature.ClassLabel',
        'classLabel': {'numClasses': '2'},
    },
    'idx': {
        'pythonClassName': f'{_FEATURES}tensor_feature.Tensor',
        'tensor': {'dtype': 'int32', 'encoding': 'none', 'shape': {}},
    },
}
_LABELS = ('entailment', 'not_entailment')


def rte_records(count: int) -> list[dict[str, Any]]:
  """Some records with labels 0 and 1."""
  return [
      {
          'sentence1': f'the cat sat {i}', 'sentence2': 'a cat sat',
          'label': i % 2, 'idx': i,
      }
      for i in range(count)
  ]  # fmt: skip


def write_rte(
    data_dir: pathlib.Path,
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    version: str = '1.0.0',
) -> None:
  """Writes the splits' records below a folder of TFDS data sets."""
  folder = data_dir / 'glue' / 'rte' / version
  folder.mkdir(parents=True)
  infos = []
  for split, records in splits.items():
    texts = [_example(record) for record in records]
    path = folder / f'glue-{split}.tfrecord-00000-of-00001'
    with tf.io.TFRecordWriter(str(path)) as writer:
      for text in texts:
        writer.write(text)
    infos.append({
        'filepathTemplate': '{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}',
        'name': split,
        'numBytes': str(sum(map(len, texts))),
        'shardLengths': [str(len(texts))],
    })
  _write_json(folder / 'dataset_info.json', {
      'configName': 'rte', 'description': 'For tests.',
      'fileFormat': 'tfrecord', 'name': 'glue', 'splits': infos,
      'version': version,
  })  # fmt: skip
  _write_json(folder / 'features.json', {
      'pythonClassName': f'{_FEATURES}features_dict.FeaturesDict',
      'featuresDict': {'features': _FIELDS},
  })
  (folder / 'label.labels.txt').write_text('\n'.join(_LABELS) + '\n')


def _write_json(path: pathlib.Path, content: Any) -> None:
  path.write_text(json.dumps(content))


def _example(record: Mapping[str, Any]) -> bytes:
  features = {
      key: tf.train.Feature(
          bytes_list=tf.train.BytesList(value=[value.encode()])
      )
      if isinstance(value, str)
      else tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
      for key, value in record.items()
  }
  return tf.train.Example(
      features=tf.train.Features(feature=features)
  ).SerializeToString()
