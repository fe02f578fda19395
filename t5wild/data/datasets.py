# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Data sets of seqio tasks and mixtures: their config and their batches.

seqio and TensorFlow are imported when a data set is made, not before.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import logging
import time
from typing import Any

from t5wild.data import argument_checks
from t5wild.data import custom_reader
from t5wild.data import eval_batches
from t5wild.data import live_reader
from t5wild.data import pipelines
from t5wild.data import providers
from t5wild.data import reader_protocol
from t5wild.partitioning import distributed

# Reachable here, where a data set's users look for them.
Reader = reader_protocol.Reader
find_provider = providers.provider_of
get_vocabulary = providers.get_vocabulary
verify_matching_vocabs = providers.verify_matching_vocabs

SHARD_BY = ('rows', 'files')
_ON_CHANGED_DATA = ('fail', 'continue')


@dataclasses.dataclass
class DatasetConfig:
  """Which task to read, in what lengths and batches (T5X's fields, and ours).

  Attributes:
    mixture_or_task_name: name of a seqio task or mixture, or one itself.
    task_feature_lengths: length of each task feature, such as 'inputs'. None,
      only where a data set is read whole before it is used (evaluation by
      decoding): the longest there are.
    split: 'train', 'validation', ...
    batch_size: examples per global batch.
    shuffle: whether to shuffle files and examples.
    seed: seed of the order and of random preprocessors. None: one is drawn.
    use_cached: read seqio's offline cache instead of the source.
    pack: several examples per row.
    use_custom_packing_ops: tensor2tensor's packing, where it is installed.
    module: module to import first, which registers the task (T5X's old way).
    use_memory_cache: keep evaluation batches in memory.
    trim_output_features: cut features to their lengths.
    shard_by: 'files': each host reads its share of the files. 'rows': every
      host reads everything and keeps its rows, so that a global batch is the
      same for any number of hosts.
    on_changed_data: 'fail' or 'continue', when a resumed run finds that the
      data has changed.
  """

  mixture_or_task_name: Any
  task_feature_lengths: Mapping[str, int] | None
  split: str
  batch_size: int
  shuffle: bool
  seed: int | None
  use_cached: bool = False
  pack: bool = False
  use_custom_packing_ops: bool = False
  module: str | None = None
  use_memory_cache: bool = True
  trim_output_features: bool = True
  shard_by: str = 'files'
  on_changed_data: str = 'fail'

  def __post_init__(self):
    """Refuses what no data set could be made of."""
    if not isinstance(self.batch_size, int) or self.batch_size < 1:
      raise ValueError(
          f'batch_size is {self.batch_size!r}: expected a whole number of '
          'examples, at least 1. Set BATCH_SIZE.'
      )
    if self.task_feature_lengths is not None:
      argument_checks.check_lengths(self.task_feature_lengths)
    argument_checks.check_choice('shard_by', self.shard_by, choices=SHARD_BY)
    argument_checks.check_choice(
        'on_changed_data', self.on_changed_data, choices=_ON_CHANGED_DATA
    )


def _draw_seed() -> int:
  """A seed from the clock of process 0, the same on all hosts."""
  return distributed.meet('seed of the data', value=int(time.time()))[0]


def _make_dataset(
    cfg: DatasetConfig,
    seed: int,
    *,
    shard: tuple[int, int],
    feature_converter_cls: Callable[..., Any],
    num_epochs: int | None,
) -> Any:
  """The pipeline of one shard, (index, count): a function of both."""
  argument_checks.check_lengths(cfg.task_feature_lengths)
  provider = open_provider(cfg)
  converter = feature_converter_cls(
      pack=cfg.pack, use_custom_packing_ops=cfg.use_custom_packing_ops
  )
  argument_checks.check_features(
      converter=converter, lengths=cfg.task_feature_lengths, task=provider
  )
  import seqio

  shard_id, num_shards = shard
  dataset = seqio.get_dataset(
      mixture_or_task_name=provider,
      task_feature_lengths=cfg.task_feature_lengths,
      dataset_split=cfg.split,
      shuffle=cfg.shuffle,
      num_epochs=num_epochs,
      feature_converter=converter,
      shard_info=seqio.ShardInfo(index=shard_id, num_shards=num_shards),
      use_cached=cfg.use_cached,
      seed=seed,
      trim_output_features=cfg.trim_output_features,
      batch_size=cfg.batch_size // num_shards,
      verbose=False,
  )
  return pipelines.with_options(dataset)


