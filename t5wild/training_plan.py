# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a training run is asked to do, checked before anything is built."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
from typing import Any

from t5wild import run_dir as run_dir_lib
from t5wild.checkpoints import configs as checkpoint_configs
from t5wild.models import base as models_base
from t5wild.partitioning import distributed
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import actions as actions_lib
from t5wild.vitals import answers as answers_lib
from t5wild.vitals.services import service as service_lib

# T5X's recipes say 0 where we say None.
_NONE_IF_0 = ('eval_period', 'stats_period')
# Argument to its lowest value and what to set.
_LOWEST = {
    'total_steps': (
        0, 'TRAIN_STEPS to the number of updates at which the run is done'
    ),
    'relative_steps': (
        0, 'TRAIN_STEPS_RELATIVE to the number of updates to make, or to None'
    ),
    'eval_period': (
        0, 'it to the number of steps between evaluations, or to None (never)'
    ),
    'eval_steps': (
        0, 'it to the number of batches of each evaluation, or to None (all)'
    ),
    'stats_period': (
        0, 'it to the number of steps between records, or to None (eval_period)'
    ),
    'gc_period': (
        0, 'it to the number of steps between collections, or to 0 (never)'
    ),
}


class BadPlanError(ValueError):
  """A run that cannot be put together; nothing was compiled."""


@contextlib.contextmanager
def as_bad_plan():
  """Makes a `BadPlanError` of what another start would only repeat."""
  try:
    yield
  except distributed.BarrierTimeoutError:
    raise  # The others' fault, whatever it was: a restart may help.
  except (ValueError, LookupError, OSError, TypeError) as error:
    raise BadPlanError(str(error)) from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingPlan:
  """The arguments of `t5wild.train.train`, checked; see there for each."""

  model: models_base.BaseModel
  train_dataset_cfg: Any
  train_eval_dataset_cfg: Any
  infer_eval_dataset_cfg: Any
  checkpoint_cfg: checkpoint_configs.CheckpointConfig
  partitioner: partitioner_lib.BasePartitioner
  trainer_cls: Callable[..., Any]
  model_dir: str
  total_steps: int
  eval_steps: int | None
  eval_period: int | None
  relative_steps: int | None
  stats_period: int | None
  random_seed: int | None
  use_hardware_rng: bool
  summarize_config_fn: Callable[..., None] | None
  inference_evaluator_cls: Any
  get_dataset_fn: Callable[..., Any] | None
  concurrent_metrics: bool
  actions: Mapping[str, Sequence[Any]] | None
  train_eval_get_dataset_fn: Callable[..., Any] | None
  run_eval_before_training: bool
  train_state_initializer_cls: Callable[..., Any]
  use_orbax: bool
  verify_matching_vocabs_fn: Callable[..., None] | None
  gc_period: int
  profiler_cls: Callable[..., Any]
  watchdog_cls: Callable[..., Any]
  answers: answers_lib.Answers | None
  corruption_cls: Callable[..., Any] | None
  sinks: Sequence[Any] | None
  dry_run: bool

  def __post_init__(self):
    """Refuses what would fail only after compiling."""
    for name in ('get_dataset_fn', 'train_eval_get_dataset_fn'):
      if not callable(getattr(self, name) or print):
        raise ValueError(
            f'{name} is {getattr(self, name)!r}: expected a function of '
            'T5X\'s get_dataset arguments, or None. In gin write @my_function, '
            'without parentheses.'
        )
    for name, (lowest, mend) in _LOWEST.items():
      value = getattr(self, name)
      if value is not None and value < lowest:
        raise ValueError(
            f'{name} is {value!r}, expected at least {lowest}: set {mend}'
        )
    for name in _NONE_IF_0:
      if getattr(self, name) == 0:
        object.__setattr__(self, name, None)
    if not self.use_orbax:
      raise ValueError(
          f'use_orbax = {self.use_orbax!r} asks for T5X\'s old checkpoint '
          'writer; expected True, only Orbax checkpoints are written here. '
          'Drop the binding.'
      )
    why = run_dir_lib.why_unwritable(self.model_dir) or run_dir_lib.RunDir(
        self.model_dir
    ).why_blocked()
    if why is not None and not self.dry_run:
      raise ValueError(
          f'MODEL_DIR is {self.model_dir!r}: {why}. Expected a folder that is '
          'there and can be written to, with all that is in it, or can be '
          'made. Mend it, or set another --gin.MODEL_DIR.'
      )
    actions_lib.parse_modes(self.actions)
    service_lib.check(self.sinks)
    self._check_answers()

  def _check_answers(self) -> None:
    """Refuses a rewind of a run that has nothing to go back to."""
    answers = self.answers or answers_lib.Answers()
    if not isinstance(answers, answers_lib.Answers):
      raise ValueError(
          f'answers is {answers!r}, expected an Answers, or None: in gin write '
          'train_script.train.answers = @answers.Answers() with parentheses'
      )
    object.__setattr__(self, 'answers', answers)
    save = self.checkpoint_cfg.save if answers.may_rewind else None
    if answers.may_rewind and (save is None or not save.save_dataset):
      kept = 'nothing' if save is None else 'no position of the data'
      raise ValueError(
          f"answers.Answers says 'rewind', and the run saves {kept}, expected "
          'checkpoints with the position of the data to go back to: set '
          'checkpoints.SaveCheckpointConfig.period and save_dataset = True, or '
          "answer 'go_on' or 'stop'"
      )

  def trains_after(self, step: int) -> bool:
    """Whether a run that goes on from a step has anything left to do."""
    return bool(self.relative_steps) or step < self.total_steps

  def last_step(self, first_step: int) -> int:
    """The step at which a run that begins at `first_step` ends.

    Raises:
      ValueError: It is past its end.
    """
    if self.relative_steps:
      return first_step + self.relative_steps
    if self.total_steps < first_step:
      raise ValueError(
          f'total_steps is {self.total_steps}, but the checkpoint already has '
          f'{first_step} steps: expected at least as many. Raise TRAIN_STEPS '
          '(quickstart: --steps), or train in another MODEL_DIR (quickstart: '
          '--model_dir).'
      )
    return self.total_steps

  @property
  def decides_by_inference_metrics(self) -> bool:
    """Whether actions or the best checkpoint wait for those of decoding."""
    modes = actions_lib.parse_modes(self.actions)
    save = self.checkpoint_cfg.save
    best = save.best_metric if save is not None else None
    return bool(modes.get(actions_lib.ActionMode.INFER_EVAL)) or (
        best is not None and best.startswith('inference_eval/')
    )
