# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Gives the checkpoints that a config names, and those that are to come."""

from collections.abc import Iterator
import time

from absl import logging

from t5wild import inference_state
from t5wild import run_dir
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.partitioning import distributed


def watch_checkpoints(
    cfg: configs.RestoreCheckpointConfig,
    *,
    wait_seconds: float = 0.0,
    poll_seconds: float = 10.0,
    total_steps: int | None = None,
) -> Iterator[str]:
  """Yields each checkpoint folder once, oldest first, alike on all processes.

  Args:
    cfg: Which checkpoints.
    wait_seconds: How long to wait for each one that is not there yet; 0 gives
      those that are there.
    poll_seconds: Time between looks.
    total_steps: Waits for none after this step; None: the time decides.

  Raises:
    steps.NotACheckpointError: None is there, and none is waited for.
  """
  seen: set[str] = set()
  deadline = time.monotonic() + wait_seconds
  while True:
    there = _look(cfg, is_waiting=wait_seconds > 0)
    found = [path for path in there if path not in seen]
    yield from found
    seen.update(found)
    if found:
      deadline = time.monotonic() + wait_seconds
    if not wait_seconds or _is_over(seen, total_steps, deadline):
      return
    if not found:
      time.sleep(min(poll_seconds, max(0.0, deadline - time.monotonic())))


def _look(
    cfg: configs.RestoreCheckpointConfig, *, is_waiting: bool
) -> list[str]:
  try:
    return inference_state.find_checkpoints(cfg)
  except steps.NotACheckpointError:
    if not is_waiting:
      raise
    return []


def _is_over(seen: set[str], total_steps: int | None, deadline: float) -> bool:
  """Whether no more is waited for; process 0 has the clock."""
  found = [run_dir.checkpoint_step(path) or 0 for path in seen]
  if total_steps is not None and max(found, default=-1) >= total_steps:
    return True
  is_late = distributed.meet(
      'end of the wait for checkpoints', value=time.monotonic() >= deadline
  )[0]
  if is_late:
    logging.warning(
        'No new checkpoint came in time; the newest is of step %s. Run it '
        'again to go on.', max(found, default=None),
    )
  return is_late
