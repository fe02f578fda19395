# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the training step while the first state is made or read."""

from collections.abc import Callable, Mapping
import concurrent.futures
import time
from typing import Any

from absl import logging
import jax

from t5wild.partitioning import compile_errors
from t5wild.partitioning import distributed
from t5wild.trainer import agreement
from t5wild.trainer import compiler_memory
from t5wild.trainer import trainer as trainer_lib

# The slowest process comes so much later than the fastest, at most.
_COMPILE_SECONDS = 3600
_TOLD_AGAIN = (agreement.DisagreementError, compile_errors.CudnnError)


class CompileAhead:
  """One compilation, in a thread of its own.

  A compiler needs the state's shapes and not its values, and both take long:
  reading a large state, compiling a deep network. XLA compiles without Python's
  lock, so the two go on at once.
  """

  def __init__(
      self,
      make_trainer: Callable[[Any], trainer_lib.BaseTrainer],
      *,
      state_shape: Any,
      batch: Mapping[str, jax.ShapeDtypeStruct],
  ):
    """Describes what to compile; `start` begins.

    Args:
      make_trainer: Train state -> trainer.
      state_shape: The state with ShapeDtypeStructs as leaves.
      batch: Global batch of ShapeDtypeStructs.
    """
    self._make_trainer = make_trainer
    self._state_shape = state_shape
    self._batch = batch
    self._pool = concurrent.futures.ThreadPoolExecutor(1, 'compile_ahead')
    self._future: concurrent.futures.Future | None = None

  def start(self) -> None:
    """Begins to compile; returns at once. Call when nothing can be refused."""
    self._future = self._pool.submit(self._compile, self._state_shape)
    self._pool.shutdown(wait=False)

  def finish(self, trainer: trainer_lib.BaseTrainer) -> float:
    """Gives `trainer` its compiled step, as `_finish`; waits for all processes.

    Compilers take their time; the first collective would not wait for one.
    """
    seconds = self._finish(trainer)
    compiler_memory.give_back()
    distributed.barrier('compiled training step', _COMPILE_SECONDS)
    return seconds

  def _finish(self, trainer: trainer_lib.BaseTrainer) -> float:
    """Gives `trainer` its compiled step; waits for it if need be.

    Compiles anew where the state turned out to have other types than expected
    (a checkpoint's own), and where compiling ahead failed, so that an error is
    raised here, of the trainer that trains.

    Returns:
      Seconds that compiling took, waited for or not.
    """
    if self._future is not None:
      error = self._future.exception()
      if isinstance(error, _TOLD_AGAIN):
        raise error  # to compile anew would take as long and tell the same
      if error is not None:
        logging.info('Compiling ahead failed: %s', error)
      elif _types(trainer.train_state) == _types(self._state_shape):
        compiled, trainer.program_facts, seconds = self._future.result()
        trainer.use_compiled_train_step(compiled)
        trainer.write_program_facts()
        return seconds
    start = time.perf_counter()
    trainer.compile_train(self._batch)
    seconds = time.perf_counter() - start
    trainer.write_program_facts()
    return seconds

  def _compile(self, state: Any):
    start = time.perf_counter()
    trainer = self._make_trainer(state)
    compiled = trainer.compile_train(self._batch)
    return compiled, trainer.program_facts, time.perf_counter() - start


def _types(state: Any):
  """What a compiled function asks of its arguments."""
  return jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), state)
