# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The inference binary: `t5wild infer` and `python -m t5wild.infer`."""

from collections.abc import Callable, Sequence
import sys
import threading
from typing import Any

from absl import flags

from t5wild import command_line
from t5wild import gin_utils
from t5wild.checkpoints import configs as checkpoint_configs
from t5wild.checkpoints import transforms
from t5wild.data import datasets
from t5wild.inferring import example_tasks
from t5wild.inferring import jobs
from t5wild.inferring import outputs
from t5wild.inferring import run_command
from t5wild.inferring import steps
from t5wild.inferring import text_inputs
from t5wild.inferring import writing
from t5wild.models import base as models_base
from t5wild.partitioning import compile_errors
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer

# Where recipes look for them: `infer_script.write_inferences_to_file`.
write_inferences_to_file = writing.write_inferences_to_file
merge_chunks_to_file = outputs.merge_chunks_to_file
create_task_from_tfexample_file = example_tasks.create_task_from_tfexample_file

# Arguments that decide what is written, by --gin_file and by --run.
_DECIDING = {
    't5wild.infer.infer': (
        'model', 'dataset_cfg', 'restore_checkpoint_cfg', 'fallback_init_rng',
        'write_fn', 'merge_fn',
    ),
    't5wild.train.train': ('model',),
}  # fmt: skip
# Told apart beside them.
_TOLD_ELSEWHERE = (
    'DatasetConfig.batch_size', 'DatasetConfig.mixture_or_task_name',
    'RestoreCheckpointConfig.path', 'RestoreCheckpointConfig.mode',
)  # fmt: skip
# Until then an error is one of the recipe, which a restart would repeat.
_ARGUMENTS_ARE_GOOD = threading.Event()
# Errors that a restart would repeat, however late they come.
_MEND = (
    "Include 'runs/infer.gin' in the place of another run file, or name a run "
    'that was trained: t5wild infer --run=MODEL_DIR'
)
_FOR_THE_USER = (
    compile_errors.CudnnError,
    outputs.BadOutputError,
    text_inputs.BadInputError,
    transforms.DifferentModelError,
)


def infer(  # noqa: PLR0913 -- T5X's signature
    *,
    mode: str,
    model: models_base.BaseModel,
    dataset_cfg: datasets.DatasetConfig,
    restore_checkpoint_cfg: checkpoint_configs.RestoreCheckpointConfig,
    partitioner: partitioner_lib.BasePartitioner,
    output_dir: str,
    checkpoint_period: int,
    shard_id: int = 0,
    num_shards: int = 1,
    merge_chunked_results: bool = True,
    write_fn: Callable[..., None] = writing.write_inferences_to_file,
    checkpoint_ds_iter: bool = True,
    train_state_initializer_cls: Callable[
        ..., Any
    ] = initializer.TrainStateInitializer,
    fallback_init_rng: int | None = None,
    merge_fn: Callable[..., None] = outputs.merge_chunks_to_file,
    summarize_config_fn: Callable[
        ..., None
    ] | None = gin_utils.summarize_gin_config,
    verify_matching_vocabs_fn: Callable[
        ..., None
    ] | None = datasets.verify_matching_vocabs,
    output_vocab_feature_name: str = 'targets',
    file_extension: str = 'jsonl',
    keep_aux_as_numpy: bool = False,
    use_orbax: bool = True,
    num_buckets: int = 4,
    token_scores: bool = True,
    output_name: str | None = None,
) -> None:
  """Writes what a model predicts, or how it scores; the arguments are T5X's.

  The outputs of each task go to `{task}-{mode}.jsonl-00000-of-00001` in
  `output_dir`, a line for each example, in their order. Killed and started
  again, it goes on after the last chunk written; complete, it does nothing.

  Args:
    mode: 'predict', 'predict_with_aux' or 'score'.
    model: What to infer with.
    dataset_cfg: A `data.DatasetConfig`, or an `inferring.FileConfig`.
    restore_checkpoint_cfg: Names one checkpoint.
    partitioner: Lays parameters and batches over the devices.
    output_dir: Folder or bucket path.
    checkpoint_period: Batches of a chunk: what a killed run repeats at most.
    shard_id: Which part of a task, or of files, this job infers on.
    num_shards: In how many parts jobs share a task, or files.
    merge_chunked_results: Whether the chunks become one file.
    write_fn: Writes a chunk: (path, inferences, examples, mode, vocabulary).
    checkpoint_ds_iter: Accepted; what was done is always read over.
    train_state_initializer_cls: Describes the state.
    fallback_init_rng: Seed of what the checkpoint lacks, if that may be.
    merge_fn: Joins chunks: (output_dir, output_fname, tmp_dir, step).
    summarize_config_fn: Called with (model_dir, summary_writer, step).
    verify_matching_vocabs_fn: Called with (dataset config, model).
    output_vocab_feature_name: Task feature that is decoded.
    file_extension: Of the output.
    keep_aux_as_numpy: Accepted; `write_fn` gets arrays always.
    use_orbax: Accepted.
    num_buckets: The most shapes of batches: each is compiled once, and half as
      long as the next one.
    token_scores: Whether 'score' also writes the score of each token.
    output_name: Name of the output, in the place of T5X's.

  Raises:
    ValueError: Something cannot work; nothing was compiled.
  """
  # One list of arguments serves gin (here) and the job.
  if flags.FLAGS.is_parsed():  # else called from Python
    steps.check_decoding_flags(model, flags.FLAGS.gin_bindings)
  job = jobs.Job(
      **locals(),
      bindings=gin_utils.bindings_behind(_DECIDING, without=_TOLD_ELSEWHERE),
  )
  jobs.run(job, when_ready=_ARGUMENTS_ARE_GOOD.set)


