# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Turns seqio tasks and mixtures into caches, shard by shard.

A cache holds tokens, to which an objective is applied when they are read (and
afresh in each epoch), or whole examples. Shards are written independently, so
several processes share the work and a killed one is done again from its last
whole shard. seqio and TensorFlow are imported when a function is called.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import importlib.metadata
import json
import os
from typing import Any

import numpy as np

import t5wild
from t5wild.data import fingerprints
from t5wild.data import places
from t5wild.data import providers
from t5wild.data import record_cache
from t5wild.data import record_format
from t5wild.data import seqio_caches
from t5wild.data import shard_writer
from t5wild.data import source_files
from t5wild.data import split_jobs

CONTENTS = ('auto', 'tokens', 'examples')
SEQIO_CACHE = 'cache of seqio'  # what a description calls such a source
_OBJECTIVES = 't5wild.data.objectives'
_AUTO_SHARDS = 16  # at most


@dataclasses.dataclass(frozen=True, kw_only=True)
class CacheOptions:
  """How to write a cache.

  Attributes:
    out: folder of the cache, on this machine or in a bucket.
    content: 'tokens': documents as tokens, for an objective at read time.
      'examples': what the task gives, its objective drawn once for all epochs.
      'auto': tokens where the task has an objective of `data.objectives`.
    splits: those of the task, None for all that it has.
    task_feature_lengths: for examples whose task cuts by them.
    num_shards: files of each split, None for as many as the source has, 16 at
      most.
    max_record_tokens: longer documents become several records.
    seed: of what is random in a task whose examples are cached.
    use_cached: read the caches of seqio that tasks have, not their sources.
  """

  out: str
  content: str = 'auto'
  splits: Sequence[str] | None = None
  task_feature_lengths: Mapping[str, int] | None = None
  num_shards: int | None = None
  max_record_tokens: int = 8192
  seed: int = 0
  use_cached: bool = False

  def __post_init__(self):
    """Refuses what no cache could be written with."""
    places.is_bucket(self.out)  # or a folder; refuses what is neither
    if self.content not in CONTENTS:
      raise ValueError(
          f'--content is {self.content!r}: expected one of {CONTENTS}. Choose '
          'one of them.'
      )
    for name in ('num_shards', 'max_record_tokens'):
      value = getattr(self, name)
      if value is not None and value < 1:
        raise ValueError(
            f'--{name} is {value}: expected at least 1. Raise it, or leave it '
            'out.'
        )


def plan_jobs(
    provider: Any, options: CacheOptions
) -> list[split_jobs.SplitJob]:
  """Plans the splits of a task, or of all tasks of a mixture; writes nothing.

  Raises:
    ValueError: for a task that cannot be cached so, or a split it lacks.
  """
  jobs = []
  for task in providers.subtasks_of(provider):
    there = list(_shards_of(task, use_cached=options.use_cached))
    wanted = options.splits or there
    splits = [split for split in wanted if split in there]
    jobs += [_plan_split(task, split, options) for split in splits]
  if options.splits:
    missing = set(options.splits) - {job.split for job in jobs}
    if missing:
      raise ValueError(
          f'{provider.name} has no split {sorted(missing)}: expected some of '
          f'{sorted({job.split for job in plan_jobs(provider, _all(options))})}'
          '. Correct --splits, or leave it out for all.'
      )
  return jobs


def _shards_of(task: Any, *, use_cached: bool) -> Mapping[str, Sequence[str]]:
  """What is read of each split: shards of the source, or seqio's own cache.

  Raises:
    FileNotFoundError: there is no such cache, or a file of it is missing.
  """
  if not (use_cached and task.supports_caching):
    return {split: task.source.list_shards(split) for split in task.splits}
  if not task.cache_dir:
    raise FileNotFoundError(
        f'there is no cache of seqio of {task.name!r}: expected TASK/COMPLETED '
        'in a folder of cached tasks. Name it by --seqio_additional_cache_dirs.'
    )
  found = seqio_caches.find(task.cache_dir)
  return {
      split: [each.path for each in files]
      for split, files in found.files.items()
  }


def _all(options: CacheOptions) -> CacheOptions:
  return dataclasses.replace(options, splits=None)


def check_root(provider: Any, options: CacheOptions) -> None:
  """Refuses a folder of the cache of another task or mixture.

  Raises:
    ValueError: with both names.
  """
  path = places.join(options.out, record_cache.ROOT)
  if not places.exists(path):
    return
  there = record_cache.read_json(
      path,
      wanted='the name of the task or mixture',
      mend='Delete it and run the command again, which keeps the shards.',
  ).get('name')
  if there != provider.name:
    raise ValueError(
        f'{options.out} holds the cache of {there!r}: expected one of '
        f'{provider.name!r}, or nothing. Give another --out; '
        'CachedDatasetConfig.cache_dir takes several, which are mixed.'
    )


def write_root(provider: Any, options: CacheOptions) -> None:
  """Writes which tasks the cache is of, and at which rates they are mixed."""
  tasks = providers.subtasks_of(provider)
  is_mixture = hasattr(provider, 'get_rate')
  rates = {
      task.name: float(provider.get_rate(task)) if is_mixture else 1.0
      for task in tasks
  }
  shard_writer.write_text(
      places.join(options.out, record_cache.ROOT),
      json.dumps({'name': provider.name, 'rates': rates}, indent=1),
  )


