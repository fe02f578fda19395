# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The evaluation binary: `t5wild eval` and `python -m t5wild.eval`."""

from collections.abc import Callable, Sequence
import sys
import threading
from typing import Any

from absl import flags

from t5wild import command_line
from t5wild import evaluator
from t5wild import gin_utils
from t5wild.checkpoints import configs as checkpoint_configs
from t5wild.checkpoints import transforms
from t5wild.data import datasets
from t5wild.evaluating import log
from t5wild.evaluating import of_run
from t5wild.evaluating import plan as plan_lib
from t5wild.evaluating import session
from t5wild.inferring import steps
from t5wild.models import base as models_base
from t5wild.partitioning import compile_errors
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer

# Until then an error is one of the recipe.
_ARGUMENTS_ARE_GOOD = threading.Event()
_MEND = (
    "Include 'runs/eval.gin' in the place of another run file, or name a run "
    'that was trained: t5wild eval --run=MODEL_DIR'
)
_USAGE = """\
usage: t5wild eval --run=MODEL_DIR [--checkpoint=latest] [--task=NAME] ...
       t5wild eval --gin_file=FILE ... [--gin.NAME=VALUE ...]

The first evaluates a run as its own configuration says; the second as the gin
files say (runs/eval.gin)."""


def evaluate(  # noqa: PLR0913 -- T5X's signature
    *,
    model: models_base.BaseModel,
    dataset_cfg: datasets.DatasetConfig,
    restore_checkpoint_cfg: checkpoint_configs.RestoreCheckpointConfig,
    partitioner: partitioner_lib.BasePartitioner,
    output_dir: str,
    inference_evaluator_cls: Callable[
        ..., Any
    ] | None = evaluator.make_seqio_evaluator,
    training_evaluator_cls: Callable[..., Any] | None = None,
    summarize_config_fn: Callable[
        ..., None
    ] | None = gin_utils.summarize_gin_config,
    train_state_initializer_cls: Callable[
        ..., Any
    ] = initializer.TrainStateInitializer,
    train_eval_get_dataset_fn: Callable[..., Any] | None = None,
    fallback_init_rng: int | None = None,
    use_orbax: bool = True,
    verify_matching_vocabs_fn: Callable[
        ..., None
    ] | None = datasets.verify_matching_vocabs,
    eval_steps: int | None = None,
    wait_seconds: float = 0.0,
    poll_seconds: float = 10.0,
    total_steps: int | None = None,
) -> dict[str, Any]:
  """Evaluates checkpoints on a task; the arguments are T5X's, then ours.

  Writes into `output_dir`: `evaluation.jsonl` (a line per checkpoint and task),
  `metrics.jsonl` (a record per number), TensorBoard events, and the targets and
  predictions. Called again it evaluates only what is not there yet.

  Args:
    model: What to evaluate.
    dataset_cfg: A `data.DatasetConfig`: task or mixture, split, batch size.
    restore_checkpoint_cfg: A `checkpoints.RestoreCheckpointConfig`: mode
      'specific' (one or several checkpoints), 'latest' or 'all'.
    partitioner: Lays state and batches over the devices.
    output_dir: Folder or bucket path of this evaluation alone.
    inference_evaluator_cls: `@seqio.Evaluator`: the task's metric_fns, by
      decoding and by scores. None leaves them out.
    training_evaluator_cls: `@trainer.Trainer`: the loss of the targets by
      `model.eval_fn`, with perplexity and bits per byte. None leaves it out.
    summarize_config_fn: Called with (output_dir, None, 0) at the start.
    train_state_initializer_cls: Describes the state.
    train_eval_get_dataset_fn: Gives the batches of the loss; None: every
      example once.
    fallback_init_rng: Seed of what a checkpoint lacks, with
      `fallback_to_scratch`.
    use_orbax: Must stay True.
    verify_matching_vocabs_fn: Called with (dataset_cfg, model).
    eval_steps: Batches of the loss; None means all.
    wait_seconds: With mode 'all', how long to wait for each checkpoint that is
      not there yet; 0: evaluates those that are.
    poll_seconds: Time between looks.
    total_steps: Step after which no checkpoint is waited for; None: time alone
      ends the wait.

  Returns:
    Checkpoint -> task -> metric -> value, of those evaluated now.
  """
  plan = plan_lib.EvaluationPlan(
      **locals(),
      settings=gin_utils.bindings_behind(_DECIDING, without=_NOT_OF_THE_RESULT),
  )
  if inference_evaluator_cls is not None and flags.FLAGS.is_parsed():
    steps.check_decoding_flags(model, flags.FLAGS.gin_bindings)
  _ARGUMENTS_ARE_GOOD.set()
  return session.run_evaluation(plan)


