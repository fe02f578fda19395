# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Holds a cache against the live task that stands in the recipe beside it.

Only where it can be made: a machine that trains from a cache needs neither
seqio nor the files of the task.
"""

from collections.abc import Mapping, Sequence
import json
import logging
from typing import Any

import gin

from t5wild.data import caching
from t5wild.data import datasets
from t5wild.data import fingerprints
from t5wild.data import providers
from t5wild.data import record_cache

_LENGTHS = 'lengths: '
# A task that cannot be made here may fail in many ways.
_NOT_HERE = (
    ValueError, LookupError, OSError, ImportError, AttributeError, TypeError,
    RuntimeError,
)  # fmt: skip


def recipe_data(scope: str) -> datasets.DatasetConfig | None:
  """The live data that the recipe read by gin binds in a scope.

  Args:
    scope: 'train', 'train_eval', ...

  Returns:
    None where it binds none, or they cannot be made on this machine.
  """
  try:
    make = gin.get_configurable(datasets.DatasetConfig)
    with gin.config_scope(scope):
      return make()
  except _NOT_HERE as error:
    logging.info(
        'The recipe has no live data in scope %s, or they cannot be made here: '
        '%s', scope, (str(error).splitlines() or [type(error).__name__])[0],
    )  # fmt: skip
    return None


def check_caches(
    caches: Sequence[record_cache.RecordCache],
    live: datasets.DatasetConfig,
    *,
    objective: Any,
    lengths: Mapping[str, int],
    others_may_join: bool = False,
) -> None:
  """Refuses caches that are not of a live task, or of an older version of it.

  Args:
    caches: that are read.
    live: the data that the recipe would read without them.
    objective: that is applied when they are read, or None.
    lengths: in which they are read.
    others_may_join: whether tasks that the recipe lacks may be read beside its
      own: where several caches were named.

  Raises:
    ValueError: with what differs, and both fingerprints.
  """
  try:
    tasks = {
        task.name: task
        for task in providers.subtasks_of(providers.provider_of(live))
    }
  except _NOT_HERE as error:
    logging.info(
        "The caches are not held against the recipe's live task, which cannot "
        'be made here: %s', str(error).splitlines()[0],
    )  # fmt: skip
    return
  known = [cache for cache in caches if cache.manifest.task in tasks]
  others = [cache for cache in caches if cache.manifest.task not in tasks]
  if others and not (known and others_may_join):
    raise ValueError(
        f'the cache {others[0].folder} is of the task '
        f'{others[0].manifest.task!r}, and the live task of the recipe is of '
        f'{sorted(tasks)}: expected one of them'
        + (' at least' if others_may_join else '')
        + f'. {_MEND}'
    )
  for cache in known:
    _check_task(cache, tasks[cache.manifest.task], objective, lengths)
  if others:
    logging.info(
        'Read beside the task of the recipe, and not held against any: %s',
        ', '.join(cache.folder for cache in others),
    )


def _check_task(
    cache: record_cache.RecordCache,
    task: Any,
    objective: Any,
    lengths: Mapping[str, int],
) -> None:
  manifest = cache.manifest
  try:
    (job,) = caching.plan_jobs(
        task,
        caching.CacheOptions(
            out='nowhere',
            content=manifest.content,
            splits=[manifest.split],
            task_feature_lengths=_cached_lengths(manifest),
            num_shards=1,
            use_cached=any(
                line.startswith(f'source: {caching.SEQIO_CACHE}')
                for line in manifest.task_description
            ),
        ),
    )
  except _NOT_HERE as error:
    logging.info(
        'The cache %s is not held against the live task, which cannot be made '
        'here: %s', cache.folder, str(error).splitlines()[0],
    )  # fmt: skip
    return
  live = job.manifest
  pairs = [('made of', _description(manifest), _description(live))]
  if manifest.content == 'examples':
    read = _LENGTHS + json.dumps(dict(lengths), sort_keys=True)
    cached = manifest.task_description[-1]
    if cached != f'{_LENGTHS}null':
      pairs.append(('cut to', [cached], [read]))
  differing = [
      f'  cache: {name} {_only_in(ours, theirs)}\n'
      f'  task:  {name} {_only_in(theirs, ours)}\n'
      for name, ours, theirs in pairs
      if ours != theirs
  ]
  if differing:
    raise ValueError(
        f'the cache {cache.folder} is of another version of the task '
        f'{manifest.task!r} than the recipe has:\n'
        f'  cache: fingerprint {fingerprints.of_value(_side_of(pairs, 1))}\n'
        f'  task:  fingerprint {fingerprints.of_value(_side_of(pairs, 2))}\n'
        + ''.join(differing)
        + f'Expected the same. {_MEND}'
    )
  _tell_objective(manifest, live, objective)


def _side_of(pairs: Sequence[tuple[str, Any, Any]], side: int) -> list[Any]:
  """One side of all that was compared."""
  return [pair[side] for pair in pairs]


def _only_in(ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
  """What one side has and the other has not."""
  return [line for line in ours if line not in theirs]


def _cached_lengths(
    manifest: record_cache.Manifest,
) -> Mapping[str, int] | None:
  for line in manifest.task_description:
    if line.startswith(_LENGTHS):
      return json.loads(line.removeprefix(_LENGTHS))
  return None


def _description(manifest: record_cache.Manifest) -> list[str]:
  """What the task is made of; lengths are compared where they matter."""
  return [
      line
      for line in manifest.task_description
      if not line.startswith(_LENGTHS)
  ]


def _tell_objective(
    manifest: record_cache.Manifest,
    live: record_cache.Manifest,
    objective: Any,
) -> None:
  """Says so where the recipe's task has another objective than is read with."""
  if objective is None or live.objective is None:
    return
  read = fingerprints.describe_preprocessor(objective)
  names = [
      text.split('(')[0].rpartition('.')[2] for text in (read, live.objective)
  ]
  if names[0] != names[1]:
    logging.warning(
        'The cache of %s is read with the objective %s, and the live task of '
        'the recipe has %s: evaluation of the live task is of another.',
        manifest.task, names[0], names[1],
    )  # fmt: skip


_MEND = (
    'Cache the task anew (t5wild cache), bring the task back to what it was, '
    'or read the cache as it is: '
    "data.CachedDatasetConfig.on_other_task = 'ignore'. A task that the recipe "
    'lacks may be read beside its own: name both folders in CACHE_DIR.'
)
