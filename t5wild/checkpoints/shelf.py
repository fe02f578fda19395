# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The complete checkpoints of a run: which there are, how good, which go."""

from collections.abc import Callable, Collection, Mapping
import json
import threading

from absl import logging
from etils import epath
import jax

from t5wild.checkpoint_files import health as health_lib
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import retention

_METRICS_FILE = 'metrics.json'


class Shelf:
  """Knows the complete steps and their metrics; process 0 removes folders.

  Every process is told the same, so that all know the same steps without
  asking the disk, which shows changes late. Safe to use from several threads.
  """

  def __init__(
      self,
      directory: str,
      *,
      policy: retention.Policy,
      keep_dataset_states: int | None,
      is_held: Callable[[int], bool] = lambda step: False,
  ):
    """Reads what is there.

    Args:
      directory: The run directory.
      policy: Which checkpoints stay.
      keep_dataset_states: Number of newest data positions that stay, or None
        for all.
      is_held: Whether a checkpoint is being copied, and must stay for now.
    """
    self._is_held = is_held
    # Off the shelf, and on the disk for now: pinned, or being copied.
    self._kept_back: set[int] = set()
    self._directory = directory
    self._policy = policy
    self._keep_dataset_states = keep_dataset_states
    self._lock = threading.Lock()
    self._metrics = {
        step: self._read_metrics(step) for step in steps.all_steps(directory)
    }
    # What is in quarantine is not on the shelf, and in nobody's way.
    self._health = health_lib.Book(directory, is_writer=_is_primary())
    self._early_metrics = {}
    self._has_warned = False

  def path(self, step: int) -> str:
    """Returns the folder of a step's checkpoint."""
    return steps.get_checkpoint_dir(self._directory, step)

  def all_steps(self) -> list[int]:
    """Returns the complete steps in order."""
    with self._lock:
      return sorted(self._metrics)

  def make_room(self, step: int) -> None:
    """Removes what lies where a step is to be saved, in quarantine or not."""
    if step in self._kept_back:
      self._kept_back.discard(step)
      if _is_primary():
        steps.delete_checkpoint(self.path(step))
    if step in self.all_steps():
      self.remove(step)
    elif self._health.of(step).state == health_lib.QUARANTINED:
      if _is_primary():
        steps.delete_checkpoint(self.path(step))
      self._health.forget(step)

  def in_health(self, state: str) -> list[int]:
    """Steps on the shelf in a state of `health`, in order."""
    return self._health.in_state(state, self.all_steps())

  def promote(self, steps_: Collection[int]) -> list[int]:
    """So many good steps followed these checkpoints; returns which are new."""
    return self._health.promote(set(steps_) & set(self.all_steps()))

  def quarantine(self, steps_: Collection[int], *, reason: str) -> None:
    """Takes checkpoints that a fault followed off the shelf; all stay there."""
    with self._lock:
      found = [step for step in sorted(steps_) if step in self._metrics]
      for step in found:
        del self._metrics[step]
    self._health.quarantine(found, reason=reason)

  def add(self, step: int) -> None:
    """Takes in a checkpoint that is complete."""
    self._health.forget(step)
    with self._lock:
      self._metrics[step] = {}
      early = self._early_metrics.pop(step, None)
    if early:
      self.add_metrics(step, early)

  def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
    """Notes what is known of a step, complete already or later."""
    if not metrics:
      return
    self._warn_if_useless(metrics)
    values = {name: float(value) for name, value in metrics.items()}
    with self._lock:
      if step not in self._metrics:
        self._early_metrics.setdefault(step, {}).update(values)
        return
      self._metrics[step].update(values)
      text = json.dumps(self._metrics[step], indent=1, sort_keys=True)
    if _is_primary():
      try:
        (epath.Path(self.path(step)) / _METRICS_FILE).write_text(text)
      except OSError:  # A full disk does not end the run.
        logging.exception('Metrics of step %d are not kept for a restart', step)

  def _warn_if_useless(self, metrics: Mapping[str, float]) -> None:
    missing = retention.explain_missing_metric(self._policy, metrics)
    if missing and not self._has_warned:
      self._has_warned = True
      logging.error('%s', missing)

  def _read_metrics(self, step: int) -> dict[str, float]:
    file = epath.Path(self.path(step)) / _METRICS_FILE
    try:
      found = json.loads(file.read_text())
      return {str(name): float(value) for name, value in found.items()}
    except OSError:  # None yet.
      return {}
    except (ValueError, TypeError, AttributeError) as error:
      logging.error(
          '%s is damaged (%s: %s): the step counts as one without metrics, '
          'which keep_best does not keep', file, type(error).__name__, error,
      )  # fmt: skip
      return {}

  def remove(self, step: int) -> None:
    """Removes a step's checkpoint; it is no longer complete from the start."""
    if _is_primary():
      steps.delete_checkpoint(self.path(step))
    self._health.forget(step)
    with self._lock:
      self._metrics.pop(step, None)

  def remove_old(self) -> list[int]:
    """Removes what the policy does not keep; returns those steps, in order.

    Raises:
      OSError: A folder could not be removed; the next call tries again.
    """
    with self._lock:
      metrics = dict(self._metrics)
    healthy = self._health.in_state(health_lib.HEALTHY, metrics)
    gone = retention.steps_to_remove(
        metrics, policy=self._policy, metrics=metrics, healthy=healthy
    )
    if self._policy.keep is not None and healthy:
      # The run has left the fault behind.
      for step in self._health.quarantined():
        if step < healthy[-1] and not self._is_pinned(step):
          self.make_room(step)
    gone = sorted({*gone, *self._kept_back})
    staying = {s for s in gone if _is_primary() and self._must_stay(s)}
    self._kept_back = staying
    with self._lock:
      for step in staying:
        self._metrics.pop(step, None)
    gone = [step for step in gone if step not in staying]
    for step in gone:
      self.remove(step)
    if _is_primary():
      for step in retention.dataset_states_to_remove(
          metrics.keys() - {*gone, *staying}, keep=self._keep_dataset_states
      ):
        steps.delete_dataset_state(self.path(step))
    return gone

  def _must_stay(self, step: int) -> bool:
    return self._is_held(step) or self._is_pinned(step)

  def _is_pinned(self, step: int) -> bool:
    return pins.is_pinned(self.path(step))


def _is_primary() -> bool:
  return jax.process_index() == 0
