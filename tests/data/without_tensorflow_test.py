# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The step path's data works where neither TensorFlow nor seqio is."""

import pathlib
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]

_PROGRAM = """
import sys

class Blocker:
  def find_spec(self, name, path=None, target=None):
    if name.split('.')[0] in ('tensorflow', 'seqio', 'tensorflow_text', 'clu'):
      raise ImportError(f'{name} is blocked')

sys.meta_path.insert(0, Blocker())

import tempfile
import types
import numpy as np
from t5wild import data
from t5wild.data import (
    datasets, device_feed, documents, eval_batches, feature_converters,
    live_reader, objectives, pipelines, providers, reader_protocol, spans,
    synthetic, text_files, train_vocabulary, vocabularies,
)

config = synthetic.SyntheticConfig(
    batch_size=4, task_feature_lengths={'inputs': 8, 'targets': 4},
    vocab_size=384,
)
layout = types.SimpleNamespace(batch_size=4, shard_id=0, num_shards=1)
reader = data.make_train_reader(
    config, data_layout=layout, feature_converter_cls=None
)
with data.DeviceFeed(reader, lambda batch: batch) as feed:
  assert next(feed)['encoder_input_tokens'].shape == (4, 8)
  assert feed.state_at(1)['batches'] == 1
vocabulary = vocabularies.ByteVocabulary(125)
ids = np.array(vocabulary.encode('some text to corrupt'), np.int32)
inputs, targets = spans.corrupt_spans(ids, key=(0, 0), vocab_size=384)
filled = spans.fill_spans(inputs, targets, vocab_size=384, extra_ids=125)
assert vocabulary.decode(filled) == 'some text to corrupt'
batch = feature_converters.make_encoder_decoder_batch(
    [{'inputs': inputs, 'targets': targets}],
    task_feature_lengths={'inputs': 32, 'targets': 16},
)
assert batch['decoder_loss_weights'].sum() == targets.size
from tests.data import caches
root = tempfile.mkdtemp()
caches.write(root, caches.texts(20))
cached = next(caches.reader(caches.config(root)))
assert cached['decoder_loss_weights'].any()
data.DatasetConfig('a_task', {'inputs': 8}, 'train', 4, True, 0)
assert not any(
    name.split('.')[0] in ('tensorflow', 'seqio') for name in sys.modules
)
"""


def test_data_imports_and_works_with_tensorflow_and_seqio_absent():
  done = subprocess.run(
      [sys.executable, '-c', _PROGRAM],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      timeout=300,
      check=False,
  )
  assert done.returncode == 0, done.stderr
