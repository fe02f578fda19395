# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""All stores that a run saves to: MODEL_DIR, a fast tier, mirrors."""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
from typing import Any

from absl import logging
import jax

from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import listing
from t5wild.checkpoint_files import run_events
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoint_files import store_probe
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import mirroring
from t5wild.checkpoints import owners
from t5wild.checkpoints import save_events
from t5wild.checkpoints import transforms
from t5wild.partitioning import distributed
from t5wild.vitals import heartbeats

_ON_RECORD = (
    save_events.FAILED, save_events.ABANDONED, save_events.SAVED_LATE
)  # fmt: skip


class RunStores:
  """Saves to each store by its own period; use from one thread.

  Attributes:
    main: Manages the checkpoints in MODEL_DIR.
  """

  def __init__(
      self,
      model_dir: str,
      config: configs.SaveCheckpointConfig,
      *,
      on_event: Callable[[save_events.CheckpointEvent], None],
      source: str | None = None,
  ):
    """Opens the stores.

    Args:
      model_dir: The run directory.
      config: What to save, where and how often.
      on_event: Called, usually from a background thread, with what happened
        in MODEL_DIR.
      source: Checkpoint of its own that the run goes on from, or None.

    Raises:
      steps.UnwritableError: Nothing could be saved in one of them.
    """
    self._config = config
    self._model_dir = steps.absolute_path(model_dir)
    self._on_event = on_event
    self._period = config.period
    fast = [tier for tier in config.tiers if tier.is_fast]
    mirrors = [tier for tier in config.tiers if not tier.is_fast]
    self._mirrors = []
    run_id = ''
    if jax.process_index() == 0:
      for tier in config.tiers:
        owners.claim(tier.directory, model_dir=self._model_dir)
      _leave_addresses(self._model_dir, config)
      if not steps.is_bucket(self._model_dir):
        heartbeats.remove_leftovers(run_dir_lib.RunDir(self._model_dir))
      run_id = run_ids.establish(self._model_dir, source=source)
      self._mirrors = [
          mirroring.Mirroring(self._model_dir, tier, tell=self._tell)
          for tier in mirrors
      ]
    # All hold against it what they go back to.
    run_id = distributed.meet('id of the run', value=run_id)[0]
    self._run_id = run_id
    self.main = manager_lib.CheckpointManager(
        model_dir,
        config=config,
        on_event=self._on_main,
        is_held=lambda step: any(m.holds(step) for m in self._mirrors),
        run_id=run_id,
    )
    self._fast = None
    self._fast_period = None
    if fast:
      self._fast_period = fast[0].period
      self._fast = manager_lib.CheckpointManager(
          fast[0].directory,
          config=_of_fast_tier(config, fast[0].keep),
          on_event=self._on_record,
          run_id=run_id,
      )

  def probe(self, train_state: Any) -> None:
    """Tells what speaks against saving a state to these stores.

    Every process calls it alike.
    """
    leaves = transforms.flatten(train_state.state_dict()).values()
    num_bytes = sum(getattr(leaf, 'nbytes', 0) for leaf in leaves)
    managers = [self.main, *([self._fast] if self._fast else [])]
    for directory in [manager.directory for manager in managers]:
      findings = []
      if jax.process_index() == 0:
        findings += store_probe.look(
            directory, checkpoint_bytes=num_bytes, num_arrays=len(leaves)
        )
      if jax.process_count() > 1 and not steps.is_bucket(directory):
        findings += store_probe.is_shared(
            directory, process=jax.process_index(), meet=_meet
        )
      for finding in findings if jax.process_index() == 0 else ():
        self._tell('file_system', 0, finding)

  def fast_is_due(self, step: int) -> bool:
    """Whether the fast tier gets the state after a step; cheap."""
    if self._fast is None or step % self._fast_period:
      return False
    return not self._period or step % self._period != 0

  def save_fast(
      self, step: int, train_state: Any, dataset_state: Mapping[str, Any] | None
  ) -> None:
    """Starts a save to the fast tier."""
    self._fast.save(step, train_state, dataset_state)

  def rescue(
      self,
      directory: str,
      step: int,
      train_state: Any,
      dataset_state: Mapping[str, Any] | None,
  ) -> bool:
    """Saves a last state elsewhere; returns whether it is there."""
    try:
      manager = manager_lib.CheckpointManager(
          directory,
          config=dataclasses.replace(self._config, tiers=()),
          run_id=self._run_id,
      )
      with contextlib.closing(manager):
        manager.save(step, train_state, dataset_state)
        return manager.wait() and step in manager.all_steps()
    except (OSError, steps.UnwritableError):
      logging.exception('The last state is not saved in %s', directory)
      return False

  def quarantine_after(self, step: int, *, reason: str) -> list[int]:
    """Waits for saves under way; takes all later steps out of use.

    Returns:
      The steps of these checkpoints of MODEL_DIR, which stay where they are.
    """
    found = []
    for manager in filter(None, (self.main, self._fast)):
      manager.wait()
      later = [saved for saved in manager.all_steps() if saved > step]
      manager.shelf.quarantine(later, reason=reason)
      found = found or (later if manager is self.main else [])
    for mirror in self._mirrors:
      mirror.quarantine(step + 1, reason=reason)
    if found and jax.process_index() == 0:
      self._tell(
          'quarantined', max(found),
          f'checkpoints {found} are in quarantine: {reason}',
      )  # fmt: skip
    return found

  def close(self) -> None:
    """Waits for saves and copies under way."""
    try:
      self.main.close()
    finally:
      if self._fast is not None:
        self._fast.close()
      for mirror in self._mirrors:
        mirror.close()

  def _on_main(self, event: save_events.CheckpointEvent) -> None:
    self._on_record(event)
    self._on_event(event)
    if event.kind in (save_events.SAVED, save_events.SAVED_LATE):
      for mirror in self._mirrors:
        mirror.offer(event.step)

  def _on_record(self, event: save_events.CheckpointEvent) -> None:
    if event.kind in _ON_RECORD:
      self._tell(event.kind, event.step, f'{event.directory}: {event}')

  def _tell(self, name: str, step: int, text: str) -> None:
    run_events.add(
        self._model_dir, name, step=step, text=text,
        process=jax.process_index(),
    )  # fmt: skip


def _leave_addresses(
    model_dir: str, config: configs.SaveCheckpointConfig
) -> None:
  """So that `t5wild checkpoints list` finds all stores of the run."""
  try:
    listing.write_stores(
        model_dir, [steps.absolute_path(t.directory) for t in config.tiers]
    )
  except OSError:
    logging.exception('%s does not name the other stores', model_dir)


def _of_fast_tier(
    config: configs.SaveCheckpointConfig, keep: int
) -> configs.SaveCheckpointConfig:
  """The same states, and of these the newest."""
  return dataclasses.replace(
      config,
      keep=keep,
      keep_best=None,
      best_metric=None,
      keep_period=None,
      keep_dataset_checkpoints=None,
      checkpointer_cls=None,
      tiers=(),
  )


def _meet(value: str) -> list[str]:
  logging.debug('The processes compare what they see of a store')
  return distributed.meet('store of checkpoints', value=value)
