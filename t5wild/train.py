# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The training binary: `t5wild train` and `python -m t5wild.train`."""

from collections.abc import Callable, Mapping, Sequence
import os
import sys
import threading
import traceback
from typing import Any

from absl import flags
from absl import logging
import gin

from t5wild import assembly
from t5wild import compilation_cache
from t5wild import exit_codes
from t5wild import gin_utils
from t5wild import training_plan
from t5wild.checkpoints import manager
from t5wild.data import datasets
from t5wild.data import documents
from t5wild.partitioning import distributed
from t5wild.trainer import initializer
from t5wild.trainer import preemption
from t5wild.trainer import profiling

# Until then an error is one of the recipe, which a restart would repeat.
_ARGUMENTS_ARE_GOOD = threading.Event()
# Errors that a restart would repeat, however late they come.
_FOR_THE_USER = (training_plan.BadPlanError, documents.CorruptTextError)


def train(  # noqa: PLR0913 -- T5X's signature
    *,
    model: Any,
    train_dataset_cfg: Any,
    train_eval_dataset_cfg: Any,
    infer_eval_dataset_cfg: Any,
    checkpoint_cfg: Any,
    partitioner: Any,
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
    train_state_initializer_cls: Callable[
        ..., Any
    ] = initializer.TrainStateInitializer,
    use_orbax: bool = True,
    verify_matching_vocabs_fn: Callable[
        ..., None
    ] | None = datasets.verify_matching_vocabs,
    gc_period: int = 0,
    profiler_cls: Callable[..., Any] = profiling.StepProfiler,
    dry_run: bool = False,
) -> tuple[int, Any]:
  """Trains a model; the arguments are T5X's.

  The state comes from the newest complete checkpoint in `model_dir`, else from
  `checkpoint_cfg.restore`, else from scratch. Periods count finished updates
  and need not be multiples of each other; None means never.

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
    random_seed: Seed of initialisation and dropout; None picks one by the
      clock and the hardware RNG.
    use_hardware_rng: Use the RngBitGenerator even with a seed.
    summarize_config_fn: Called with (model_dir, writer, step) at the start.
    inference_evaluator_cls: See `evaluator.InferenceEvaluator`.
    get_dataset_fn: Gives training batches; see `data.custom_reader`.
    concurrent_metrics: Kept for T5X recipes; metrics never block here.
    actions: Mode ('TRAIN', 'TRAIN_EVAL', 'INFER_EVAL') to a list of actions.
    train_eval_get_dataset_fn: Replaces the reader of evaluation data.
    run_eval_before_training: Whether to evaluate the first state, too.
    train_state_initializer_cls: Makes the first state.
    use_orbax: Must stay True.
    verify_matching_vocabs_fn: Called with (dataset config, model).
    gc_period: Collect garbage by hand every so many updates; 0 leaves it to
      Python.
    profiler_cls: `@profiling.StepProfiler`: its arguments choose the steps.
    dry_run: Print what would be trained, and train nothing.

  Returns:
    The last step and the train state after it.
  """
  # One list of arguments serves gin (here) and the checks (the plan).
  plan = training_plan.TrainingPlan(**locals())
  _ARGUMENTS_ARE_GOOD.set()
  return assembly.run_training(plan)


def define_flags() -> None:
  """Defines the command line, once, with T5X's names."""
  if 'gin_file' in flags.FLAGS:
    return
  gin_utils.define_gin_flags()
  flags.DEFINE_bool('dry_run', False, 'Print what would be trained and exit.')
  flags.DEFINE_string('tfds_data_dir', None, 'Folder of TFDS data sets.')
  flags.DEFINE_list(
      'seqio_additional_cache_dirs', [], 'More folders of cached tasks.'
  )
  flags.DEFINE_bool('multiprocess_gpu', False, 'Start jax.distributed.')
  flags.DEFINE_string('coordinator_address', None, 'host:port of process 0.')
  flags.DEFINE_integer('process_count', None, 'Number of processes.')
  flags.DEFINE_integer('process_index', None, 'Index of this process.')
  flags.DEFINE_integer(
      'initialization_timeout', None, 'Seconds to wait for all processes.'
  )
  for name in ('jax_backend', 'jax_backend_target', 'jax_xla_backend'):
    if name not in flags.FLAGS:
      flags.DEFINE_string(name, None, 'Accepted as T5X users pass it.')


