# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The training data of a recipe, packed for its model, as a subject."""

import dataclasses
from typing import Any

from t5wild import run_config
from t5wild.data import cached_datasets
from t5wild.data import datasets
from t5wild.data import model_rows
from t5wild.data import providers
from t5wild.inspecting import cache_subjects
from t5wild.inspecting import subject as subject_lib
from t5wild.inspecting import task_subjects
from t5wild.models import seqio_class


def open_config(
    config: run_config.RunConfig,
    asked: subject_lib.Asked,
    *,
    task: str | None,
) -> subject_lib.Subject:
  """Opens the training data of a recipe.

  Args:
    config: the recipe.
    asked: what overrides it.
    task: which, of a mixture or of the caches of one.

  Raises:
    ValueError: its data are of another kind, or there are several caches.
  """
  cfg = config.need('train_dataset_cfg')
  asked = dataclasses.replace(
      asked, lengths=asked.lengths or cfg.task_feature_lengths
  )
  layout, notes = _layout_of(config, asked, pack=cfg.pack)
  kind = layout and layout.kind
  if isinstance(cfg, datasets.DatasetConfig):
    cfg = dataclasses.replace(
        cfg,
        split=asked.split or cfg.split,
        task_feature_lengths=asked.lengths,
    )
    if task is not None:
      cfg = dataclasses.replace(cfg, mixture_or_task_name=_task_of(cfg, task))
    found = task_subjects.open_config(cfg, asked, layout_kind=kind)
  elif isinstance(cfg, cached_datasets.CachedDatasetConfig):
    cfg = dataclasses.replace(cfg, split=asked.split or cfg.split)
    found = _open_cached(cfg, asked, task=task, kind=kind)
  else:
    raise ValueError(
        f'the training data of {config.config} are a {type(cfg).__name__}: '
        'expected a DatasetConfig or a CachedDatasetConfig. Inspect the task '
        'by its name instead.'
    )
  chosen = found.layout
  if layout is not None and asked.layout is None:
    chosen = dataclasses.replace(layout, lengths=found.layout.lengths)
  return dataclasses.replace(
      found,
      layout=dataclasses.replace(chosen, pack=cfg.pack),
      notes=[*found.notes, *notes],
  )


def _task_of(cfg: datasets.DatasetConfig, task: str) -> Any:
  """One of the tasks of the recipe's mixture."""
  found = {
      each.name: each
      for each in providers.subtasks_of(datasets.open_provider(cfg))
  }
  if task not in found:
    raise ValueError(
        f'the recipe reads the tasks {sorted(found)}, and {task!r} is asked '
        'for: expected one of them. Correct the name, or leave it out.'
    )
  return found[task]


def _layout_of(
    config: run_config.RunConfig, asked: subject_lib.Asked, *, pack: bool
) -> tuple[model_rows.Layout | None, list[str]]:
  converter = seqio_class.converter_class_of(config.need('model'))
  try:
    layout = model_rows.find_layout(
        converter, lengths=asked.lengths, pack=pack
    )
  except ValueError as error:
    return None, [f'drawn by the features alone: {error}']
  return layout, []


def _open_cached(
    cfg: Any, asked: subject_lib.Asked, *, task: str | None, kind: str | None
) -> subject_lib.Subject:
  caches = cfg.open_caches()
  names = [cache.manifest.task for cache in caches]
  if task is not None and task not in names:
    raise ValueError(
        f'the recipe reads the caches of {names}, and {task!r} is asked for: '
        'expected one of them. Correct the name.'
    )
  cache = caches[names.index(task) if task else 0]
  found = cache_subjects.open_cache(
      cache, asked, objective=cfg.objective, layout_kind=kind
  )
  if task is None and len(names) > 1:
    note = f'the first of the caches {names}; name another to see it'
    found = dataclasses.replace(found, notes=[*found.notes, note])
  return found