def open_provider(cfg: DatasetConfig) -> Any:
  """Finds the seqio task or mixture that a config names, and checks it.

  Raises:
    ValueError: for an unknown task or split.
    FileNotFoundError: for a cache that was asked for and is absent, and for
      vocabularies that cannot be read.
  """
  provider = providers.provider_of(cfg)
  providers.check_split(cfg, provider=provider)
  providers.check_cache(cfg, provider=provider)
  providers.check_vocabularies(provider)
  return provider


def get_dataset(
    cfg: DatasetConfig,
    shard_id: int,
    num_shards: int,
    feature_converter_cls: Callable[..., Any],
    num_epochs: int | None = None,
    continue_from_last_checkpoint: bool = False,
) -> Any:
  """Makes the tf.data pipeline of one shard, batched (T5X's signature).

  Args:
    cfg: what to read.
    shard_id: index of the shard.
    num_shards: number of shards.
    feature_converter_cls: class of seqio feature converters.
    num_epochs: passes over the data, None for no end.
    continue_from_last_checkpoint: not supported here, as in T5X; readers do
      that.

  Returns:
    tf.data.Dataset of batches of `cfg.batch_size // num_shards` examples.

  Raises:
    ValueError: for a batch that does not divide, an unknown task or split.
    FileNotFoundError: for a cache that was asked for and is absent.
  """
  if continue_from_last_checkpoint:
    raise ValueError(
        'continue_from_last_checkpoint is '
        f'{continue_from_last_checkpoint!r}: expected False, for a data '
        'set alone keeps no position. Use data.make_train_reader, whose '
        'state_dict is saved with checkpoints.'
    )
  argument_checks.check_divisible(cfg.batch_size, num_shards=num_shards)
  return _make_dataset(
      cfg,
      _draw_seed() if cfg.seed is None else cfg.seed,
      shard=(shard_id, num_shards),
      feature_converter_cls=feature_converter_cls,
      num_epochs=num_epochs,
  )


def make_train_reader(
    cfg: Any,
    *,
    data_layout: Any,
    feature_converter_cls: Callable[..., Any],
    start_batch: int = 0,
    get_dataset_fn: Callable[..., Any] | None = None,
) -> reader_protocol.Reader:
  """Makes the reader of training batches that a config stands for.

  Args:
    cfg: a `DatasetConfig`, or anything that has a `make_reader` of this
      function's arguments.
    data_layout: batch_size, shard_id and num_shards of this host.
    feature_converter_cls: class of seqio feature converters.
    start_batch: batches to pass over.
    get_dataset_fn: gives the batches instead, see `custom_reader`; None and
      `get_dataset` read the config itself.

  Returns:
    A reader; see `reader_protocol.Reader`.
  """
  if get_dataset_fn not in (None, get_dataset):
    return custom_reader.make_custom_reader(
        get_dataset_fn,
        cfg,
        data_layout=data_layout,
        feature_converter_cls=feature_converter_cls,
        draw_seed=_draw_seed,
    )
  make = (
      functools.partial(_make_live_reader, cfg)
      if isinstance(cfg, DatasetConfig)
      else cfg.make_reader
  )
  return make(
      data_layout=data_layout,
      feature_converter_cls=feature_converter_cls,
      start_batch=start_batch,
  )


def _make_live_reader(
    cfg: DatasetConfig,
    *,
    data_layout: Any,
    feature_converter_cls: Callable[..., Any],
    start_batch: int,
) -> live_reader.LiveReader:
  cfg = dataclasses.replace(cfg, batch_size=data_layout.batch_size)
  argument_checks.check_divisible(
      cfg.batch_size, num_shards=data_layout.num_shards
  )
  by_rows = cfg.shard_by == 'rows'
  reader = live_reader.LiveReader(
      functools.partial(
          _make_dataset,
          cfg,
          shard=(
              (0, 1)
              if by_rows
              else (data_layout.shard_id, data_layout.num_shards)
          ),
          feature_converter_cls=feature_converter_cls,
          num_epochs=None,
      ),
      source=f'{providers.provider_of(cfg).name}:{cfg.split}',
      seed=_draw_seed() if cfg.seed is None else cfg.seed,
      seed_was_drawn=cfg.seed is None,
      share=live_reader.Share(
          by=cfg.shard_by,
          shard_id=data_layout.shard_id,
          num_shards=data_layout.num_shards,
      ),
      on_changed_data=cfg.on_changed_data,
  )
  for _ in range(start_batch):
    next(reader)
  return reader


