# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The files of gin/objectives make the tasks that they say."""

import sys

import gin
import numpy as np
import pytest

from t5wild import gin_utils
from t5wild import train
from t5wild.data import datasets

pytest.importorskip('seqio')

_FILES = ['models/byt5/tiny.gin', 'runs/pretrain.gin']
_BINDINGS = [
    'TRAIN_STEPS=1',
    "MODEL_DIR='/nowhere'",
    'DROPOUT_RATE=0.0',
    'BATCH_SIZE=2',
    'seqio.ByteVocabulary.extra_ids=125',
]


@pytest.fixture(autouse=True)
def clean_gin(monkeypatch):
  monkeypatch.setattr(
      sys.modules['__main__'], 'train', train.train, raising=False
  )
  gin.clear_config()
  yield
  gin.clear_config()


def config_of(name, bindings=()):
  """The data set that a run of this objective trains on."""
  gin_utils.parse_gin_flags(
      [], [*_FILES, f'objectives/{name}.gin'], [*_BINDINGS, *bindings]
  )
  with gin.config_scope('train'):
    return gin.get_configurable(datasets.DatasetConfig)()


# Ends of sequence: of inputs (None: no such feature), of targets.
@pytest.mark.parametrize(
    ('name', 'ends'),
    [
        ('span_corruption', (True, True)),
        ('ul2', (True, True)),
        ('prefix_lm', (False, True)),
        ('lm', (None, False)),
        ('fim', (None, True)),
    ],
)
def test_an_objective_file_makes_a_task_that_fills_its_lengths(name, ends):
  cfg = config_of(name)
  task = cfg.mixture_or_task_name
  features = task.output_features
  assert ends == tuple(
      features[key].add_eos if key in features else None
      for key in ('inputs', 'targets')
  )
  dataset = task.get_dataset(
      cfg.task_feature_lengths, 'train', shuffle=False, seed=0,
      trim_output_features=False,
  )  # fmt: skip
  most = dict.fromkeys(cfg.task_feature_lengths, 0)
  for example in dataset.take(300).as_numpy_iterator():
    for key in most:
      most[key] = max(most[key], example[key].size)
  for key, length in cfg.task_feature_lengths.items():
    assert most[key] <= length
    # A prefix LM of a random split fits whatever is drawn, a UL2 chunk is
    # bounded by its text.
    assert most[key] >= 0.5 * length


def test_ul2_can_be_told_its_modes_and_weights():
  cfg = config_of(
      'ul2',
      [
          "objectives.ul2.mode_tokens={'R': '[R]', 'S': '[S]', 'X': '[X]'}",
          *(
              f'{name}/ul2.Denoiser.weight=0.0'
              for name in ('r_3', 'r_8', 'x_3', 'x_8', 'x_64', 'x_64_light')
          ),
      ],
  )
  task = cfg.mixture_or_task_name
  dataset = task.get_dataset(
      cfg.task_feature_lengths, 'train', shuffle=False, seed=0
  )
  for example in dataset.take(20).as_numpy_iterator():
    front = (example['inputs'][:3] - 3).astype(np.uint8)
    assert front.tobytes() == b'[S]'


def test_an_objective_file_for_a_decoder_needs_two_bindings():
  cfg = config_of(
      'ul2',
      [
          "text_objectives.find_objective.features='targets'",
          "TASK_FEATURE_LENGTHS={'targets': 600}",
      ],
  )
  task = cfg.mixture_or_task_name
  dataset = task.get_dataset(
      cfg.task_feature_lengths, 'train', shuffle=False, seed=0
  )
  sizes = [
      example['targets'].size
      for example in dataset.take(100).as_numpy_iterator()
  ]
  assert max(sizes) >= 550
