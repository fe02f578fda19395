# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of T5's tasks: TFDS's data sets, or plain files with their fields."""

from collections.abc import Sequence
import functools
import os

from absl import logging
import seqio
import tensorflow as tf

from t5wild.data import prepared_data
from t5wild.tasks.t5 import records


class T5Source(seqio.TfdsDataSource):
  """A data set by TFDS's name, wherever it is found.

  Looked for when it is first asked about, in the folder of --tfds_data_dir or
  else TFDS's own: in TFDS's form, or as plain files that have TFDS's fields.
  What is not there TFDS prepares, where it can.
  """

  reads_plain_files = True

  def __init__(
      self,
      tfds_name: str,
      splits: Sequence[str] | None = None,
  ):
    """Takes the name with its version, and the splits where not all."""
    super().__init__(tfds_name, splits=splits)
    self._name = tfds_name

  @property
  def splits(self):
    """Names of the splits that are asked for, else of those there are."""
    found = self._found()
    if self._splits or found is None or found.files is None:
      return super().splits
    return tuple(found.files)

  @property
  def tfds_dataset(self):
    """seqio's reader of TFDS; of another version where that alone is there."""
    found = self._found()
    if found is None or found.files is not None:
      return self._tfds_dataset
    name = self._name.partition(':')[0]
    data_dir = found.folder.removesuffix(os.path.join(name, found.version))
    return _reader_of(f'{name}:{found.version}', data_dir, self._name)

  def get_dataset(
      self,
      split: str | None = None,
      shuffle: bool = True,
      seed: int | None = None,
      shard_info: seqio.ShardInfo | None = None,
      **unused_kwargs,
  ) -> tf.data.Dataset:
    """One pass over the examples of a split, or of one host's files of it."""
    files = self._files(split or 'train')
    if files is None:
      return super().get_dataset(split, shuffle, seed, shard_info)
    if shard_info is not None:
      files = files[shard_info.index :: shard_info.num_shards]
    return records.make_dataset(files, shuffle=shuffle, seed=seed)

  def num_input_examples(self, split: str) -> int | None:
    """Number of examples of a split, by which mixtures may go."""
    files = self._files(split)
    if files is None:
      return super().num_input_examples(split)
    return _count(tuple(files))

  def list_shards(self, split: str) -> Sequence[str]:
    """The files of a split."""
    files = self._files(split)
    return super().list_shards(split) if files is None else files

  def _found(self) -> prepared_data.Prepared | None:
    return _find(self._name, self._tfds_dataset.data_dir)

  def _files(self, split: str) -> Sequence[str] | None:
    """Plain files of a split; None where TFDS reads the data.

    Raises:
      ValueError: the plain files have no such split.
    """
    found = self._found()
    if found is None or found.files is None:
      return None
    if split not in found.files:
      raise ValueError(
          f'{found.folder} has no files of the split {split!r}: expected one '
          f'of {sorted(found.files)}. Put {split}.jsonl there, or choose '
          'another split.'
      )
    return found.files[split]


@functools.cache
def _find(name: str, data_dir: str | None) -> prepared_data.Prepared | None:
  folders = prepared_data.data_dirs(data_dir and os.fspath(data_dir))
  found = prepared_data.find(name, folders)
  if found is not None and found.files is not None:
    logging.info('%s is read from the files in %s.', name, found.folder)
  return found


@functools.cache
def _count(files: tuple[str, ...]) -> int:
  return records.count(files)


@functools.cache
def _reader_of(name: str, data_dir: str, asked: str) -> seqio.LazyTfdsLoader:
  if name != asked:
    logging.warning('%s is not there: %s is read instead.', asked, name)
  return seqio.LazyTfdsLoader(name, data_dir=data_dir)
