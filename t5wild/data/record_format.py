# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How one example lies in a record: a head of numbers, then its tokens.

Little-endian: uint64 number of its document, uint32 number of its piece of
that document, uint32 1 for the last piece, uint32 tokens of each feature, then
each feature's tokens. Thousands of records are decoded at once.
"""

from collections.abc import Mapping, Sequence
import dataclasses

import numpy as np

from t5wild.data import rows as rows_lib

_FIXED_BYTES = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schema:
  """What the records of a cache hold.

  Attributes:
    features: names, in the order in which they lie in a record.
    dtype: of the tokens, 'uint16' or 'int32'.
  """

  features: tuple[str, ...]
  dtype: str

  def encode(
      self,
      example: Mapping[str, np.ndarray],
      *,
      document: int,
      piece: int = 0,
      is_last: bool = True,
  ) -> bytes:
    """The record of an example, or of a piece of a document."""
    parts = [np.asarray(example[name], self.dtype) for name in self.features]
    return b''.join([
        np.uint64(document).tobytes(),
        np.array(
            [piece, is_last, *(part.size for part in parts)], np.uint32
        ).tobytes(),
        *(part.tobytes() for part in parts),
    ])

  def decode(self, records: Sequence[bytes]) -> 'Records':
    """The examples of some records."""
    head = _FIXED_BYTES + 4 * len(self.features)
    numbers = np.frombuffer(
        b''.join([record[:head] for record in records]), np.uint32
    ).reshape(-1, head // 4)
    tokens = np.frombuffer(
        b''.join([record[head:] for record in records]), self.dtype
    ).astype(np.int32)
    lengths = numbers[:, 4:].astype(np.int64)  # [records, features]
    parts = rows_lib.Rows(values=tokens, lengths=lengths.reshape(-1))
    places = np.arange(lengths.size).reshape(lengths.shape)
    return Records(
        documents=np.ascontiguousarray(numbers[:, :2])
        .view(np.uint64)[:, 0]
        .astype(np.int64),
        pieces=numbers[:, 2].astype(np.int64),
        is_last=numbers[:, 3] > 0,
        features={
            # One feature is all there is: nothing to pick apart.
            name: parts
            if len(self.features) == 1
            else rows_lib.take(parts, places[:, index])
            for index, name in enumerate(self.features)
        },
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Records:
  """Examples as they lie in a cache.

  Attributes:
    documents: int64 [records], numbers of the documents in their shard.
    pieces: int64 [records], which piece of its document each is.
    is_last: bool [records], whether a document ends here.
    features: tokens by name, without end of sequence where an objective is
      still to come.
  """

  documents: np.ndarray
  pieces: np.ndarray
  is_last: np.ndarray
  features: Mapping[str, rows_lib.Rows]
