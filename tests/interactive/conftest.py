# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A short run of the copy task, to take a model from."""

import pytest

from tests.end_to_end import runs

_RECIPE = runs.RECIPE.with_name('decoding.gin')


@pytest.fixture(scope='session')
def copy_run(tmp_path_factory):
  """MODEL_DIR of a run with the steps 0, 2 and 4."""
  folder = tmp_path_factory.mktemp('interactive') / 'run'
  code = runs.train(
      folder,
      recipe=_RECIPE,
      TRAIN_STEPS=4,
      DROPOUT_RATE=0.0,
      checkpoints__SaveCheckpointConfig__period=2,
  )
  assert code == 0
  return folder
