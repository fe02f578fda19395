# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Asked to stop: every process leaves the loop after the same step.

SLURM, Kubernetes and cloud providers announce the end of a node by SIGTERM; a
person at a terminal presses Ctrl-C. One process can act on its own signal;
several must agree on a step first, or one of them saves while the others wait
for it in a collective. JAX's preemption service (part of `jax.distributed`)
makes that agreement; it listens to SIGTERM, so a Ctrl-C is passed on as one.
"""

import os
import signal
import threading

from absl import logging
import jax
from jax.experimental import multihost_utils


class Preempted(Exception):  # noqa: N818  the field says "preempted"
  """The run was asked to stop, saved its state and should be restarted."""

  def __init__(self, step: int, *, by_keyboard: bool = False):
    """Keeps the step after which the state was saved, and who asked."""
    asked = 'stopped by Ctrl-C' if by_keyboard else 'asked to stop by SIGTERM'
    super().__init__(
        f'{asked}: state saved after step {step}; the same command resumes '
        'from there'
    )
    self.step = step
    self.by_keyboard = by_keyboard


class StopSignal:
  """Tells, after each step, whether all processes must stop now."""

  def __init__(self):
    """Installs nothing yet; use as a context manager."""
    self._asked = threading.Event()
    self._previous = {}
    self.by_keyboard = False

  def __enter__(self):
    """Takes over Ctrl-C, and SIGTERM where this process must watch it."""
    if threading.current_thread() is threading.main_thread():
      # With several processes JAX's own notifier holds SIGTERM.
      if jax.process_count() == 1:
        self._take_over(signal.SIGTERM, self._on_sigterm)
      # A shell's background job ignores Ctrl-C, and goes on doing so.
      if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        self._take_over(signal.SIGINT, self._on_ctrl_c)
    return self

  def __exit__(self, *exc):
    """Gives the signals back."""
    for number, handler in self._previous.items():
      signal.signal(number, handler)
    self._previous.clear()

  def _take_over(self, number: int, handler) -> None:
    previous = signal.signal(number, handler)
    # None: set by other than Python, which cannot set it again.
    self._previous[number] = (
        signal.SIG_DFL if previous is None else previous
    )

  def _on_sigterm(self, number, frame):
    del number, frame
    logging.warning('SIGTERM: saving after the step under way, then leaving')
    self._asked.set()

  def _on_ctrl_c(self, number, frame):
    del number, frame
    # The system's own answer to the next one: it needs no Python, which may be
    # waiting for a device or a file system.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.warning(
        'Ctrl-C: saving after the step under way, then leaving; once more '
        'leaves at once, without what came after the last checkpoint'
    )
    self.by_keyboard = True
    self.ask()

  def ask(self) -> None:
    """Asks all processes to stop, as a signal to this one would."""
    if jax.process_count() == 1:
      self._asked.set()
    else:
      os.kill(os.getpid(), signal.SIGTERM)

  def reached(self, step: int) -> bool:
    """Returns True on every process after the same step."""
    if jax.process_count() == 1:
      return self._asked.is_set()
    return multihost_utils.reached_preemption_sync_point(step)
