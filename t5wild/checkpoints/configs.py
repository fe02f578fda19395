# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a recipe says about saving and restoring; T5X's names and more."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import os
from typing import Any

from absl import logging

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import retention
from t5wild.checkpoints import tiers as tiers_lib
from t5wild.checkpoints import transforms

PyTree = Any
SAVE_DTYPES = (None, 'float32', 'bfloat16')
RESTORE_DTYPES = (None, 'float32', 'bfloat16', 'float16')
RESTORE_MODES = ('latest', 'specific', 'all')


@dataclasses.dataclass
class SaveCheckpointConfig:
  """When, what and how much to save; T5X's fields, then ours.

  Attributes:
    dtype: dtype that the parameters are saved in ('float32', 'bfloat16' or
      None for theirs); everything else keeps its own.
    period: Steps between checkpoints, or None.
    checkpoint_steps: Steps that are saved besides.
    keep: Number of newest checkpoints to keep, or None for all. Beside them the
      newest that was found healthy stays (docs/reliability.md).
    keep_dataset_checkpoints: Number of newest data positions to keep, or None
      for all.
    save_dataset: Whether the position in the data is saved, so that a resumed
      run goes on with the batches that it has not seen. (T5X's default is
      False, and its resumed runs repeated data.)
    checkpointer_cls: `Checkpointer` or `SaveBestCheckpointer`, for T5X's
      recipes; new ones set `keep_best`.
    state_transformation_fns: Called in order as f(state_dict, parameter_infos)
      before writing; each returns both. The infos are shapes and dtypes.
    checkpoint_manager_cls: T5X's field; only None is known.
    keep_best: Number of best checkpoints to keep besides the newest, or None.
    best_metric: Metric that says which is the best, named as in metrics.jsonl.
    best_mode: 'max' or 'min': which value of it is the best.
    keep_without_metric: Whether `keep_best` keeps checkpoints without a value:
      with a misspelt `best_metric` that is all of them, and else they go.
    keep_period: Checkpoints at its multiples stay for ever.
    deadline_seconds: How long a save may take; the run does not wait for one
      that is overdue, tells it, and the next saves go on without it.
    tiers: Other stores than MODEL_DIR, `FastTier` and `Mirror`.
    probe_loss: Whether the loss of a few fixed examples is saved along, and
      computed again when the run goes on: another model is then refused.
  """

  dtype: str | None = 'float32'
  period: int | None = None
  checkpoint_steps: Sequence[int] | None = None
  keep: int | None = None
  keep_dataset_checkpoints: int | None = None
  save_dataset: bool = True
  checkpointer_cls: Callable[..., Any] | None = None
  state_transformation_fns: Sequence[
      Callable[[PyTree, PyTree], tuple[PyTree, PyTree]]
  ] = ()
  checkpoint_manager_cls: Callable[..., Any] | None = None
  keep_best: int | None = None
  best_metric: str | None = None
  best_mode: str = 'max'
  keep_without_metric: bool = True
  keep_period: int | None = None
  deadline_seconds: float = 1200.0
  tiers: Sequence[Any] = ()
  probe_loss: bool = False

  def __post_init__(self):
    """Refuses what could only fail at the first save."""
    if not self.deadline_seconds > 0:
      raise ValueError(
          f'SaveCheckpointConfig.deadline_seconds is {self.deadline_seconds!r},'
          ' expected seconds above 0: set it to what a slow save takes'
      )
    _check_choice('SaveCheckpointConfig.dtype', self.dtype, SAVE_DTYPES)
    _check_tiers(self.tiers)
    _check_positive('period', self.period)
    _check_positive('keep_dataset_checkpoints', self.keep_dataset_checkpoints)
    _check_manager_class(self.checkpoint_manager_cls)
    policy = self.retention_policy()
    # T5X's way of asking for the best is told like ours from here on.
    self.best_metric = policy.best_metric

  def retention_policy(self) -> retention.Policy:
    """Returns which checkpoints stay."""
    if self.checkpointer_cls is not None:
      if self.keep_best is not None:
        raise ValueError(
            f'keep_best is {self.keep_best} and checkpointer_cls is '
            f'{self.checkpointer_cls}, expected one of them: drop '
            'checkpointer_cls'
        )
      return _policy_of(self.checkpointer_cls, self.keep)
    return retention.Policy(
        keep=self.keep,
        keep_best=self.keep_best,
        best_metric=self.best_metric,
        best_mode=self.best_mode,
        keep_without_metric=self.keep_without_metric,
        keep_period=self.keep_period,
    )


