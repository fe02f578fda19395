# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The config of data read from caches; stands where a `DatasetConfig` does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import json
import os
import time
from typing import Any

from t5wild.data import argument_checks
from t5wild.data import cached_reader
from t5wild.data import cached_sources
from t5wild.data import cached_windows
from t5wild.data import fingerprints
from t5wild.data import index_order
from t5wild.data import model_rows
from t5wild.data import reader_protocol
from t5wild.data import record_cache
from t5wild.partitioning import distributed

_ON_CHANGED_DATA = ('fail', 'continue')


@dataclasses.dataclass(frozen=True, kw_only=True)
class CachedDatasetConfig:
  """Which caches to read, in what lengths and batches.

  Attributes:
    cache_dir: folder that `t5wild cache` wrote, or several, whose tasks are
      mixed.
    task_feature_lengths: length of each task feature, such as 'inputs'.
    batch_size: examples (rows, where packed) per global batch.
    split: 'train', 'validation', ...
    objective: of `data.objectives`, for caches of tokens; None for examples.
    seed: of the order and of the objective. None: one is drawn.
    shuffle: whether records and rows come in an order drawn for each epoch.
    pack: several examples per row.
    rates: in proportion to which tasks are mixed, by task; 0 leaves one out.
      None: those of the mixture that was cached.
    temperature: rates are taken to the power of one over this.
    window_tokens: about so many tokens are shuffled and packed together.
    skip_bad_shards: leave out shards that are missing, truncated or altered,
      and tell how many; every byte is read at start to find them.
    on_changed_data: 'fail' or 'continue', when a resumed run finds that the
      data has changed.
  """

  cache_dir: str | Sequence[str]
  task_feature_lengths: Mapping[str, int]
  batch_size: int
  split: str = 'train'
  objective: Callable[..., Any] | None = None
  seed: int | None = 0
  shuffle: bool = True
  pack: bool = True
  rates: Mapping[str, float] | None = None
  temperature: float = 1.0
  window_tokens: int = 1 << 20
  skip_bad_shards: bool = False
  on_changed_data: str = 'fail'

  def __post_init__(self):
    """Refuses what no data could be made of."""
    argument_checks.check_lengths(self.task_feature_lengths)
    for name in ('batch_size', 'window_tokens'):
      value = getattr(self, name)
      if not isinstance(value, int) or value < 1:
        raise ValueError(
            f'CachedDatasetConfig.{name} is {value!r}: expected a whole '
            'number, at least 1. Set it so.'
        )
    if not self.temperature > 0:
      raise ValueError(
          f'CachedDatasetConfig.temperature is {self.temperature!r}: expected '
          'more than 0; 1 leaves the rates as they are, more makes them more '
          'equal. Set it so.'
      )
    if self.on_changed_data not in _ON_CHANGED_DATA:
      raise ValueError(
          f'CachedDatasetConfig.on_changed_data is {self.on_changed_data!r}: '
          f'expected one of {_ON_CHANGED_DATA}. Set it to one of them.'
      )

  def make_reader(
      self,
      *,
      data_layout: Any,
      feature_converter_cls: Any,
      start_batch: int = 0,
  ) -> cached_reader.CachedReader:
    """Makes the reader of this host's rows.

    Args:
      data_layout: batch_size, shard_id and num_shards of this host.
      feature_converter_cls: the model's; see `model_rows.find_layout`.
      start_batch: batches to pass over.

    Raises:
      ValueError: for caches that are not whole or do not suit the model, and
        for rates that name no task of theirs.
    """
    layout = model_rows.find_layout(
        feature_converter_cls,
        lengths=self.task_feature_lengths,
        pack=self.pack,
    )
    seed = _draw_seed() if self.seed is None else self.seed
    caches, rates = self._open()
    make_sources = functools.partial(self._make_sources, caches, layout)
    sources = make_sources(seed)
    rates = _record_rates(sources, rates)
    division = cached_windows.divide(
        sources, rates=rates, window_tokens=self.window_tokens
    )

    def make_windows(seed: int) -> cached_windows.Windows:
      return cached_windows.Windows(
          make_sources(seed),
          rates=rates,
          layout=layout,
          seed=seed,
          shuffle=self.shuffle,
          division=division,
      )

    reader = cached_reader.CachedReader(
        make_windows,
        layout=layout,
        data_layout=data_layout,
        identity=_identity(
            sources, rates, layout, division, shuffle=self.shuffle
        ),
        seed=seed,
        seed_was_drawn=self.seed is None,
        source=f'{"+".join(_names(caches))}:{self.split}',
        on_changed_data=self.on_changed_data,
    )
    reader.skip(batches=start_batch)
    return reader

  def _make_sources(
      self,
      caches: Sequence[record_cache.RecordCache],
      layout: model_rows.Layout,
      seed: int,
  ) -> list[cached_sources.CachedSource]:
    reading = cached_sources.Reading(
        features=layout.features,
        lengths=self.task_feature_lengths,
        objective=self.objective,
        seed=seed,
        shuffle=self.shuffle,
    )
    return [cached_sources.CachedSource(cache, reading) for cache in caches]

  def open_caches(self) -> list[record_cache.RecordCache]:
    """The caches that are read, in the order of the sources of records."""
    return self._open()[0]

  def make_eval_batches(
      self,
      *,
      data_layout: Any,
      eval_steps: int,
      feature_converter_cls: Any,
  ) -> dict[str, 'FirstBatches']:
    """The first batches of each task, the same whenever they are iterated."""
    caches, _ = self._open()
    alone = {
        cache.manifest.task: dataclasses.replace(
            self,
            rates={cache.manifest.task: 1.0},
            seed=self.seed or 0,
        )
        for cache in caches
    }
    return {
        name: FirstBatches(
            cfg.make_reader(
                data_layout=data_layout,
                feature_converter_cls=feature_converter_cls,
            ),
            count=eval_steps,
        )
        for name, cfg in alone.items()
    }

  def verify_vocabularies(self, model: Any) -> None:
    """Refuses a model whose vocabularies are not those of the caches.

    Raises:
      ValueError: with both fingerprints, where they differ.
    """
    sides = {
        'inputs': model.input_vocabulary, 'targets': model.output_vocabulary
    }
    caches, _ = self._open()
    for cache in caches:
      for name, feature in cache.manifest.features.items():
        side = sides.get(name, sides['targets'])
        own = fingerprints.describe_vocabulary(side)
        stored = feature['vocabulary']
        if own['fingerprint'] != stored['fingerprint']:
          raise ValueError(
              f'the vocabularies of the {name} differ:\n'
              f'  cache {cache.folder}: {_words(stored)}\n'
              f'  model: {_words(own)}\n'
              "Expected the same. Set VOCABULARY to the cache's, or cache the "
              "task with the model's (t5wild cache)."
          )

  def _open(self) -> tuple[list[record_cache.RecordCache], list[float]]:
    """The caches to read, and the rate of each."""
    given: dict[str, tuple[str, float]] = {}  # task to its root and rate
    roots = self.cache_dir
    for root in [roots] if isinstance(roots, str) else roots:
      for task, rate in _tasks_of(root).items():
        given[task] = (root, rate)
    if self.rates is not None:
      unknown = sorted(set(self.rates) - set(given))
      if unknown:
        raise ValueError(
            f'CachedDatasetConfig.rates name {unknown}: expected tasks of '
            f'{roots}, which are {sorted(given)}. Correct the names, or cache '
            'those tasks too.'
        )
      given = {
          task: (root, self.rates[task])
          for task, (root, _) in given.items()
          if task in self.rates
      }
    index_order.check_rates({task: rate for task, (_, rate) in given.items()})
    read = {task: value for task, value in given.items() if value[1] > 0}
    caches = [
        record_cache.RecordCache(
            _folder(root, task=task, split=self.split),
            skip_bad_shards=self.skip_bad_shards,
        )
        for task, (root, _) in read.items()
    ]
    return caches, [
        rate ** (1 / self.temperature) for _, rate in read.values()
    ]


