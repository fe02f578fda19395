# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The training binary: `t5wild train` and `python -m t5wild.train`."""

from collections.abc import Callable, Mapping, Sequence
import signal
import sys
import threading
from typing import Any

from absl import flags
from absl import logging

from t5wild import assembly
from t5wild import command_line
from t5wild import compilation_cache
from t5wild import exit_codes
from t5wild import gin_utils
from t5wild import run_ends
from t5wild import training_place
from t5wild import training_plan
from t5wild.checkpoints import configs as checkpoint_configs
from t5wild.checkpoints import manager
from t5wild.checkpoints import tiers
from t5wild.data import datasets
from t5wild.models import base as models_base
from t5wild.partitioning import distributed
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import corruption_checks
from t5wild.trainer import finite
from t5wild.trainer import initializer
from t5wild.trainer import preemption
from t5wild.trainer import profiling
from t5wild.trainer import step_watch
from t5wild.vitals import answers as answers_lib
from t5wild.vitals import watchdog

# Until then an error is one of the recipe, which a restart would repeat.
_ARGUMENTS_ARE_GOOD = threading.Event()
_MEND = (
    "Include 'runs/pretrain.gin' or 'runs/finetune.gin'; recipes of evaluation "
    'and of inference are for `t5wild eval` and `t5wild infer`.'
)
_Factory = Callable[..., Any]
_Check = Callable[..., None]
# Errors that say all there is to say, and how the process ends.
_ENDS = {
    manager.StateNotSavedError: exit_codes.DISK_FULL,
    distributed.BarrierTimeoutError: exit_codes.LOST_PEER,
    # The process that holds the device is the one to leave out.
    corruption_checks.CorruptPeerError: exit_codes.LOST_PEER,
    corruption_checks.SilentCorruptionError: exit_codes.BAD_HARDWARE,
    step_watch.UnstableError: exit_codes.UNSTABLE,
    training_place.PlaceLostError: exit_codes.RUN_DIR_LOST,
    run_ends.LeftEarlyError: exit_codes.FAILED,
}


def train(  # noqa: PLR0913 -- T5X's signature
    *,
    model: models_base.BaseModel,
    train_dataset_cfg: datasets.DatasetConfig,
    train_eval_dataset_cfg: datasets.DatasetConfig | None,
    infer_eval_dataset_cfg: datasets.DatasetConfig | None,
    checkpoint_cfg: checkpoint_configs.CheckpointConfig,
    partitioner: partitioner_lib.BasePartitioner,
    trainer_cls: Callable[..., Any],
    model_dir: str,
    total_steps: int,
    eval_steps: int | None,
    eval_period: int | None,
    relative_steps: int | None = None,
    stats_period: int | None = None,
    random_seed: int | None,
    use_hardware_rng: bool = False,
    summarize_config_fn: Callable[..., None] | None,
    inference_evaluator_cls: Any = None,
    get_dataset_fn: Callable[..., Any] | None = None,
    concurrent_metrics: bool = True,
    actions: Mapping[str, Sequence[Any]] | None = None,
    train_eval_get_dataset_fn: Callable[..., Any] | None = None,
    run_eval_before_training: bool = False,
    train_state_initializer_cls: _Factory = initializer.TrainStateInitializer,
    use_orbax: bool = True,
    verify_matching_vocabs_fn: _Check | None = datasets.verify_matching_vocabs,
    gc_period: int = 0,
    profiler_cls: Callable[..., Any] = profiling.StepProfiler,
    watchdog_cls: Callable[..., Any] = watchdog.Watchdog,
    answers: answers_lib.Answers | None = None,
    corruption_cls: Callable[..., Any] | None = None,
    sinks: Sequence[Any] | None = None,
    dry_run: bool = False,
) -> tuple[int, Any]:
  """Trains a model; the arguments are T5X's.

  The state comes from the newest complete checkpoint in `model_dir`, else from
  `checkpoint_cfg.restore`, else from scratch. Periods count updates; None: no.

  Args:
    model: What to train.
    train_dataset_cfg: A `data.DatasetConfig`.
    train_eval_dataset_cfg: Data of teacher-forced evaluation, or None.
    infer_eval_dataset_cfg: Data of evaluation by decoding, or None.
    checkpoint_cfg: A `checkpoints.CheckpointConfig`.
    partitioner: Lays state and batches over the devices.
    trainer_cls: Makes the trainer, e.g. `@trainer.Trainer`.
    model_dir: Folder or bucket path of everything the run leaves.
    total_steps: Number of updates at which the run is done.
    eval_steps: Batches of each evaluation; None means all.
    eval_period: Updates between evaluations.
    relative_steps: When set, updates to make from the restored step on.
    stats_period: Updates between records; None means `eval_period`.
    random_seed: Of initialisation, dropout; None: by clock and hardware RNG.
    use_hardware_rng: Use the RngBitGenerator even with a seed.
    summarize_config_fn: Called with (model_dir, writer, step) at the start.
    inference_evaluator_cls: See `evaluator.InferenceEvaluator`.
    get_dataset_fn: Gives training batches; see `data.custom_reader`.
    concurrent_metrics: Kept for T5X recipes; metrics never block here.
    actions: Mode ('TRAIN', 'TRAIN_EVAL', 'INFER_EVAL') to a list of actions.
    train_eval_get_dataset_fn: Replaces the reader of evaluation data.
    run_eval_before_training: Whether to evaluate the first state, too, once.
    train_state_initializer_cls: Makes the first state.
    use_orbax: Must stay True.
    verify_matching_vocabs_fn: Called with (dataset config, model).
    gc_period: Updates between collections of garbage; 0 leaves it to Python.
    profiler_cls: `@profiling.StepProfiler`: its arguments choose the steps.
    watchdog_cls: `@watchdog.Watchdog`: its arguments say what counts as hung.
    answers: `@answers.Answers()`: what is done about spikes; None: it is told.
    sinks: Services for records besides, as `[@wandb_sink.WandbSink()]`.
    corruption_cls: `@corruption_checks.CorruptionChecks`; None: no checks.
    dry_run: Print what would be trained, and train nothing.

  Returns:
    The last step and the train state after it.
  """
  plan = training_plan.TrainingPlan(**locals())  # one list for gin and checks
  _accept(plan)
  return assembly.run_training(plan)