# Arguments that decide what is found, by --gin_file and by --run.
_DECIDING = {
    't5wild.eval.evaluate': (
        'model', 'dataset_cfg', 'inference_evaluator_cls',
        'training_evaluator_cls', 'train_eval_get_dataset_fn', 'eval_steps',
        'restore_checkpoint_cfg', 'fallback_init_rng',
    ),
    't5wild.train.train': (
        'model', 'infer_eval_dataset_cfg', 'train_eval_dataset_cfg',
        'inference_evaluator_cls',
    ),
}  # fmt: skip
# What in them changes where and how fast, not what is found.
_NOT_OF_THE_RESULT = (
    'DatasetConfig.batch_size', 'DatasetConfig.use_memory_cache',
    'Evaluator.use_memory_cache', 'Evaluator.logger_cls',
    'RestoreCheckpointConfig.path', 'RestoreCheckpointConfig.mode',
)  # fmt: skip


def define_flags() -> None:
  """Defines the command line, once."""
  command_line.define_flags()
  if 'checkpoint' in flags.FLAGS:
    return
  if 'run' not in flags.FLAGS:  # that of `infer`, in one process with it
    flags.DEFINE_string('run', None, 'MODEL_DIR of the run to evaluate.')
  flags.DEFINE_string(
      'checkpoint',
      'latest',
      'With --run: a step, several (1000,2000), "latest", "all", or "follow": '
      'all, and those to come.',
  )
  flags.DEFINE_string(
      'task', None, 'With --run: another task or mixture than the run\'s.'
  )
  flags.DEFINE_string(
      'split', None, "With --run: another split than the run's evaluation's."
  )
  flags.DEFINE_string(
      'output_dir', None, 'With --run: default MODEL_DIR/eval/TASK_SPLIT.'
  )
  flags.DEFINE_float(
      'wait_seconds', 3600.0, 'With "follow": wait for the next at most.'
  )


def _help() -> str:
  return f'{_USAGE}\n\n{command_line.flags_help(__name__)}'


def run(argv: Sequence[str]) -> int:
  """Runs the binary.

  Args:
    argv: Program name and flags.

  Returns:
    One of `exit_codes`.
  """
  define_flags()
  code = command_line.exit_code_of_flags(
      argv,
      make_help=_help,
      check=lambda: command_line.check_run_flags(flags.FLAGS, __name__),
  )
  if code is not None:
    return code
  return command_line.run_binary(
      _evaluate,
      is_ready=_ARGUMENTS_ARE_GOOD,
      for_the_user=(
          compile_errors.CudnnError,
          session.BadEvaluationError,
          transforms.DifferentModelError,
      ),
      not_written=(log.NotWrittenError,),
  )


def _evaluate() -> None:
  values = flags.FLAGS
  command_line.use_data_dirs()
  if values.run is None:
    command_line.parse_gin(evaluate=evaluate)
    gin_utils.configured(evaluate, mend=_MEND)()
    return
  request = of_run.RunRequest(
      run=values.run,
      checkpoint=values.checkpoint,
      task=values.task,
      split=values.split,
      output_dir=values.output_dir,
      wait_seconds=values.wait_seconds,
  )
  arguments = of_run.arguments_of(
      request,
      gin_files=values.gin_file or (),
      gin_bindings=values.gin_bindings,
      gin_search_paths=values.gin_search_paths,
  )
  evaluate(**arguments)


def main() -> None:
  """Runs with the process's own command line and exits."""
  sys.exit(run(sys.argv))


if __name__ == '__main__':
  # The module that gin files name must be the one that runs.
  from t5wild import eval as eval_module

  eval_module.main()
