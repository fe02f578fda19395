# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What to evaluate of a run, from the configuration in its directory."""

from collections.abc import Sequence
import dataclasses
import os
from typing import Any

from t5wild import evaluator
from t5wild import inference_state
from t5wild import run_config
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.data import datasets
from t5wild.data import live_comparison
from t5wild.data import providers
from t5wild.trainer import trainer

# Evaluated by `follow`, like `all`, and then those that come.
_FOLLOW = 'follow'


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRequest:
  """The flags of `t5wild eval --run`; see there.

  Attributes:
    run: MODEL_DIR of the run.
    checkpoint: steps with commas between, 'latest', 'all' or 'follow'.
    task: name of a task or mixture, or None for the run's.
    split: or None for the one that the run evaluates on.
    output_dir: or None for a folder below `run`.
    wait_seconds: with 'follow', how long to wait for each checkpoint.
  """

  run: str
  checkpoint: str = 'latest'
  task: str | None = None
  split: str | None = None
  output_dir: str | None = None
  wait_seconds: float = 3600.0


def arguments_of(
    request: RunRequest,
    *,
    gin_files: Sequence[str] = (),
    gin_bindings: Sequence[str] = (),
    gin_search_paths: Sequence[str] = (),
) -> dict[str, Any]:
  """Returns the arguments of `eval.evaluate`.

  Args:
    request: what is asked for.
    gin_files: read after the run's own configuration, and override it.
    gin_bindings: read last.
    gin_search_paths: folders of gin files.

  Raises:
    ValueError: the run has no configuration or no such checkpoint, or its
      configuration has nothing to evaluate.
  """
  config = run_config.find_config(request.run)
  restore = _restore_config(request)
  bound = run_config.RunConfig.read(
      config,
      gin_files=gin_files,
      gin_bindings=gin_bindings,
      gin_search_paths=gin_search_paths,
  )
  cfg = _dataset_config(request, bound)
  provider = datasets.open_provider(cfg)
  output_dir = request.output_dir or os.path.join(
      request.run, 'eval', f'{provider.name}_{cfg.split}'
  )
  is_following = request.checkpoint == _FOLLOW
  is_relative = bool(bound.get('relative_steps'))
  return {
      'model': bound.need('model'),
      'dataset_cfg': cfg,
      'restore_checkpoint_cfg': restore,
      'partitioner': bound.make_partitioner(),
      'output_dir': output_dir,
      'inference_evaluator_cls': (
          (bound.get('inference_evaluator_cls')
           or evaluator.make_seqio_evaluator)
          if _has_metrics(provider, split=cfg.split)
          else None
      ),
      'training_evaluator_cls': trainer.Trainer,
      'wait_seconds': request.wait_seconds if is_following else 0.0,
      'total_steps': None if is_relative else bound.get('total_steps'),
  }  # fmt: skip


def _restore_config(request: RunRequest) -> configs.RestoreCheckpointConfig:
  text = request.checkpoint
  if text in ('latest', 'all'):
    return configs.RestoreCheckpointConfig(path=request.run, mode=text)
  if text == _FOLLOW:
    return configs.RestoreCheckpointConfig(path=request.run, mode='all')
  try:
    numbers = sorted({int(part) for part in text.split(',')})
  except ValueError:
    raise ValueError(
        f'--checkpoint is {text!r}: expected a step, several with commas '
        f'between, "latest", "all" or "{_FOLLOW}". The run has the steps '
        f'{steps.all_steps(request.run)}; choose some.'
    ) from None
  return configs.RestoreCheckpointConfig(
      path=[
          inference_state.checkpoint_of_step(request.run, step)
          for step in numbers
      ],
      mode='specific',
  )


def _dataset_config(
    request: RunRequest, bound: run_config.RunConfig
) -> datasets.DatasetConfig:
  cfg = bound.get('infer_eval_dataset_cfg') or bound.get(
      'train_eval_dataset_cfg'
  )
  if cfg is None:
    raise ValueError(
        f'the run {request.run} has neither infer_eval_dataset_cfg nor '
        f'train_eval_dataset_cfg (both are {cfg}): expected one to take the '
        'task from. Evaluate with --gin_file=runs/eval.gin instead.'
    )
  if not isinstance(cfg, datasets.DatasetConfig):
    return _task_instead_of(cfg, request)
  changes = {'mixture_or_task_name': request.task, 'split': request.split}
  return dataclasses.replace(
      cfg, **{n: v for n, v in changes.items() if v is not None}
  )


def _task_instead_of(
    cfg: Any, request: RunRequest
) -> datasets.DatasetConfig:
  """A task to evaluate on, where the run's own data are no seqio task.

  The one that is named, or else the one that stands in the recipe beside the
  cache that the run was trained from.
  """
  task, module = request.task, None
  if task is None:
    live = live_comparison.recipe_data('train_eval')
    task = getattr(live, 'mixture_or_task_name', None)
    module = getattr(live, 'module', None)
  if task is None:
    raise ValueError(
        f'the run {request.run} was evaluated on a {type(cfg).__name__}, and '
        'its recipe has no live task that can be made here: expected a task, '
        'whose text and metrics are known. Name one by --task.'
    )
  return datasets.DatasetConfig(
      mixture_or_task_name=task,
      task_feature_lengths=cfg.task_feature_lengths,
      split=request.split or getattr(cfg, 'split', 'validation'),
      batch_size=cfg.batch_size,
      shuffle=False,
      seed=0,
      module=module,
  )


def _has_metrics(provider: Any, *, split: str) -> bool:
  return any(
      split in task.splits and (task.metric_fns or task.metric_objs)
      for task in providers.subtasks_of(provider)
  )
