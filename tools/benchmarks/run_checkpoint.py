# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Saving and restoring a state of 2 GB through t5wild's manager."""

import os
import tempfile
import time

import jax

from benchmarks import measure
from t5wild import train_state as train_state_lib
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import state_hashes
from t5wild.checkpoints import transforms
from t5wild.optimizers import optax_wrapper

_BLOCK_GOAL_SECONDS = 0.2
_RATE_GOAL = 200e6  # bytes per second
_HASH_GOAL = 1e9
_SIZE_BYTES = 2_000_000_000
_SMALL_BYTES = 20_000_000
_NUM_ARRAYS = 40
LEARNING_RATE = 0.01  # of an optimiser that keeps no state


def _make_state(num_bytes: int) -> train_state_lib.FlaxOptimTrainState:
  rows = num_bytes // _NUM_ARRAYS // 4 // 1024
  make = jax.jit(lambda key: jax.random.normal(key, (rows, 1024)))
  keys = jax.random.split(jax.random.PRNGKey(0), _NUM_ARRAYS)
  params = {f'layer_{i}': {'kernel': make(k)} for i, k in enumerate(keys)}
  return train_state_lib.FlaxOptimTrainState.create(
      optax_wrapper.sgd(LEARNING_RATE), {'params': params}
  )


def _report(name: str, seconds: float, num_bytes: int) -> None:
  rate = num_bytes / seconds
  measure.emit(
      f'checkpoint_{name}_rate',
      rate,
      'bytes/second',
      goal=_RATE_GOAL,
      met=rate >= _RATE_GOAL,
      seconds=seconds,
      bytes=num_bytes,
  )


def _report_hashing(state, num_bytes: int) -> None:
  """Prints how fast the arrays of a state are hashed, by one thread."""
  flat = transforms.flatten(state.state_dict())
  dtypes = {key: leaf.dtype for key, leaf in flat.items()}
  start = time.perf_counter()
  state_hashes.start_hashing(flat, dtypes=dtypes)()
  rate = num_bytes / (time.perf_counter() - start)
  measure.emit(
      'checkpoint_hash_rate',
      rate,
      'bytes/second',
      goal=_HASH_GOAL,
      met=rate >= _HASH_GOAL,
      bytes=num_bytes,
  )


def run(options) -> None:
  """Prints how long a save blocks; rates of saving, restoring, hashing."""
  state = _make_state(_SMALL_BYTES if options.small else _SIZE_BYTES)
  num_bytes = sum(x.nbytes for x in jax.tree.leaves(state.params))
  with tempfile.TemporaryDirectory(dir=options.folder) as folder:
    manager = manager_lib.CheckpointManager(
        folder, config=configs.SaveCheckpointConfig(period=1, keep=2)
    )
    manager.prepare(state)
    start = time.perf_counter()
    manager.save(1, state)
    blocked = time.perf_counter() - start
    manager.wait()
    saved = time.perf_counter() - start
    os.sync()
    start = time.perf_counter()
    restored, _ = manager.restore(
        1,
        abstract_state=jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
            state.state_dict(),
        ),
        shardings=jax.tree.map(lambda x: x.sharding, state.state_dict()),
    )
    jax.block_until_ready(restored)
    read = time.perf_counter() - start
    manager.close()
  measure.emit(
      'checkpoint_blocked',
      blocked,
      'seconds',
      goal=_BLOCK_GOAL_SECONDS,
      met=blocked <= _BLOCK_GOAL_SECONDS,
  )
  _report('save', saved, num_bytes)
  _report('restore', read, num_bytes)
  _report_hashing(state, num_bytes)
