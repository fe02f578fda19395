# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of own data, for the tasks of `local_text` and `pairs`.

In gin:

    from t5wild.tasks import sources
    TEXT = @sources.hugging_face()
    sources.hugging_face.dataset = '/data/wikitext'

Rows of files, Hugging Face data sets, TFDS data sets, caches of seqio.
Importing this module registers nothing and imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
import os
from typing import Any

from t5wild.data import hugging_face as hugging_face_lib
from t5wild.data import seqio_caches
from t5wild.data import table_reader
from t5wild.data import tables

Paths = str | Sequence[str]


def files(
    paths: Paths | Mapping[str, Paths],
    *,
    kind: str | None = None,
    held_out_fraction: float = 0.05,
    on_corrupt: str = 'fail',
) -> Any:
  """Rows of JSON lines, Parquet, Arrow, or TFRecord of tf.Example.

  Args:
    paths: files, folders or globs of the split 'train', or of each split by
      name.
    kind: 'jsonl', 'parquet', 'arrow' or 'tfrecord'; None to go by the names
      of the files.
    held_out_fraction: fraction of the rows of 'train' that are 'validation',
      where no files of that split are given; 0 for none.
    on_corrupt: 'fail' or 'skip', for a row that cannot be read.

  Returns:
    A seqio.DataSource.

  Raises:
    FileNotFoundError: for a path that does not exist.
    ValueError: for files of another kind, without a row, or damaged.
  """
  by_split = paths if isinstance(paths, Mapping) else {tables.TRAIN: paths}
  found = {
      split: tables.find_files(each, kind=kind)
      for split, each in by_split.items()
  }
  return _source(
      f'{paths}', found, held_out_fraction=held_out_fraction,
      on_corrupt=on_corrupt,
  )  # fmt: skip


def hugging_face(
    dataset: str,
    *,
    config: str | None = None,
    held_out_fraction: float = 0.05,
    on_corrupt: str = 'fail',
) -> Any:
  """A Hugging Face data set on this machine; `datasets` is not needed.

  Class labels are read as their names.

  Args:
    dataset: what save_to_disk wrote, a clone from the hub, a folder of files
      such as train-00000-of-00001.parquet; or the name of a data set in the
      cache of load_dataset or of the hub's client ($HF_HOME).
    config: which of the data set, where it has several.
    held_out_fraction: see `files`.
    on_corrupt: see `files`.

  Returns:
    A seqio.DataSource.

  Raises:
    FileNotFoundError: it is not there.
    ValueError: there are several, another version's, or damaged files.
  """
  return _source(
      dataset,
      hugging_face_lib.find(dataset, config=config),
      held_out_fraction=held_out_fraction,
      on_corrupt=on_corrupt,
  )


def seqio_cache(
    folder: str, *, held_out_fraction: float = 0.0, on_corrupt: str = 'fail'
) -> Any:
  """Tokens that seqio_cache_tasks wrote, as they are; no task is needed.

  A registered task reads its own cache by USE_CACHED_TASKS = True.

  Args:
    folder: of one task: .../cached_tasks/TASK.
    held_out_fraction: see `files`.
    on_corrupt: see `files`.

  Returns:
    A seqio.DataSource.

  Raises:
    FileNotFoundError: it is not there, or a file of it is missing.
    ValueError: it is not finished, or damaged.
  """
  cache = seqio_caches.find(folder)
  return _source(
      os.path.basename(os.path.normpath(folder)),
      cache.files,
      held_out_fraction=held_out_fraction,
      on_corrupt=on_corrupt,
      kinds=cache.features,
  )


def tfds(
    name: str,
    *,
    data_dir: str | None = None,
    splits: Sequence[str] | Mapping[str, str] | None = None,
) -> Any:
  """A data set of TFDS; class labels are read as their names.

  Args:
    name: such as 'glue/cola:1.0.0'.
    data_dir: where TFDS data sets lie, None for TFDS's own folder (and for
      what --tfds_data_dir says, which comes first).
    splits: None for those it has; or which TFDS split or slice each one is,
      such as {'train': 'train[:95%]', 'validation': 'train[95%:]'}.

  Returns:
    A seqio.DataSource.
  """
  from t5wild.tasks import tfds_source

  return tfds_source.LabelledTfdsSource(
      tfds_name=name, tfds_data_dir=data_dir, splits=splits
  )


def _source(
    name: str,
    found: Mapping[str, Sequence[tables.TableFile]],
    *,
    held_out_fraction: float,
    on_corrupt: str,
    kinds: Mapping[str, str] | None = None,
) -> Any:
  from t5wild.tasks import table_source

  table = table_reader.open_table(
      name, found, held_out_fraction=held_out_fraction, kinds=kinds
  )
  return table_source.TableSource(table, on_corrupt=on_corrupt)
