# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Batches that hold every example of a task once, for exact figures."""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import itertools
from typing import Any

import numpy as np

from t5wild.data import argument_checks
from t5wild.data import datasets
from t5wild.data import pipelines
from t5wild.data import providers
from t5wild.data import reader_protocol


@dataclasses.dataclass(frozen=True)
class TargetCounts:
  """How much text a loss is of.

  Attributes:
    num_tokens: target tokens that are no padding.
    num_bytes: bytes of their decoded text, in UTF-8.
  """

  num_tokens: int
  num_bytes: int


class WholeBatches:
  """All examples of one task once, the same each time it is iterated.

  The last batch is filled up with rows of padding, which no metric counts.
  """

  def __init__(
      self,
      cfg: datasets.DatasetConfig,
      *,
      task: Any,
      rows: np.ndarray | slice,
      feature_converter_cls: Callable[..., Any],
      num_batches: int | None = None,
  ):
    """Opens the data set and reads nothing but, without lengths, these.

    Args:
      cfg: what to read; `mixture_or_task_name` and `shuffle` do not count.
      task: the seqio task.
      rows: which rows of a global batch this host gets.
      feature_converter_cls: class of seqio feature converters.
      num_batches: how many batches; None is all there are.
    """
    lengths = cfg.task_feature_lengths or _longest(cfg, task=task)
    self._rows = rows
    self._batch_size = cfg.batch_size
    self._num_batches = num_batches
    dataset = datasets.get_dataset(
        dataclasses.replace(
            cfg,
            mixture_or_task_name=task,
            task_feature_lengths=lengths,
            batch_size=1,
            shuffle=False,
            seed=cfg.seed or 0,
        ),
        shard_id=0,
        num_shards=1,
        feature_converter_cls=feature_converter_cls,
        num_epochs=1,
    )
    self._dataset = pipelines.with_options(
        dataset.unbatch().batch(cfg.batch_size)
    )
    self._vocabulary = task.output_features['targets'].vocabulary
    self._counts: TargetCounts | None = None

  @property
  def element_spec(self) -> reader_protocol.ElementSpec:
    """(shape, dtype) of each feature of a global batch."""
    return {
        name: (
            (self._batch_size, *spec.shape[1:]),
            np.dtype(spec.dtype.as_numpy_dtype),
        )
        for name, spec in self._dataset.element_spec.items()
    }

  def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
    """Yields this host's rows of the batches, from the first one."""
    for batch in self._global_batches():
      yield {
          name: _filled_up(array, self._batch_size)[self._rows]
          for name, array in batch.items()
      }

  def target_counts(self) -> TargetCounts:
    """Counts the targets; reads the data once more the first time."""
    if self._counts is None:
      num_tokens = num_bytes = 0
      for batch in self._global_batches():
        for tokens in _targets_of(batch):
          num_tokens += len(tokens)
          text = self._vocabulary.decode(tokens.tolist())
          num_bytes += len(text.encode('utf-8', 'surrogateescape'))
      self._counts = TargetCounts(num_tokens, num_bytes)
    return self._counts

  def _global_batches(self) -> Iterator[Mapping[str, np.ndarray]]:
    return itertools.islice(
        pipelines.PipelineIterator(self._dataset), self._num_batches
    )


def open_whole_batches(
    cfg: datasets.DatasetConfig,
    *,
    rows: np.ndarray | slice,
    feature_converter_cls: Callable[..., Any],
    num_batches: int | None = None,
) -> dict[str, WholeBatches]:
  """Opens each task of a task or mixture that has the split, by name.

  Raises:
    ValueError: no such task or split, or features that the converter needs and
      the task or the lengths lack.
  """
  provider = datasets.open_provider(cfg)
  return {
      task.name: WholeBatches(
          cfg,
          task=task,
          rows=rows,
          feature_converter_cls=feature_converter_cls,
          num_batches=num_batches,
      )
      for task in providers.subtasks_of(provider)
      if cfg.split in task.splits
  }


def check_features(
    cfg: datasets.DatasetConfig, *, feature_converter_cls: Callable[..., Any]
) -> None:
  """Refuses tasks, or lengths, without the features that a model needs."""
  provider = datasets.open_provider(cfg)
  argument_checks.check_features(
      converter=feature_converter_cls(pack=False),
      lengths=cfg.task_feature_lengths or dict(provider.output_features),
      task=provider,
  )


def _longest(cfg: datasets.DatasetConfig, *, task: Any) -> dict[str, int]:
  """Length of the longest of each feature in the split."""
  dataset = task.get_dataset(
      None,
      split=cfg.split,
      use_cached=cfg.use_cached,
      shuffle=False,
      seed=cfg.seed or 0,
  )
  longest = dict.fromkeys(task.output_features, 1)
  for example in dataset.as_numpy_iterator():
    for name in longest:
      longest[name] = max(longest[name], len(example[name]))
  return longest


def _filled_up(array: np.ndarray, num_rows: int) -> np.ndarray:
  padding = [(0, num_rows - len(array)), *[(0, 0)] * (array.ndim - 1)]
  return np.pad(array, padding)


def _targets_of(batch: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
  """The weighted target tokens of each example: [length]."""
  targets = batch['decoder_target_tokens']
  weights = batch.get('decoder_loss_weights')
  counts = targets != 0
  if weights is not None:
    counts = weights > 0
  # One example at a time: decoding ends at the first end of sentence.
  segments = batch.get('decoder_segment_ids', counts)
  for row, is_counted, ids in zip(targets, counts, segments, strict=True):
    for segment in np.unique(ids[is_counted]):
      yield row[is_counted & (ids == segment)]
