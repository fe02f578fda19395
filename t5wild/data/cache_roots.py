# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What lies in the folder that was given to `t5wild cache --out`."""

from collections.abc import Sequence
import json

from t5wild.data import places
from t5wild.data import record_cache


def rates_of(root: str) -> dict[str, float]:
  """Rates by task, as they were cached.

  Raises:
    BadCacheError: there is no cache, or it is still being written.
  """
  path = places.join(root, record_cache.ROOT)
  if not places.exists(path):
    for folder in record_cache.folders_of(root):
      record_cache.read_manifest(folder)  # says what is missing, if it is
    raise record_cache.BadCacheError(
        f'{root!r}{places.seen_from(root)} has no {record_cache.ROOT}: '
        'expected the folder that was given to `t5wild cache --out`. Give that '
        'one, or run the command again, which goes on where it was stopped.'
    )
  try:
    rates = json.loads(places.read_text(path))['rates']
    return {task: float(rate) for task, rate in rates.items()}
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise record_cache.BadCacheError(
        f'{path} is damaged ({type(error).__name__}: {error}): expected the '
        'rates of the tasks, in JSON. Remove it and run `t5wild cache` again, '
        'which keeps the shards and writes it anew.'
    ) from None


def tasks_of(
    roots: Sequence[str],
) -> tuple[dict[str, str], dict[str, float]]:
  """(folder, rate as it was cached) of each task of some caches.

  Raises:
    ValueError: two of them have a task of one name, or none is named.
    BadCacheError: see `rates_of`.
  """
  if not roots:
    raise ValueError(
        'CachedDatasetConfig.cache_dir names no folder: expected one at least. '
        'Set CACHE_DIR to what was given to `t5wild cache --out`.'
    )
  folders: dict[str, str] = {}
  rates: dict[str, float] = {}
  for root in roots:
    for task, rate in rates_of(root).items():
      if task in folders:
        raise ValueError(
            f'the task {task!r} is in two caches, {folders[task]} and {root}: '
            'expected another name in each, by which rates and documents are '
            'told apart. Leave one out of CACHE_DIR, or cache its task again '
            'under another name (of a recipe with TEXT: t5wild cache '
            '--gin.local_text.text_task.name="\'my_text\'").'
        )
      folders[task], rates[task] = root, rate
  return folders, rates


def has_split(root: str, *, task: str, split: str) -> bool:
  """Whether a split of a task was cached."""
  there = places.names(places.join(root, record_cache.quoted(task)))
  return record_cache.quoted(split) in there


def folder_of(root: str, *, task: str, split: str) -> str:
  """Where a split of a task lies.

  Raises:
    BadCacheError: it is not there; with the splits that are.
  """
  folder = record_cache.split_folder(root, task=task, split=split)
  there = places.names(places.join(root, record_cache.quoted(task)))
  if record_cache.quoted(split) in there:
    return folder
  raise record_cache.BadCacheError(
      f'the cache {root!r} of {task} has no split {split!r}: expected one of '
      f'{there}. Set CachedDatasetConfig.split to one of them, or cache it.'
  )