@dataclasses.dataclass
class RestoreCheckpointConfig:
  """Which checkpoint a new run begins from; T5X's fields.

  A run that goes on in its own directory ignores it.

  Attributes:
    path: A checkpoint folder ('specific') or a run directory around some
      ('latest', 'all'), or several of them; ours, or T5X's of either format.
      Relative paths count from the working directory. Empty: none.
    mode: 'specific', 'latest' or 'all' (evaluation goes through all).
    assignment_map: Pairs (pattern over the model's keys, replacement or None);
      see `transforms.apply_assignment_map`.
    strict: Whether parameters in the checkpoint that the model lacks are an
      error.
    fallback_to_scratch: Whether parameters that the checkpoint lacks are made
      from scratch; else they are an error.
    dtype: dtype that the parameters get, or None for that they were saved in.
    restore_dataset: Whether the checkpoint's position in the data is taken
      over.
    checkpointer_cls: T5X's field; says nothing for reading.
    state_transformation_fns: Called in order, after the assignment map, as
      f(checkpoint_state_dict, model_state_dict, is_resuming=False); each
      returns the checkpoint's. Leaves have shape and dtype, and numbers by
      `numpy.asarray`.
    checkpoint_manager_cls: T5X's field; only None is known.
    trust_paths: Whether a checkpoint may have links, and T5X's native one
      paths and stores, that lie outside its folder. Leave it False for one of
      somebody you do not know.
  """

  path: str | os.PathLike[str] | Sequence[str] = ()
  mode: str = 'latest'
  assignment_map: transforms.AssignmentMap | None = None
  strict: bool = True
  fallback_to_scratch: bool = False
  dtype: str | None = None
  restore_dataset: bool = False
  checkpointer_cls: Callable[..., Any] | None = None
  state_transformation_fns: Sequence[Callable[..., PyTree]] = ()
  checkpoint_manager_cls: Callable[..., Any] | None = None
  trust_paths: bool = False

  def __post_init__(self):
    """Refuses what could only fail when the checkpoint is read."""
    _check_choice('RestoreCheckpointConfig.mode', self.mode, RESTORE_MODES)
    _check_choice('RestoreCheckpointConfig.dtype', self.dtype, RESTORE_DTYPES)
    _check_manager_class(self.checkpoint_manager_cls)
    if self.assignment_map is not None:
      transforms.check_assignment_map(self.assignment_map)

  def transformation_fns(self) -> list[Callable[..., PyTree]]:
    """Returns all that is done to the checkpoint's state, in order."""
    first = []
    if self.assignment_map is not None:
      first.append(
          functools.partial(
              transforms.apply_assignment_map,
              assignment_map=self.assignment_map,
          )
      )
    return [*first, *self.state_transformation_fns]

  def checkpoint_paths(self) -> list[str]:
    """Returns the checkpoint folders it means, oldest first.

    Raises:
      steps.NotACheckpointError: A path holds none.
    """
    is_one = isinstance(self.path, (str, os.PathLike))
    given = [self.path] if is_one else list(self.path or ())
    paths = [steps.absolute_path(path) for path in given if path]
    if self.mode == 'specific':
      for path in paths:
        steps.find(path)
      return paths
    found = []
    for path in paths:
      saved = steps.all_steps(path)
      tensorflow = steps.tensorflow_checkpoints(path)
      if not saved and tensorflow:
        found += tensorflow if self.mode == 'all' else tensorflow[-1:]
        continue
      if not saved:
        raise steps.NotACheckpointError(
            f'{path} holds no complete checkpoint, expected a run directory '
            f'with some, for mode {self.mode!r}: mend '
            'RestoreCheckpointConfig.path, or set mode to '
            "'specific' if it is a checkpoint folder itself"
        )
      chosen = saved if self.mode == 'all' else saved[-1:]
      found += [steps.get_checkpoint_dir(path, step) for step in chosen]
    return found


@dataclasses.dataclass
class CheckpointConfig:
  """Saving and restoring of a run.

  Attributes:
    save: How to save; None saves nothing.
    restore: What a new run begins from; None: from scratch.
  """

  save: SaveCheckpointConfig | None = None
  restore: RestoreCheckpointConfig | None = None


def _policy_of(
    checkpointer_cls: Callable[..., Any], keep: int | None
) -> retention.Policy:
  """What a checkpointer made without arguments says of which ones stay."""
  checkpointer = checkpointer_cls()
  if not hasattr(checkpointer, 'policy'):
    raise ValueError(
        f'checkpointer_cls is {checkpointer_cls}, expected '
        'checkpoints.Checkpointer or checkpoints.SaveBestCheckpointer: drop '
        'the binding, or set keep and keep_best'
    )
  save = getattr(type(checkpointer), 'save', None)
  if not getattr(save, '__module__', '').startswith('t5wild.'):
    logging.warning(
        '%s has a save of its own, and a run does not call it: '
        'checkpointer_cls only says which checkpoints stay. Save from an '
        'action, or give SaveCheckpointConfig.state_transformation_fns.',
        type(checkpointer).__name__,
    )
  return checkpointer.policy(keep)


def _check_tiers(tiers: Sequence[Any]) -> None:
  for tier in tiers:
    if not isinstance(tier, tiers_lib.FastTier | tiers_lib.Mirror):
      raise ValueError(
          f'SaveCheckpointConfig.tiers has {tier!r}, expected FastTiers and '
          'Mirrors: in gin write [@checkpoints.FastTier(), '
          '@checkpoints.Mirror()], with parentheses'
      )
  directories = [tier.directory for tier in tiers]
  if len(set(directories)) < len(directories):
    raise ValueError(
        f'SaveCheckpointConfig.tiers has directories {directories}, expected '
        'one for each tier: two would remove the checkpoints of each other'
    )
  if sum(tier.is_fast for tier in tiers) > 1:
    raise ValueError(
        f'SaveCheckpointConfig.tiers has {len(directories)} tiers, several of '
        'them FastTiers, expected one at most: drop the others'
    )


def _check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
  if value not in choices:
    raise ValueError(
        f'{name} is {value!r}, expected one of {list(choices)}: bind it to one '
        'of these'
    )


def _check_positive(name: str, value: int | None) -> None:
  if value is not None and value < 1:
    raise ValueError(
        f'SaveCheckpointConfig.{name} is {value!r}, expected at least 1, or '
        'None for none: mend the binding'
    )


def _check_manager_class(manager: Callable[..., Any] | None) -> None:
  if manager is not None:
    raise ValueError(
        f'checkpoint_manager_cls is {manager}, expected None (there is one '
        'manager, and it is asynchronous): drop the binding'
    )


