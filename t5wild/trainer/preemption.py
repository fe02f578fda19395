# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Asked to stop: every process leaves the loop after the same step.

SLURM, Kubernetes and cloud providers announce the end of a node by SIGTERM.
One process can act on its own signal; several must agree on a step first, or
one of them saves while the others wait for it in a collective. JAX's
preemption service (part of `jax.distributed`) makes that agreement.
"""

import signal
import threading

from absl import logging
import jax
from jax.experimental import multihost_utils


class Preempted(Exception):  # noqa: N818  the field says "preempted"
  """The run was asked to stop, saved its state and should be restarted."""

  def __init__(self, step: int):
    """Keeps the step after which the state was saved."""
    super().__init__(
        f'asked to stop by SIGTERM: state saved after step {step}; the same '
        'command resumes from there'
    )
    self.step = step


class StopSignal:
  """Tells, after each step, whether all processes must stop now."""

  def __init__(self):
    """Installs nothing yet; use as a context manager."""
    self._asked = threading.Event()
    self._previous = None

  def __enter__(self):
    """Takes over SIGTERM where this process must watch it itself."""
    main = threading.current_thread() is threading.main_thread()
    # With several processes JAX's own notifier holds SIGTERM.
    if main and jax.process_count() == 1:
      self._previous = signal.signal(signal.SIGTERM, self._on_signal)
    return self

  def __exit__(self, *exc):
    """Gives SIGTERM back."""
    if self._previous is not None:
      signal.signal(signal.SIGTERM, self._previous)

  def _on_signal(self, number, frame):
    del number, frame
    logging.warning('SIGTERM: saving after the step under way, then leaving')
    self._asked.set()

  def reached(self, step: int) -> bool:
    """Returns True on every process after the same step."""
    if jax.process_count() == 1:
      return self._asked.is_set()
    return multihost_utils.reached_preemption_sync_point(step)
