# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Copies of checkpoints in a bucket: whole, checked, read back."""

import contextlib

import numpy as np
import pytest

from t5wild.checkpoint_files import command
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import restoring
from tests import s3_server
from tests.checkpoints import checkpoint_states as states

s3_server.skip_without_its_packages()
pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def bucket():
  with s3_server.running():
    yield f's3://{s3_server.BUCKET}/mirror'


def test_a_mirror_in_a_bucket_is_complete_verified_and_restored(
    bucket, tmp_path, capsys
):
  numbers = states.make_numbers(1)
  numbers['target']['big'] = np.random.default_rng(0).random((64, 64)).astype(
      np.float32
  )
  mesh = states.make_mesh((4, 2))
  manager = manager_lib.CheckpointManager(
      tmp_path / 'run', config=configs.SaveCheckpointConfig()
  )
  with contextlib.closing(manager):
    manager.save(1, states.place(numbers, mesh))
  assert command.main(['mirror', str(tmp_path / 'run'), bucket]) == 0
  assert steps.all_steps(bucket) == [1]
  assert command.main(['verify', bucket, '--arrays']) == 0
  assert 'checkpoint_1: good' in capsys.readouterr().out
  read = restoring.restore_state(
      f'{bucket}/checkpoint_1',
      restoring.Request(
          abstract_state=states.abstract(numbers),
          shardings=states.shardings_of(numbers, mesh),
      ),
  )
  states.assert_same_bits(read, numbers)