def _plan_split(
    task: Any, split: str, options: CacheOptions
) -> split_jobs.SplitJob:
  content, preprocessors = _cut_preprocessors(task, options.content)
  features = dict(task.output_features)
  names = ('targets',) if content == 'tokens' else tuple(sorted(features))
  _check_features(task, {name: features[name] for name in names})
  is_cut = content == 'tokens'
  pipeline = _tokens_only(task, preprocessors) if is_cut else task
  largest = max(feature.vocabulary.vocab_size for feature in features.values())
  schema = record_format.Schema(
      features=names, dtype='uint16' if largest <= 1 << 16 else 'int32'
  )
  shards = _shards_of(task, use_cached=options.use_cached)[split]
  num_shards = options.num_shards or max(1, min(_AUTO_SHARDS, len(shards)))
  folder = record_cache.split_folder(options.out, task=task.name, split=split)
  manifest = record_cache.Manifest(
      task=task.name,
      split=split,
      content=content,
      features={
          name: {
              'vocabulary': fingerprints.describe_vocabulary(
                  feature.vocabulary
              ),
              'add_eos': bool(feature.add_eos),
          }
          for name, feature in features.items()
      },
      schema=schema,
      task_description=_describe(
          task,
          shards,
          preprocessors,
          lengths=options.task_feature_lengths,
          use_cached=options.use_cached,
      ),
      shards=[],
      versions=_versions(),
      objective=next(
          (
              fingerprints.describe_preprocessor(step)
              for step in task.preprocessors
              if content == 'tokens' and _is_objective(step)
          ),
          None,
      ),
  )
  return split_jobs.SplitJob(
      task=task,
      split=split,
      pipeline=pipeline,
      task_feature_lengths=options.task_feature_lengths,
      seed=options.seed,
      use_cached=options.use_cached,
      manifest=manifest,
      plan=shard_writer.ShardPlan(
          folder=folder,
          num_shards=num_shards,
          schema=schema,
          max_record_tokens=(
              options.max_record_tokens if is_cut else None
          ),
      ),
      source_state=source_files.look_at(shards),
  )


def _cut_preprocessors(
    task: Any, content: str
) -> tuple[str, Sequence[Callable[..., Any]]]:
  """(content, the preprocessors that are applied before records are written).

  Raises:
    ValueError: tokens are asked for, and where they end cannot be told.
  """
  import seqio

  steps = list(task.preprocessors)
  objective = [i for i, step in enumerate(steps) if _is_objective(step)]
  placeholder = [
      i
      for i, step in enumerate(steps)
      if isinstance(step, seqio.CacheDatasetPlaceholder)
  ]
  cut = (objective or placeholder or [None])[0]
  rest = [
      fingerprints.describe_preprocessor(step)
      for step in (steps[cut + 1 :] if objective else [])
  ]
  strange = [step for step in rest if '.append_eos' not in step]
  if content == 'examples' or content == 'auto' and (not objective or strange):
    return 'examples', steps
  if cut is None or strange:
    raise ValueError(
        f'--content=tokens, and the task {task.name!r} has the preprocessors '
        f'{[fingerprints.describe_preprocessor(step) for step in steps]}: '
        'expected an objective of t5wild.data.objectives among them, followed '
        'by append_eos alone, or a seqio.CacheDatasetPlaceholder where the '
        'tokens are. Use --content=examples, or make such a task.'
    )
  return 'tokens', steps[:cut]


def _is_objective(step: Any) -> bool:
  description = fingerprints.describe_preprocessor(step)
  module, _, name = description.split('(')[0].rpartition('.')
  return module == _OBJECTIVES and name != 'tokenize_documents'


def _tokens_only(task: Any, preprocessors: Sequence[Any]) -> Any:
  import seqio

  return seqio.Task(
      task.name,
      source=task.source,
      preprocessors=list(preprocessors),
      output_features={'targets': task.output_features['targets']},
      shuffle_buffer_size=None,
  )


def _check_features(task: Any, features: Mapping[str, Any]) -> None:
  for name, feature in features.items():
    dtype = np.dtype(getattr(feature.dtype, 'as_numpy_dtype', feature.dtype))
    if getattr(feature, 'rank', 1) != 1 or not np.issubdtype(dtype, np.integer):
      raise ValueError(
          f'the feature {name!r} of {task.name} is of rank {feature.rank} and '
          f'type {dtype}: expected sequences of token ids. Leave it out of the '
          "task's output_features, or read the task without a cache."
      )


def _describe(
    task: Any,
    shards: Sequence[str],
    preprocessors: Sequence[Any],
    *,
    lengths: Mapping[str, int] | None,
    use_cached: bool,
) -> list[str]:
  """What a task is made of: a change of any of it is another cache."""
  shards = [os.path.basename(name) for name in shards]
  # What of its files a source reads, where it says.
  reads = getattr(task.source, 'reads', None)
  source = SEQIO_CACHE if use_cached else type(task.source).__qualname__
  features = {
      name: fingerprints.describe_vocabulary(feature.vocabulary)['fingerprint']
      for name, feature in task.output_features.items()
  }
  return [
      f'source: {source}, {len(shards)} shards '
      f'{fingerprints.of_value(shards)}',
      *([f'reads: {reads}'] if reads and not use_cached else []),
      *(
          f'preprocessor: {fingerprints.describe_preprocessor(step)}'
          for step in preprocessors
      ),
      f'features: {json.dumps(features, sort_keys=True)}',
      f'lengths: {json.dumps(lengths, sort_keys=True)}',
  ]


@functools.cache
def _versions() -> dict[str, str]:
  names = ('array_record', 'numpy', 'seqio', 'tensorflow')
  found = {'t5wild': t5wild.__version__}
  for name in names:
    try:
      found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      continue
  return found
