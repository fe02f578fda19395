# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of an evaluation set, the same ones every time."""

from collections.abc import Iterator
import itertools
from typing import Any

import numpy as np

from t5wild.data import pipelines
from t5wild.data import reader_protocol


class EvalBatches:
  """Batches of an evaluation set: the same ones every time it is iterated."""

  def __init__(self, dataset: Any, *, use_memory_cache: bool):
    """Takes a finite tf.data pipeline; keeps its batches if told to."""
    self._dataset = dataset
    self._use_memory_cache = use_memory_cache
    self._kept: list[reader_protocol.Batch] | None = None

  @property
  def element_spec(self) -> reader_protocol.ElementSpec:
    """(shape, dtype) of each feature, for this host's rows."""
    return {
        name: (tuple(spec.shape), np.dtype(spec.dtype.as_numpy_dtype))
        for name, spec in self._dataset.element_spec.items()
    }

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Yields the batches from the first one."""
    if self._kept is not None:
      yield from self._kept
      return
    kept = []
    for batch in pipelines.PipelineIterator(self._dataset):
      if self._use_memory_cache:
        kept.append(batch)
      yield batch
    if self._use_memory_cache:
      self._kept = kept


class FirstBatches:
  """Batches from the first on; always the same ones."""

  def __init__(self, reader: reader_protocol.Reader, *, count: int):
    """Takes a reader at its beginning."""
    self._reader = reader
    self._start = reader.state_dict()
    self._count = count
    self.element_spec = reader.element_spec

  def __iter__(self) -> Iterator[reader_protocol.Batch]:
    """Yields them from the first one."""
    self._reader.load_state_dict(self._start)
    yield from itertools.islice(self._reader, self._count)
