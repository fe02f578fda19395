# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a reader of training batches is, and the check that a resume is exact.

A reader counts the batches it has handed out and remembers the checksum of the
last one. Brought back to a position, it must come to the same checksum.
"""

from collections.abc import Iterator, Mapping
import logging
from typing import Any, Protocol
import zlib

import numpy as np

Batch = dict[str, np.ndarray]
ElementSpec = Mapping[str, tuple[tuple[int, ...], np.dtype]]
# Key of a saved position that is the same on all hosts.
OF_ALL_HOSTS = 'of_all_hosts'


class OtherDataError(ValueError):
  """Processes of one run read different data."""


class Reader(Protocol):
  """Batches of this host, in an order that is a function of the config.

  Attributes:
    element_spec: (shape, dtype) of each feature, for this host's rows.
    promise: one sentence on what a resumed run may rely on.
    is_exact: whether a saved position is sure to be found again.
  """

  element_spec: ElementSpec
  promise: str
  is_exact: bool

  def __iter__(self) -> Iterator[Batch]:
    """Returns itself."""

  def __next__(self) -> Batch:
    """Returns this host's rows of the next global batch."""

  def state_dict(self) -> dict[str, Any]:
    """Position after the batches handed out, in numbers, strings and bytes.

    Cheap: what it refers to is not copied.
    """

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Goes to a position that `state_dict` gave."""


def checksum(batch: Mapping[str, np.ndarray]) -> int:
  """CRC-32 of a batch's bytes, features in the order of their names."""
  value = 0
  for name in sorted(batch):
    array = np.ascontiguousarray(batch[name])
    value = zlib.crc32(array.reshape(-1).view(np.uint8), value)
  return value


def check_same_batch(
    batch: Mapping[str, np.ndarray], *, expected: int, index: int, source: str
) -> None:
  """Refuses to go on when a batch read again is not what it was.

  Args:
    batch: the batch read again.
    expected: its checksum when the position was saved.
    index: its number, from 0.
    source: what is read, for the message.

  Raises:
    ValueError: where the checksums differ.
  """
  found = checksum(batch)
  if found == expected:
    return
  raise ValueError(
      f'batch {index} of {source}, read again, is not the batch of the '
      'saved run, so a resume would not be exact.\n'
      f'  saved checksum: {expected:#010x}\n'
      f'  checksum now:   {found:#010x}\n'
      'Expected the same files, task, lengths, BATCH_SIZE, rates of a mixture '
      'and library versions as when the checkpoint was written. Restore what '
      'has changed (of local text: TEXT, which is --text of quickstart; t5wild '
      'compare tells what of a recipe has), train on other data in '
      'another MODEL_DIR (quickstart: --model_dir), or start the data '
      'afresh: data.DatasetConfig.on_changed_data = "continue".'
  )


def check_last_batch(
    batch: Mapping[str, np.ndarray] | None,
    *,
    state: Mapping[str, Any],
    source: str,
    on_changed_data: str,
) -> None:
  """Checks the last batch read again, as the user wants it checked.

  Args:
    batch: the last batch read again; None where there was none to read.
    state: the saved position: 'batches' and the 'checksum' of the last one.
    source: what is read, for the message.
    on_changed_data: 'fail', or 'continue' to go on with a warning.

  Raises:
    ValueError: where the batch has changed and the policy is 'fail'.
  """
  if batch is None:
    return
  try:
    check_same_batch(
        batch,
        expected=state['checksum'],
        index=state['batches'] - 1,
        source=source,
    )
  except ValueError as error:
    if on_changed_data == 'fail':
      raise
    logging.warning('Going on with changed data: %s', error)


def slice_rows(
    batch: Mapping[str, np.ndarray], *, shard_id: int, num_shards: int
) -> Batch:
  """One host's rows of a global batch: an equal, contiguous share."""
  rows = {}
  for name, array in batch.items():
    share = array.shape[0] // num_shards
    rows[name] = array[shard_id * share : (shard_id + 1) * share]
  return rows