def make_eval_batches(
    cfg: Any,
    *,
    data_layout: Any,
    eval_steps: int,
    feature_converter_cls: Callable[..., Any],
) -> dict[str, Any]:
  """Makes the train-eval batches of each task as numpy; see below for which.

  Args:
    cfg: what to read; a `DatasetConfig`, or anything that has a
      `make_eval_batches` of this function's arguments.
    data_layout: batch_size, shard_id and num_shards of this host.
    eval_steps: batches per task.
    feature_converter_cls: class of seqio feature converters.

  Returns:
    Batches by the name of the task or mixture.
  """
  if not isinstance(cfg, DatasetConfig):
    return cfg.make_eval_batches(
        data_layout=data_layout,
        eval_steps=eval_steps,
        feature_converter_cls=feature_converter_cls,
    )
  datasets_by_name = get_training_eval_datasets(
      dataclasses.replace(cfg, batch_size=data_layout.batch_size),
      data_layout.shard_id,
      data_layout.num_shards,
      eval_steps,
      feature_converter_cls,
  )
  return {
      name: eval_batches.EvalBatches(
          dataset, use_memory_cache=cfg.use_memory_cache
      )
      for name, dataset in datasets_by_name.items()
  }


def get_training_eval_datasets(
    cfg: DatasetConfig,
    shard_id: int,
    num_shards: int,
    eval_steps: int,
    feature_converter_cls: Callable[..., Any],
    deterministic: bool = False,
    model_dir: str | None = None,
    start_step: int = 0,
) -> dict[str, Any]:
  """Makes one pipeline per task of a mixture, and one of the whole mixture.

  Each repeats its examples as needed to give `eval_steps` full batches, and
  hosts take turns at the rows, as in T5X. Tasks without the split are left
  out. Unlike T5X, no seed means seed 0: what is held out should not change
  from one evaluation to the next.

  Args:
    cfg: what to read.
    shard_id: index of this host's rows.
    num_shards: number of hosts that read different rows.
    eval_steps: batches per pipeline.
    feature_converter_cls: class of seqio feature converters.
    deterministic: accepted as T5X does; pipelines always are.
    model_dir: accepted and not used.
    start_step: accepted and not used.

  Returns:
    tf.data.Dataset by the name of the task or mixture.
  """
  del deterministic, model_dir, start_step
  argument_checks.check_divisible(cfg.batch_size, num_shards=num_shards)
  provider = providers.provider_of(cfg)
  providers.check_split(cfg, provider=provider)
  import seqio

  sources = [
      task
      for task in providers.subtasks_of(provider)
      if _has_split(task, split=cfg.split)
  ]
  if isinstance(provider, seqio.Mixture):
    sources.append(provider)
  make = functools.partial(
      _make_eval_dataset,
      cfg,
      shard=(shard_id, num_shards),
      eval_steps=eval_steps,
      feature_converter_cls=feature_converter_cls,
  )
  return {source.name: make(source) for source in sources}


def _has_split(task: Any, *, split: str) -> bool:
  if split in task.splits:
    return True
  logging.info('%s has no split %r: not evaluated.', task.name, split)
  return False


def _make_eval_dataset(
    cfg: DatasetConfig,
    source: Any,
    *,
    shard: tuple[int, int],
    eval_steps: int,
    feature_converter_cls: Callable[..., Any],
) -> Any:
  shard_id, num_shards = shard
  dataset = _make_dataset(
      dataclasses.replace(cfg, mixture_or_task_name=source, batch_size=1),
      0 if cfg.seed is None else cfg.seed,
      shard=(0, 1),
      feature_converter_cls=feature_converter_cls,
      # Finite, so that a shard whose examples are all filtered out ends.
      num_epochs=eval_steps * cfg.batch_size,
  )
  dataset = (
      dataset.unbatch()
      .repeat()
      .shard(num_shards, shard_id)
      .batch(cfg.batch_size // num_shards, drop_remainder=True)
      .take(eval_steps)
  )
  return pipelines.with_options(dataset)
