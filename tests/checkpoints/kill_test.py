# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A process killed at any moment leaves complete checkpoints alone."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from tests import multiprocess

_SHAPE = (256, 1024)

# Saves step after step, and tells each: the numbers of a state are its step.
_CHILD = """
import json, os, signal, sys
import jax
import jax.numpy as jnp
from t5wild.checkpoints import configs, manager

directory, kill_at, last = sys.argv[1], sys.argv[2], int(sys.argv[3])

def hook(event, arguments):
  if kill_at and kill_at in f'{event} {arguments}':
    os.kill(os.getpid(), signal.SIGKILL)

def tell(kind, step):
  print(json.dumps([kind, step]), flush=True)

opened = manager.CheckpointManager(
    directory,
    config=configs.SaveCheckpointConfig(keep=2),
    on_event=lambda event: tell(event.kind, event.step),
)
sys.addaudithook(hook)
step = (opened.latest_step() or 0) + 1
tell('begin', step)
while step <= last:
  state = {'target': {'a': jnp.full((256, 1024), step, jnp.float32),
                      'b': jnp.full((8,), step, jnp.int32)}}
  opened.save(step, state, {'batches': step})
  step += 1
opened.close()
"""


@contextlib.contextmanager
def _child(directory, *, kill_at='', last=10**6):
  process = subprocess.Popen(
      [sys.executable, '-c', _CHILD, str(directory), kill_at, str(last)],
      env=multiprocess.process_environment(devices_per_process=1),
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
  )
  try:
    yield process
  finally:
    process.kill()
    process.communicate()


def _events(output):
  return [json.loads(line) for line in output.splitlines() if line]


def _assert_all_complete(directory):
  """Every checkpoint that is found holds the numbers of its step."""
  sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
  shapes = {
      'target': {
          'a': jax.ShapeDtypeStruct(_SHAPE, np.float32),
          'b': jax.ShapeDtypeStruct((8,), np.int32),
      }
  }
  opened = manager_lib.CheckpointManager(
      directory, config=configs.SaveCheckpointConfig()
  )
  with contextlib.closing(opened):
    for step in opened.all_steps():
      state, position = opened.restore(
          step,
          abstract_state=shapes,
          shardings=jax.tree.map(lambda leaf: sharding, shapes),
      )
      assert all((x == step).all() for x in jax.tree.leaves(state))
      assert position == {'batches': step}
    return opened.all_steps()


@pytest.mark.parametrize(
    ('kill_at', 'left'),
    [
        # The last moment before step 1, then step 2, would be complete.
        ("os.rename ('{run}/checkpoint_1.orbax-checkpoint-tmp", []),
        ("os.rename ('{run}/checkpoint_2.orbax-checkpoint-tmp", [1]),
        # In the middle of removing step 1, which step 3 has made too much.
        ("shutil.rmtree ('{run}/checkpoint_1.deleted", [2, 3]),
    ],
)
def test_process_killed_at_the_worst_moment_leaves_older_steps(
    tmp_path, kill_at, left
):
  run = tmp_path / 'run'
  with _child(run, kill_at=kill_at.format(run=run), last=3) as process:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors[-2000:]
  assert len(os.listdir(run)) == len(left) + 1, 'it was not killed half-way'
  assert steps.all_steps(run) == left
  assert _assert_all_complete(run) == left
  assert sorted(os.listdir(run)) == [f'checkpoint_{step}' for step in left]


@pytest.mark.slow
def test_process_killed_at_random_moments_always_goes_on(tmp_path):
  run = pathlib.Path(tmp_path / 'run')
  rng = random.Random(0)
  newest = 0
  for _ in range(15):
    with _child(run) as process:
      begin = json.loads(process.stdout.readline())
      assert begin == ['begin', newest + 1]
      time.sleep(rng.uniform(0.0, 1.5))
      process.kill()
      output, _ = process.communicate()
    saved = [step for kind, step in _events(output) if kind == 'saved']
    complete = _assert_all_complete(run)
    # What was told as saved is there; one more may be, its word cut off.
    newest = max(complete, default=0)
    assert newest in ({max(saved), max(saved) + 1} if saved else
                      {begin[1] - 1, begin[1]})  # fmt: skip
  assert newest > 0
