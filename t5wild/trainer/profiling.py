# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A profiler trace on demand: of steps named in gin, or upon a signal."""

from collections.abc import Callable
import contextlib
import logging
import signal
import sys
import threading
from typing import Any

import jax

# What starting and writing a trace raise: another one is being taken, no space.
_FAILURES = (RuntimeError, OSError)


class StepProfiler:
  """Traces some steps with `jax.profiler`.

  The loop calls `at_step` before each step, which costs nothing unless a trace
  begins or ends there. In gin, with `train_script.train.profiler_cls =
  @profiling.StepProfiler` as in runs/pretrain.gin:

    profiling.StepProfiler.start_step = 20
    profiling.StepProfiler.num_steps = 5

  And at any time `kill -USR2 PID` traces the next `num_steps` steps. Each trace
  is a folder `plugins/profile/TIME` that TensorBoard's profile plugin and
  Perfetto read. On Python 3.11 a trace holds no frames of Python. A trace that
  cannot be taken or written is told, and the run goes on.
  """

  def __init__(
      self,
      directory: str,
      *,
      start_step: int | None = None,
      num_steps: int = 5,
      on_signal: bool = True,
  ):
    """Installs the signal handler where that is possible.

    Args:
      directory: where traces go, e.g. `RunDir.profile`.
      start_step: first step of a trace; None = only upon the signal.
      num_steps: steps in a trace.
      on_signal: whether SIGUSR2 starts a trace. Only the main thread can
        install a handler; elsewhere this is skipped.

    Raises:
      ValueError: no step would be traced.
    """
    if num_steps < 1 or (start_step is not None and start_step < 0):
      raise ValueError(
          f'StepProfiler got start_step = {start_step!r} and num_steps = '
          f'{num_steps!r}; expected start_step >= 0 or None, and num_steps >= '
          '1; set profiling.StepProfiler.start_step and .num_steps.'
      )
    self._directory = directory
    self._start_step = start_step
    self._num_steps = num_steps
    self._stop_step: int | None = None
    self._is_unwritten = False
    self._asked = threading.Event()
    self._restore_handler: Callable[[], None] | None = None
    if on_signal and hasattr(signal, 'SIGUSR2'):
      self._install_handler()

  @property
  def tracing(self) -> bool:
    """Whether a trace is being taken."""
    return self._stop_step is not None

  def request(self) -> None:
    """Asks for a trace from the next step on, as the signal does."""
    self._asked.set()

  def at_step(self, step: int, *, block_on: Any = None) -> None:
    """Begins or ends a trace if this step is the one for it.

    Args:
      step: number of updates finished before the step that comes.
      block_on: arrays of the last step, waited for before a trace ends, so
        that the trace holds what the device did.
    """
    if self._stop_step is not None:
      if step >= self._stop_step:
        self._stop(block_on)
    elif step == self._start_step or self._asked.is_set():
      self._asked.clear()
      self._start(until=step + self._num_steps)

  def close(self, *, block_on: Any = None) -> None:
    """Ends a trace that is being taken and gives the signal back."""
    if self.tracing:
      self._stop(block_on)
    if self._restore_handler is not None:
      self._restore_handler()
      self._restore_handler = None

  def _start(self, *, until: int) -> None:
    if self._is_unwritten:
      # JAX may take a trace that it could not write for one still being taken.
      with contextlib.suppress(*_FAILURES):
        jax.profiler.stop_trace()
      self._is_unwritten = False
    try:
      jax.profiler.start_trace(
          self._directory, profiler_options=_trace_options()
      )
    except _FAILURES as error:
      logging.error('No profiler trace until step %d: %s', until, error)
    else:
      self._stop_step = until

  def _stop(self, block_on: Any) -> None:
    if block_on is not None:
      jax.block_until_ready(block_on)
    self._stop_step = None
    try:
      jax.profiler.stop_trace()
    except _FAILURES as error:
      logging.error(
          'A profiler trace could not be written to %s: %s',
          self._directory,
          error,
      )
      self._is_unwritten = True
      return
    logging.info(
        'Profiler trace in %s: tensorboard --logdir %s',
        self._directory,
        self._directory,
    )

  def _install_handler(self) -> None:
    if threading.current_thread() is not threading.main_thread():
      return
    previous = signal.signal(signal.SIGUSR2, lambda *_: self._asked.set())
    self._restore_handler = lambda: signal.signal(signal.SIGUSR2, previous)


def _trace_options() -> jax.profiler.ProfileOptions:
  """JAX's own options, without what ends a process on Python 3.11.

  There the tracer of Python frames visits each thread's state while native
  threads come and go (TensorStore's, TensorFlow's): with such threads, 3 of 9
  processes died of a segmentation fault, of those without it none, and none on
  Python 3.12, which has an interface for it.
  """
  options = jax.profiler.ProfileOptions()
  if sys.version_info < (3, 12):
    options.python_tracer_level = 0
  return options
