# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds what seqio_cache_tasks wrote: tokens of a task, offline, by split.

A folder of COMPLETED, info.SPLIT.json, stats.SPLIT.json and
SPLIT.tfrecord-00000-of-00002, in a folder of T5's `cached_tasks`. Imports
neither seqio nor TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import json
import os
import re
from typing import Any

from t5wild.data import tables

_COMPLETED = 'COMPLETED'
_INFO = re.compile(r'^info\.(.+)\.json$')
_MEND = (
    'Copy the folder again, or write it anew (seqio_cache_tasks; its COMPLETED '
    'comes last).'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeqioCache:
  """What a folder holds.

  Attributes:
    folder: of one task.
    files: of each split.
    features: 'tokens' or 'text' by name; others cannot be read.
    stats: by split, as seqio counted: examples, tokens, longest.
  """

  folder: str
  files: Mapping[str, tuple[tables.TableFile, ...]]
  features: Mapping[str, str]
  stats: Mapping[str, Mapping[str, Any]]


def is_cache(folder: str) -> bool:
  """Whether a folder is one task's cache, finished or not."""
  return os.path.isdir(folder) and any(map(_INFO.match, os.listdir(folder)))


def find(folder: str) -> SeqioCache:
  """Reads what the folder of one task says of itself.

  Raises:
    FileNotFoundError: there is none, or a shard is missing.
    ValueError: it is not finished, or damaged.
  """
  folder = os.path.expanduser(folder)
  if not is_cache(folder):
    raise FileNotFoundError(_absent(folder))
  if not os.path.exists(os.path.join(folder, _COMPLETED)):
    raise ValueError(
        f'{folder} has no {_COMPLETED}: expected a cache that was written to '
        f'its end. {_MEND}'
    )
  files, stats = {}, {}
  features: dict[str, str] = {}
  for name in sorted(os.listdir(folder)):
    match = _INFO.match(name)
    if match is None:
      continue
    split = match[1]
    path = os.path.join(folder, name)
    info = _read_json(path)
    if not {'num_shards', 'features'} <= info.keys():
      raise ValueError(
          f'{path} has {sorted(info)}: expected num_shards and features, as '
          f'seqio writes. {_MEND}'
      )
    files[split] = _shards(folder, split, count=info['num_shards'])
    features |= _kinds(info['features'])
    stats_path = os.path.join(folder, f'stats.{split}.json')
    stats[split] = (
        _read_json(stats_path) if os.path.exists(stats_path) else {}
    )
  return SeqioCache(
      folder=folder, files=files, features=features, stats=stats
  )


def _absent(folder: str) -> str:
  if not os.path.isdir(folder):
    return (
        f'there is no folder {folder!r}: expected the cache of a task '
        '(.../cached_tasks/TASK). Correct the path.'
    )
  inner = [
      name
      for name in sorted(os.listdir(folder))
      if is_cache(os.path.join(folder, name))
  ]
  if inner:
    return (
        f'{folder} holds the caches of several tasks, {inner}: expected one. '
        'Give one of these folders.'
    )
  return (
      f'{folder} is no cache of a seqio task: expected info.SPLIT.json, '
      f'SPLIT.tfrecord-00000-of-00001 and {_COMPLETED} in it. Correct the path.'
  )


def _read_json(path: str) -> dict[str, Any]:
  try:
    with open(path, encoding='utf-8') as file:
      found = json.load(file)
  except ValueError as error:
    raise ValueError(
        f'{path} is damaged ({error}): expected the JSON that seqio wrote. '
        f'{_MEND}'
    ) from None
  return found


def _shards(
    folder: str, split: str, *, count: int
) -> tuple[tables.TableFile, ...]:
  names = [
      f'{split}.tfrecord-{index:05d}-of-{count:05d}' for index in range(count)
  ]
  missing = [
      name for name in names if not os.path.exists(os.path.join(folder, name))
  ]
  if missing:
    raise FileNotFoundError(
        f'{folder} lacks {missing[0]} ({len(missing)} of {count} files of the '
        f'split {split!r}): expected all that info.{split}.json counts. {_MEND}'
    )
  return tuple(
      tables.TableFile(
          name=name, path=os.path.join(folder, name), kind='tfrecord'
      )
      for name in names
  )


def _kinds(features: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
  """Kinds of the features that are sequences of ids, or a text."""
  found = {}
  for name, feature in features.items():
    shape, dtype = feature['shape'], feature['dtype']
    if dtype in ('int32', 'int64') and len(shape) == 1:
      found[name] = 'tokens'
    elif dtype == 'string' and not shape:
      found[name] = 'text'
  return found