class FirstBatches:
  """Batches from the first on; always the same ones."""

  def __init__(self, reader: cached_reader.CachedReader, *, count: int):
    """Takes a reader at its beginning."""
    self._reader = reader
    self._start = reader.state_dict()
    self._count = count
    self.element_spec = reader.element_spec

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Yields them from the first one."""
    self._reader.load_state_dict(self._start)
    yield from itertools.islice(self._reader, self._count)


def _draw_seed() -> int:
  """A seed from the clock of process 0, the same on all hosts."""
  return distributed.meet('seed of the data', value=int(time.time()))[0]


def _tasks_of(root: str) -> dict[str, float]:
  """Rates by task, as they were cached."""
  path = os.path.join(root, record_cache.ROOT)
  if not os.path.exists(path):
    for folder in record_cache.folders_of(root):
      record_cache.read_manifest(folder)  # says what is missing, if it is
    raise record_cache.BadCacheError(
        f'{root!r} has no {record_cache.ROOT}: expected the folder that was '
        'given to `t5wild cache --out`. Give that one, or run the command '
        'again, which goes on where it was stopped.'
    )
  with open(path, encoding='utf-8') as file:
    return json.load(file)['rates']


def _folder(root: str, *, task: str, split: str) -> str:
  folder = record_cache.split_folder(root, task=task, split=split)
  if os.path.isdir(folder):
    return folder
  parent = os.path.dirname(folder)
  there = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
  raise record_cache.BadCacheError(
      f'the cache {root!r} of {task} has no split {split!r}: expected one of '
      f'{there}. Set CachedDatasetConfig.split to one of them, or cache it.'
  )


def _record_rates(
    sources: Sequence[cached_sources.CachedSource], rates: Sequence[float]
) -> list[float]:
  """Rates by which records are mixed, so that examples are as asked for.

  Where an objective cuts text, examples are about as long for all tasks, so a
  task of long records gives fewer of them.
  """
  return [
      rate / source.tokens_per_record if source.objective is not None else rate
      for source, rate in zip(sources, rates, strict=True)
  ]


def _identity(
    sources: Sequence[cached_sources.CachedSource],
    rates: Sequence[float],
    layout: model_rows.Layout,
    division: cached_windows.Division,
    *,
    shuffle: bool,
) -> dict[str, str]:
  """Fingerprints of all that decides the rows but for the seed."""
  return {
      'caches': fingerprints.of_value(
          [source.manifest.fingerprint for source in sources]
      ),
      'order': fingerprints.of_value([
          list(rates), dataclasses.astuple(division), shuffle
      ]),
      'making': fingerprints.of_value([
          repr(layout), *(repr(source.objective) for source in sources)
      ]),
  }


def _names(caches: Sequence[record_cache.RecordCache]) -> list[str]:
  return [cache.manifest.task for cache in caches]


def _words(description: Mapping[str, Any]) -> str:
  return (
      f'{description["kind"]}, {description["vocab_size"]} ids, '
      f'{description["extra_ids"]} sentinels, fingerprint '
      f'{description["fingerprint"]}'
  )