def define_flags() -> None:
  """Defines the command line, once."""
  command_line.define_flags()
  run_command.define_flags()


def _help() -> str:
  return (
      'usage: t5wild infer --run=MODEL_DIR --input=FILE [--output=FILE.jsonl]\n'
      '       t5wild infer --run=MODEL_DIR --interactive\n'
      '       t5wild infer --gin_file=FILE ... [--gin.NAME=VALUE ...]\n\n'
      'Predicts with, or scores by, a checkpoint; outputs are JSON lines in\n'
      'the order of the inputs. The same command again goes on where a killed\n'
      'one stopped. --gin.NAME=VALUE overrides what the run was trained with.\n'
      '\n' + command_line.flags_help(run_command.__name__)
  )


def _check_flags() -> None:
  command_line.check_run_flags(flags.FLAGS, run_command.__name__)
  run_command.check_flags(flags.FLAGS)


def _start() -> None:
  """Reads gin, and does what the flags ask for."""
  objects = {
      'infer': infer,
      'write_inferences_to_file': write_inferences_to_file,
      'merge_chunks_to_file': merge_chunks_to_file,
      'create_task_from_tfexample_file': create_task_from_tfexample_file,
  }
  if flags.FLAGS.run is None:
    command_line.parse_gin(**objects)
    command_line.use_data_dirs()
    gin_utils.configured(infer, mend=_MEND)()
    return
  command = run_command.read_run(flags.FLAGS)
  command_line.use_data_dirs()
  if flags.FLAGS.interactive:
    command.converse(when_ready=_ARGUMENTS_ARE_GOOD.set)
  else:
    with command.infer_arguments() as arguments:
      infer(**arguments, summarize_config_fn=None)


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
      check=_check_flags,
  )
  if code is not None:
    return code
  return command_line.run_binary(
      _start,
      is_ready=_ARGUMENTS_ARE_GOOD,
      for_the_user=_FOR_THE_USER,
      not_written=(outputs.NotWrittenError,),
  )


def main() -> None:
  """Runs with the process's own command line and exits."""
  sys.exit(run(sys.argv))


if __name__ == '__main__':
  # The module that gin files name must be the one that runs.
  from t5wild import infer as infer_module

  infer_module.main()
