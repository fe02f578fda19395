# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The config of data read from caches; stands where a `DatasetConfig` does."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import time
import types
from typing import Any

from t5wild.data import argument_checks
from t5wild.data import cache_roots
from t5wild.data import cached_identity
from t5wild.data import cached_phases
from t5wild.data import cached_reader
from t5wild.data import cached_sources
from t5wild.data import cached_vocabularies
from t5wild.data import cached_windows
from t5wild.data import eval_batches
from t5wild.data import exclusions as exclusions_lib
from t5wild.data import index_order
from t5wild.data import live_comparison
from t5wild.data import mixture_rates
from t5wild.data import model_rows
from t5wild.data import record_cache
from t5wild.partitioning import distributed

_ON_CHANGED_DATA = ('fail', 'continue')
_ON_OTHER_TASK = ('fail', 'ignore')


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
      Where both are mixed, for those of tokens.
    seed: of the order and of the objective. None: one is drawn.
    shuffle: whether records and rows come in an order drawn for each epoch.
    pack: several examples per row.
    rates: in proportion to which tasks are mixed, by task; 0 leaves one out.
      None: those of the mixture that was cached.
    rates_from_step: other rates, by the step whose batch is the first with
      them; steps ascend.
    rates_count: what rates are of, 'examples' or 'tokens'.
    temperature: rates are taken to the power of one over this.
    exclude_from_step: documents that are left out, by the step whose batch is
      the first without them: names, or a file of names; see `exclusions`.
    window_tokens: about so many tokens are shuffled and packed together.
    skip_bad_shards: leave out shards that are missing, truncated or altered,
      and tell how many; every byte is read at start to find them.
    on_changed_data: 'fail' or 'continue', when a resumed run finds that the
      data has changed.
    on_other_task: 'fail' or 'ignore', when the live task that stands in the
      recipe beside the cache is another than was cached. It is looked at where
      it can be made: where seqio and its files are.
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
  rates_from_step: Mapping[int, Mapping[str, float]] | None = None
  rates_count: str = 'examples'
  temperature: float = 1.0
  exclude_from_step: Mapping[int, str | Sequence[str]] | None = None
  window_tokens: int = 1 << 20
  skip_bad_shards: bool = False
  on_changed_data: str = 'fail'
  on_other_task: str = 'fail'

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
    for name, known in (
        ('on_changed_data', _ON_CHANGED_DATA),
        ('on_other_task', _ON_OTHER_TASK),
        ('rates_count', mixture_rates.UNITS),
    ):
      if getattr(self, name) not in known:
        raise ValueError(
            f'CachedDatasetConfig.{name} is {getattr(self, name)!r}: expected '
            f'one of {known}. Set it to one of them.'
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
    read = self._open()
    exclusions = self._exclusions(read)
    make_sources = functools.partial(
        self._make_sources,
        read.caches,
        layout,
        exclusions=exclusions,
        is_alone=data_layout.num_shards == 1,
    )
    phases = _plan_phases(make_sources(seed), read.stages, cfg=self)

    def make_phases(seed: int) -> cached_phases.Phases:
      sources = make_sources(seed)
      return cached_phases.Phases(
          lambda number, rest: cached_windows.Windows(
              sources,
              rates=phases[number].rates,
              layout=layout,
              key=index_order.make_key(
                  'windows', seed, *([number] if number else [])
              ),
              shuffle=self.shuffle,
              division=phases[number].division,
              rest=rest,
          ),
          steps=[phase.step for phase in phases[1:]],
      )

    reader = cached_reader.CachedReader(
        make_phases,
        layout=layout,
        data_layout=data_layout,
        identity=cached_identity.Identity(
            make_sources(seed),
            phases,
            exclusions=exclusions,
            layout=layout,
            shuffle=self.shuffle,
        ),
        seed=seed,
        seed_was_drawn=self.seed is None,
        source=f'{"+".join(_names(read.caches))}:{self.split}',
        on_changed_data=self.on_changed_data,
    )
    reader.changes_in_words = _changes_in_words(read.stages, exclusions)
    reader.skip(batches=start_batch)
    return reader

  def _make_sources(
      self,
      caches: Sequence[record_cache.RecordCache],
      layout: model_rows.Layout,
      seed: int,
      *,
      exclusions: exclusions_lib.Exclusions,
      is_alone: bool,
  ) -> list[cached_sources.CachedSource]:
    contents = {cache.manifest.content for cache in caches}
    reading = cached_sources.Reading(
        features=layout.features,
        lengths=self.task_feature_lengths,
        objective=self.objective,
        is_for_some=len(contents) > 1,
        seed=seed,
        shuffle=self.shuffle,
        exclusions=exclusions,
        is_alone=is_alone,
    )
    return [cached_sources.CachedSource(cache, reading) for cache in caches]

  def _exclusions(self, read: '_Read') -> exclusions_lib.Exclusions:
    return exclusions_lib.Exclusions(
        self.exclude_from_step, caches=read.caches
    )

  def open_caches(self) -> list[record_cache.RecordCache]:
    """The caches that are read, in the order of the sources of records."""
    return self._open().caches

  def open_exclusions(self) -> exclusions_lib.Exclusions:
    """The documents that are left out from some step on."""
    return self._exclusions(self._open())

  def make_eval_batches(
      self,
      *,
      data_layout: Any,
      eval_steps: int,
      feature_converter_cls: Any,
  ) -> dict[str, eval_batches.FirstBatches]:
    """The first batches of each task, the same whenever they are iterated."""
    caches = self._open(if_there=True).caches
    contents = {cache.manifest.content for cache in caches}
    alone = {
        cache.manifest.task: dataclasses.replace(
            self,
            rates={cache.manifest.task: 1.0},
            objective=(
                None
                if len(contents) > 1 and cache.manifest.content == 'examples'
                else self.objective
            ),
            rates_from_step=None,
            exclude_from_step=None,
            seed=self.seed or 0,
        )
        for cache in caches
    }
    return {
        name: eval_batches.FirstBatches(
            cfg.make_reader(
                data_layout=data_layout,
                feature_converter_cls=feature_converter_cls,
            ),
            count=eval_steps,
        )
        for name, cfg in alone.items()
    }

  def verify_vocabularies(self, model: Any) -> None:
    """Refuses a model, or a live task in the recipe, that is not the caches'.

    Raises:
      ValueError: with both fingerprints, where they differ.
    """
    if self.on_other_task == 'fail':
      self._check_live_task()
    cached_vocabularies.check(self._open(if_there=True).caches, model)

  def _check_live_task(self) -> None:
    live = live_comparison.recipe_data('train')
    if live is not None:
      live_comparison.check_caches(
          self._open(if_there=True).caches,
          live,
          objective=self.objective,
          lengths=self.task_feature_lengths,
          others_may_join=len(self._roots) > 1,
      )

  @property
  def output_features(self) -> Mapping[str, Any]:
    """The features of the tasks: whether each has an end of sequence."""
    return {
        name: types.SimpleNamespace(add_eos=feature['add_eos'])
        for cache in self._open(if_there=True).caches
        for name, feature in cache.manifest.features.items()
    }

  @property
  def _roots(self) -> list[str]:
    given = self.cache_dir
    return [given] if isinstance(given, str) else list(given)

  def _open(self, *, if_there: bool = False) -> '_Read':
    """The caches to read, and the rates.

    Args:
      if_there: leaves out tasks without the split, where any has it.
    """
    roots_of, cached = cache_roots.tasks_of(self._roots)
    stages = mixture_rates.plan_stages(
        cached,
        rates=self.rates,
        later=self.rates_from_step,
        temperature=self.temperature,
    )
    read = [
        task for task in roots_of if any(stage.rates[task] for stage in stages)
    ]
    there = [
        task
        for task in read
        if if_there
        and cache_roots.has_split(
            roots_of[task], task=task, split=self.split
        )
    ]
    caches = [
        record_cache.RecordCache(
            cache_roots.folder_of(roots_of[task], task=task, split=self.split),
            skip_bad_shards=self.skip_bad_shards,
        )
        for task in there or read  # that none has it is told
    ]
    return _Read(caches=caches, stages=stages)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Read:
  """What is read: the tasks that some stage has, and all stages."""

  caches: list[record_cache.RecordCache]
  stages: list[mixture_rates.Stage]


def _draw_seed() -> int:
  """A seed from the clock of process 0, the same on all hosts."""
  return distributed.meet('seed of the data', value=int(time.time()))[0]


def _plan_phases(
    sources: Sequence[cached_sources.CachedSource],
    stages: Sequence[mixture_rates.Stage],
    *,
    cfg: CachedDatasetConfig,
) -> list[cached_identity.Phase]:
  """How records are mixed and divided in each stage."""
  phases = []
  for stage in stages:
    rates = mixture_rates.of_records(
        [stage.rates[source.manifest.task] for source in sources],
        tokens_per_record=[source.tokens_per_record for source in sources],
        examples_per_record=[source.examples_per_record for source in sources],
        is_cut=[source.objective is not None for source in sources],
        unit=cfg.rates_count,
    )
    division = cached_windows.divide(
        sources,
        rates=rates,
        window_tokens=cfg.window_tokens,
        is_first=stage.step == 0,
    )
    phases.append(
        cached_identity.Phase(
            step=stage.step,
            rates=rates,
            asked=stage.rates,
            division=division,
        )
    )
  return phases


def _changes_in_words(
    stages: Sequence[mixture_rates.Stage],
    exclusions: exclusions_lib.Exclusions,
) -> str:
  """What a run is told at its start of what will change."""
  words = ''
  if stages[1:]:
    steps = ', '.join(str(stage.step) for stage in stages[1:])
    words += f' Rates change with the batch of step {steps}.'
  if exclusions:
    steps = ', '.join(map(str, exclusions.steps))
    words += (
        f' {len(exclusions)} documents are left out, from the batch of step '
        f'{steps} on.'
    )
  return words


def _names(caches: Sequence[record_cache.RecordCache]) -> list[str]:
  return [cache.manifest.task for cache in caches]
