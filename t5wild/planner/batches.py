# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The shape of a recipe's batches, found without reading its data.

A plan is made on machines that do not have the data: where the model takes its
rows through one of the converters we know, they follow from the lengths.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from t5wild.data import datasets
from t5wild.data import model_rows
from t5wild.data import rows as rows_lib
from t5wild.models import seqio_class
from t5wild.partitioning import partitioner as partitioner_lib

Batch = dict[str, jax.ShapeDtypeStruct]


def abstract_batch(
    *,
    model: Any,
    dataset_cfg: Any,
    partitioner: partitioner_lib.BasePartitioner,
    get_dataset_fn: Callable[..., Any] | None = None,
) -> Batch:
  """Returns the global batch without its numbers.

  Args:
    model: what takes it.
    dataset_cfg: a `data.DatasetConfig`, or what stands in its place.
    partitioner: says how the batch is split, and refuses what does not divide.
    get_dataset_fn: T5X's; data of its own are opened to see their shape.

  Raises:
    ValueError: the batch does not divide over the mesh, or features have no
      length.
  """
  layout = partitioner.get_data_layout(dataset_cfg.batch_size)
  converter = seqio_class.converter_class_of(model)
  lengths = getattr(dataset_cfg, 'task_feature_lengths', None)
  # A config that makes its own reader (synthetic batches) also says what rows.
  packs = hasattr(dataset_cfg, 'pack') and lengths is not None
  if packs and get_dataset_fn is None:
    rows = _one_row(converter, lengths=lengths, pack=dataset_cfg.pack)
  else:
    rows = datasets.make_train_reader(
        dataset_cfg,
        data_layout=layout,
        feature_converter_cls=converter,
        get_dataset_fn=get_dataset_fn,
    ).element_spec
  return {
      name: jax.ShapeDtypeStruct((layout.batch_size, *shape[1:]), dtype)
      for name, (shape, dtype) in rows.items()
  }


def _one_row(
    converter: Any, *, lengths: Mapping[str, int], pack: bool
) -> dict[str, tuple[tuple[int, ...], Any]]:
  """Name -> (shape, dtype) of a row made of an example of one token."""
  layout = model_rows.find_layout(converter, lengths=lengths, pack=pack)
  one = rows_lib.Rows(values=np.ones(1, np.int32), lengths=np.ones(1, np.int64))
  row = model_rows.RowsOfExamples(
      examples=dict.fromkeys(layout.features, one),
      row_starts=np.array([0, 1]),
  ).make(0, 1, layout=layout)
  return {name: (array.shape, array.dtype) for name, array in row.items()}