def _accept(plan: training_plan.TrainingPlan) -> None:
  """Takes a plan; tells of settings that nothing reads, as T5X leaves them."""
  _ARGUMENTS_ARE_GOOD.set()
  save = plan.checkpoint_cfg.save
  stores = [type(tier) for tier in save.tiers] if save else []
  for kind, is_there, mend in (
      (checkpoint_configs.RestoreCheckpointConfig,
       plan.checkpoint_cfg.restore is not None,
       'CheckpointConfig.restore = @checkpoints.RestoreCheckpointConfig()'),
      (tiers.FastTier, tiers.FastTier in stores,
       'SaveCheckpointConfig.tiers = [@checkpoints.FastTier()]'),
      (tiers.Mirror, tiers.Mirror in stores,
       'SaveCheckpointConfig.tiers = [@checkpoints.Mirror()]'),
  ):  # fmt: skip
    given = gin_utils.bound(kind)
    if given and not is_there:
      logging.warning(
          '%s has %s, but nothing makes one: IT HAS NO EFFECT. Expected '
          'checkpoints.%s beside it; add that, or remove the setting.',
          kind.__name__, given, mend,
      )  # fmt: skip


def define_flags() -> None:
  """Defines the command line, once, with T5X's names."""
  command_line.define_flags()
  if 'dry_run' not in flags.FLAGS:
    flags.DEFINE_bool('dry_run', False, 'Print what would be trained and exit.')


def _help() -> str:
  return (
      'usage: t5wild train --gin_file=FILE ... [--gin.NAME=VALUE ...]\n\n'
      'Trains as the gin files say; later files and flags win.\n\n'
      + command_line.flags_help(__name__)
  )


def run(argv: Sequence[str]) -> int:
  """Runs the binary.

  Args:
    argv: Program name and flags.

  Returns:
    One of `exit_codes`.
  """
  define_flags()
  _ARGUMENTS_ARE_GOOD.clear()  # set by a run before this one, in one process
  code = command_line.exit_code_of_flags(argv, make_help=_help)
  if code is not None:
    return code
  return command_line.leaving_alone(_run)


def _run() -> int:
  try:
    command_line.start_processes()
    command_line.parse_gin(train=train)
    configured = gin_utils.configured(train, mend=_MEND)
  except (gin_utils.GinError, ValueError) as error:
    command_line.tell(str(error))
    return exit_codes.BAD_CONFIG.code
  logging.info('Compilation cache: %s', compilation_cache.start())
  try:
    command_line.use_data_dirs()
    configured(dry_run=flags.FLAGS.dry_run)
  except KeyboardInterrupt:
    return command_line.interrupted()
  except preemption.Preempted as error:
    logging.warning('%s', command_line.message_of(error))
    if error.by_keyboard:  # as a shell tells it: nobody wants a restart
      return 128 + signal.SIGINT
    return exit_codes.PREEMPTED.code
  except finite.NotFiniteError as error:
    command_line.tell(command_line.complaint(error))
    return exit_codes.NON_FINITE.code
  except tuple(_ENDS) as error:
    command_line.tell(command_line.message_of(error))
    # gin raises a class of its own, derived from the error's.
    return next(e for kind, e in _ENDS.items() if isinstance(error, kind)).code
  except (ValueError, LookupError, OSError, TypeError) as error:
    if _ARGUMENTS_ARE_GOOD.is_set() and not isinstance(
        error, run_ends.FOR_THE_USER
    ):
      raise
    command_line.tell(command_line.complaint(error))
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def main() -> None:
  """Runs with the process's own command line and exits."""
  sys.exit(run(sys.argv))


if __name__ == '__main__':
  # The module that gin files name must be the one that runs.
  from t5wild import train as train_module

  train_module.main()
