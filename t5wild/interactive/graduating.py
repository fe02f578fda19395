# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""From a notebook to `t5wild train`, `eval` and `infer` (T5X's names)."""

from collections.abc import Callable, Sequence
import enum
from typing import Any

from t5wild.interactive import model as model_lib
from t5wild.interactive import texts


class T5XScriptType(enum.Enum):
  """What a recipe is for (T5X's names)."""

  FINETUNING = 1
  INFERENCE = 2
  EVALUATION = 3
  PRETRAINING = 4


def get_seqio_task_from_examples(
    task_name: str,
    interactive_model: model_lib.InteractiveModel,
    examples: Sequence[texts.Example],
    preprocessors: Sequence[Callable[..., Any]],
    metric_fns: Sequence[Callable[..., Any]] | None = None,
    add_to_registry: bool = True,
) -> Any:
  """Returns a seqio task of examples (T5X's signature).

  Its splits 'train' and 'validation' are the same examples.

  Args:
    task_name: Name of the task.
    interactive_model: Gives vocabularies.
    examples: Texts.
    preprocessors: seqio preprocessors.
    metric_fns: seqio metric functions.
    add_to_registry: Whether the task is registered under its name; else the one
      registered before is returned, as in T5X.
  """
  import seqio

  def dataset_fn(split, shuffle_files):
    del split, shuffle_files
    return texts.get_dataset_from_natural_text_examples(
        examples, preprocessors=(), task_feature_lengths=None, features={}
    )

  if add_to_registry:
    seqio.TaskRegistry.add(
        task_name,
        source=seqio.FunctionDataSource(
            dataset_fn, splits=('train', 'validation')
        ),
        preprocessors=preprocessors,
        output_features=interactive_model.features,
        metric_fns=metric_fns,
    )
  return seqio.get_mixture_or_task(task_name)


def get_gin_config_from_interactive_model(
    interactive_model: model_lib.InteractiveModel,
    script_type: T5XScriptType,
    task_name: str,
    partitioner_config_str: str,
    model_config_str: str,
    train_steps: int = 1,
    imports_str: str = '',
) -> str:
  """Returns a recipe with the settings of a model at hand (T5X's signature).

  Args:
    interactive_model: Gives lengths, batch size, checkpoint and folder.
    script_type: For `t5wild infer`, `eval` or `train`.
    task_name: A registered seqio task; import its module in `imports_str`.
    partitioner_config_str: Lines of gin.
    model_config_str: Lines of gin; a model file may be included by
      `imports_str`.
    train_steps: Updates to make, after those of the checkpoint.
    imports_str: Lines of gin that come first.

  Raises:
    ValueError: There is no checkpoint, and the script needs one.
  """
  kinds = T5XScriptType
  checkpoint = interactive_model.checkpoint_path
  if not checkpoint and script_type is not kinds.PRETRAINING:
    raise ValueError(
        f'checkpoint_path of the model is {checkpoint!r}: expected a '
        f'checkpoint for {script_type}. Give the InteractiveModel one, such as '
        "the newest in its output_dir with restore_mode = 'latest'."
    )
  run, folder, path = {
      kinds.INFERENCE: ('infer', 'INFER_OUTPUT_DIR', 'CHECKPOINT_PATH'),
      kinds.EVALUATION: ('eval', 'EVAL_OUTPUT_DIR', 'CHECKPOINT_PATH'),
      kinds.FINETUNING: ('finetune', 'MODEL_DIR', 'INITIAL_CHECKPOINT_PATH'),
      kinds.PRETRAINING: ('pretrain', 'MODEL_DIR', None),
  }[script_type]
  lines = [
      'from __gin__ import dynamic_registration',
      '',
      'from t5wild import checkpoints',
      'from t5wild import data',
      'from t5wild import partitioning',
      imports_str,
      '',
      f"include 'runs/{run}.gin'",
      '',
      f'{folder} = {interactive_model.output_dir!r}',
      f'MIXTURE_OR_TASK_NAME = {task_name!r}',
      f'TASK_FEATURE_LENGTHS = {interactive_model.task_feature_lengths!r}',
  ]
  if path is not None:
    lines += [
        f'{path} = {checkpoint!r}',
        'checkpoints.RestoreCheckpointConfig.mode = '
        f'{interactive_model.restore_mode!r}',
    ]
  is_trained = script_type in (kinds.FINETUNING, kinds.PRETRAINING)
  batch_size = interactive_model.batch_size
  lines += (
      [
          f'BATCH_SIZE = {batch_size}',
          # Not counted from 0: the checkpoint may have any number of steps.
          f'TRAIN_STEPS = {train_steps}',
          f'TRAIN_STEPS_RELATIVE = {train_steps}',
          'train/data.DatasetConfig.pack = False',
          'train_eval/data.DatasetConfig.pack = False',
      ]
      if is_trained
      else [
          f'data.DatasetConfig.batch_size = {batch_size}',
          "data.DatasetConfig.split = 'validation'",
      ]
  )
  lines += ['', model_config_str, partitioner_config_str, '']
  return '\n'.join(lines)
