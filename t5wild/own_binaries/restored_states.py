# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's initialiser, which reads checkpoints too."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax

from t5wild.checkpoints import configs
from t5wild.checkpoints import t5x_restoring
from t5wild.trainer import initializer

RestoreConfig = configs.RestoreCheckpointConfig


class TrainStateInitializer(initializer.TrainStateInitializer):
  """Makes a train state, from scratch or from checkpoints."""

  def from_checkpoints(
      self,
      restore_cfgs: Sequence[RestoreConfig],
      ds_iter: Any = None,
      init_rng: jax.Array | None = None,
  ) -> Iterator[tuple[Any, str]]:
    """Yields the states of the first config that names checkpoints.

    Args:
      restore_cfgs: Which to read, in the order of preference.
      ds_iter: Gets the checkpoint's position in the data where a config has
        `restore_dataset`; see `train_iter.prepare_train_iter`.
      init_rng: Key for what a checkpoint lacks, where a config has
        `fallback_to_scratch`.

    Yields:
      (state, path of its checkpoint).
    """
    find = t5x_restoring.get_first_valid_restore_config_and_paths
    cfg, paths = find(restore_cfgs)
    for path in paths:
      state = t5x_restoring.read_state(
          path,
          cfg,
          partitioner=self.partitioner,
          train_state_shape=self.global_train_state_shape,
          train_state_axes=self.train_state_axes,
          fallback_state=t5x_restoring.get_fallback_state(
              cfg, lambda rng: self.from_scratch(rng).state_dict(), init_rng
          ),
          ds_iter=ds_iter,
      )
      yield state, path

  def from_checkpoint(
      self,
      ckpt_cfgs: Sequence[RestoreConfig],
      *,
      ds_iter: Any = None,
      init_rng: jax.Array | None = None,
  ) -> Any:
    """Returns the state of the one checkpoint there is; None: there is none.

    Raises:
      ValueError: There are several.
    """
    states = list(
        self.from_checkpoints(ckpt_cfgs, ds_iter=ds_iter, init_rng=init_rng)
    )
    if len(states) > 1:
      raise ValueError(
          f'the configs name {len(states)} checkpoints '
          f'({[path for _, path in states]}), expected at most 1: set mode to '
          "'specific' and path to one of them, or use from_checkpoints"
      )
    return states[0][0] if states else None

  def from_checkpoint_or_scratch(
      self,
      ckpt_cfgs: Sequence[RestoreConfig],
      *,
      init_rng: jax.Array,
      ds_iter: Any = None,
  ) -> Any:
    """Returns the state of the one checkpoint there is, or a new one."""
    found = self.from_checkpoint(ckpt_cfgs, ds_iter=ds_iter, init_rng=init_rng)
    return self.from_scratch(init_rng) if found is None else found