def _help() -> str:
  return (
      'usage: t5wild train --gin_file=FILE ... [--gin.NAME=VALUE ...]\n\n'
      'Trains as the gin files say; later files and flags win.\n\n'
      + flags.FLAGS.module_help(__name__)
      + flags.FLAGS.module_help(gin_utils.__name__)
  )


def _start_processes() -> None:
  values = flags.FLAGS
  distributed.start(
      multiprocess_gpu=values.multiprocess_gpu,
      coordinator_address=values.coordinator_address,
      process_count=values.process_count,
      process_index=values.process_index,
      timeout_seconds=values.initialization_timeout,
  )


def _parse_gin() -> None:
  # Recipes say `import __main__ as train_script`, whatever was started.
  sys.modules['__main__'].train = train
  gin_utils.parse_gin_flags(
      flags.FLAGS.gin_search_paths,
      flags.FLAGS.gin_file,
      flags.FLAGS.gin_bindings,
  )


def _use_data_dirs() -> None:
  if flags.FLAGS.tfds_data_dir or flags.FLAGS.seqio_additional_cache_dirs:
    datasets.set_data_dirs(
        tfds_data_dir=flags.FLAGS.tfds_data_dir,
        cache_dirs=flags.FLAGS.seqio_additional_cache_dirs,
    )


def _complaint(error: BaseException) -> str:
  """What to tell of a bad recipe: our message, or how foreign code failed.

  A message of ours says what to mend; where other people's code raised it, the
  place is needed too.
  """
  # gin adds a line on the function it called, which is always `train`.
  message = str(error).split('\n  In call to configurable')[0]
  cause = error
  while cause.__cause__ is not None:
    cause = cause.__cause__
  frames = traceback.extract_tb(cause.__traceback__)
  ours = os.path.dirname(os.path.abspath(__file__)) + os.sep
  if frames and not frames[-1].filename.startswith(ours):
    message = ''.join(traceback.format_exception(cause)) + message
  return message


def run(argv: Sequence[str]) -> int:
  """Runs the binary.

  Args:
    argv: Program name and flags.

  Returns:
    One of `exit_codes`.
  """
  define_flags()
  if {'--help', '-h', '--helpfull'} & set(argv[1:]):
    print(_help())  # noqa: T201 -- the product
    return exit_codes.DONE.code
  try:
    flags.FLAGS(gin_utils.rewrite_gin_args(list(argv)))
  except flags.Error as error:
    print(f'{error}\nTry --help.', file=sys.stderr)  # noqa: T201 -- no log yet
    return exit_codes.BAD_CONFIG.code
  logging.use_absl_handler()
  if not flags.FLAGS['verbosity'].present:
    logging.set_verbosity(logging.INFO)
  try:
    _start_processes()
    _parse_gin()
  except (gin_utils.GinError, ValueError) as error:
    print(error, file=sys.stderr)  # noqa: T201 -- the message is the product
    return exit_codes.BAD_CONFIG.code
  logging.info('Compilation cache: %s', compilation_cache.start())
  try:
    _use_data_dirs()
    gin.get_configurable(train)(dry_run=flags.FLAGS.dry_run)
  except preemption.Preempted as error:
    logging.warning('%s', error)
    return exit_codes.PREEMPTED.code
  except manager.StateNotSavedError as error:
    print(error, file=sys.stderr)  # noqa: T201 -- the message is the product
    return exit_codes.DISK_FULL.code
  except (ValueError, LookupError, OSError, TypeError) as error:
    if _ARGUMENTS_ARE_GOOD.is_set() and not isinstance(error, _FOR_THE_USER):
      raise
    print(_complaint(error), file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def main() -> None:
  """Runs with the process's own command line and exits."""
  sys.exit(run(sys.argv))


if __name__ == '__main__':
  # The module that gin files name must be the one that runs.
  from t5wild import train as train_module

  train_module.main()
