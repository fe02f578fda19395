# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""States out of checkpoints, in the steps that T5X's binaries take."""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any

from absl import logging
import jax

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import initialize
from t5wild.checkpoints import positions
from t5wild.checkpoints import restoring

RestoreConfig = configs.RestoreCheckpointConfig


def get_first_valid_restore_config_and_paths(
    restore_cfgs: Sequence[RestoreConfig | None],
) -> tuple[RestoreConfig | None, Sequence[str]]:
  """Returns the first config that names checkpoints, and these; or (None, []).

  Raises:
    steps.NotACheckpointError: A path is no directory; or, of mode 'specific',
      no checkpoint.
  """
  for cfg in restore_cfgs:
    paths = [] if cfg is None else _paths_of(cfg)
    if paths:
      return cfg, paths
  return None, []


def _paths_of(cfg: RestoreConfig) -> list[str]:
  """The checkpoints of a config, none where a run has saved none yet."""
  if cfg.mode == 'specific':
    return cfg.checkpoint_paths()
  is_one = isinstance(cfg.path, str | os.PathLike)
  for path in [cfg.path] if is_one else cfg.path or ():
    absolute = steps.absolute_path(path)
    if steps.all_steps(absolute) or steps.tensorflow_checkpoints(absolute):
      return cfg.checkpoint_paths()
    logging.info('%s holds no checkpoint', path)
  return []


def get_fallback_state(
    restore_cfg: RestoreConfig | None,
    init_fn: Callable[[jax.Array], Mapping[str, Any]],
    init_rng: jax.Array | None,
) -> Mapping[str, Any] | None:
  """Returns a state dict for what a checkpoint lacks; None: it may lack none.

  Raises:
    ValueError: It may lack something, and no key says how to draw it.
  """
  if restore_cfg is None or not restore_cfg.fallback_to_scratch:
    return None
  if init_rng is None:
    raise ValueError(
        'RestoreCheckpointConfig.fallback_to_scratch is True and init_rng is '
        'None, expected a key for what the checkpoint lacks: give init_rng, '
        'or set fallback_to_scratch to False'
    )
  return init_fn(init_rng)


def read_state(
    path: str,
    cfg: RestoreConfig,
    *,
    partitioner: Any,
    train_state_shape: Any,
    train_state_axes: Any,
    fallback_state: Mapping[str, Any] | None = None,
    ds_iter: Any = None,
) -> Any:
  """Returns the state of one checkpoint, on the devices.

  Args:
    path: A checkpoint folder.
    cfg: How to read it.
    partitioner: Gives shardings for `train_state_axes`.
    train_state_shape: The state with leaves that have shape and dtype.
    train_state_axes: The state with PartitionSpecs as leaves.
    fallback_state: State dict of arrays for what it lacks; None: it may not.
    ds_iter: Gets its position in the data where `cfg.restore_dataset` is set.

  Raises:
    steps.NotACheckpointError: The path is none, or has no position in the data.
    transforms.DifferentModelError: It is of another model.
  """
  request = restoring.Request(
      abstract_state=train_state_shape.state_dict(),
      shardings=initialize.shardings_of(
          partitioner, train_state_shape, train_state_axes
      ),
      dtype=cfg.dtype or restoring.AS_SAVED,
      transformation_fns=cfg.transformation_fns(),
      strict=cfg.strict,
      fallback_state=None if fallback_state is None else lambda: fallback_state,
      trust_paths=cfg.trust_paths,
  )
  state = train_state_shape.restore_state(
      restoring.restore_state(steps.absolute_path(path), request)
  )
  if cfg.restore_dataset and ds_iter is not None:
    _restore_position(path, ds_iter)
  return state


def _restore_position(path: str, ds_iter: Any) -> None:
  position = positions.read_position(
      path, process=jax.process_index(), count=jax.process_count()
  )
  if position is None:
    raise steps.NotACheckpointError(
        f'{path} holds no position in the data, expected one since '
        'RestoreCheckpointConfig.restore_dataset is True: set it to False to '
        'read the data from the beginning'
    )
  if not hasattr(ds_iter, 'load_state_dict'):
    raise ValueError(
        f'the data is read by a {type(ds_iter).__name__}, expected one with '
        'load_state_dict, since RestoreCheckpointConfig.restore_dataset is '
        'True: make it by utils.prepare_train_iter'
    )
  ds_iter.load_state_dict(position)
