# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Vocabularies without TensorFlow: seqio's ids, encoded and decoded in Python.

A vocabulary is any object with `encode`, `decode`, `vocab_size`, `eos_id` and
`pad_id`; seqio's are such objects where seqio is there.
"""

from collections.abc import Iterable
import re
from typing import Any

NUM_SPECIAL_IDS = 3  # padding, end of sequence, unknown
_NUM_BYTES = 256

_SENTINEL = re.compile(r'<extra_id_([0-9]{1,4})>')


class ByteVocabulary:
  """Bytes of UTF-8 plus 3, as seqio.ByteVocabulary (the vocabulary of ByT5).

  Ids: 0 padding, 1 end of sequence, 2 unknown, 3 to 258 the bytes, then
  `extra_ids` sentinels. It equals a seqio.ByteVocabulary with as many.
  """

  def __init__(self, extra_ids: int = 0):
    """Takes the number of sentinels."""
    if extra_ids < 0:
      raise ValueError(
          f'extra_ids is {extra_ids}: expected 0 or more sentinels. ByT5 has '
          '125, which makes 384 ids in all.'
      )
    self.extra_ids = extra_ids

  pad_id = 0
  eos_id = 1
  unk_id = 2
  bos_id = None

  @property
  def vocab_size(self) -> int:
    """Number of ids, sentinels included."""
    return NUM_SPECIAL_IDS + _NUM_BYTES + self.extra_ids

  def encode(self, text: str | bytes) -> list[int]:
    """Ids of the text, without end of sequence."""
    data = text.encode('utf-8') if isinstance(text, str) else text
    return [byte + NUM_SPECIAL_IDS for byte in data]

  def decode(self, ids: Iterable[int]) -> str:
    """Text up to the end of sequence; ids that are no byte are left out."""
    data = bytearray()
    for token in ids:
      if token == self.eos_id:
        break
      if NUM_SPECIAL_IDS <= token < NUM_SPECIAL_IDS + _NUM_BYTES:
        data.append(int(token) - NUM_SPECIAL_IDS)
    return data.decode('utf-8', errors='ignore')

  def __eq__(self, other: object) -> bool:
    """True for any byte vocabulary of as many sentinels, seqio's too."""
    return (
        type(other).__name__ == 'ByteVocabulary'
        and getattr(other, 'extra_ids', None) == self.extra_ids
    )

  def __hash__(self) -> int:
    """Equal vocabularies of this class have equal hashes."""
    return hash(('ByteVocabulary', self.extra_ids))

  def __repr__(self) -> str:
    """Shows how to make it."""
    return f'ByteVocabulary(extra_ids={self.extra_ids})'


def in_words(vocabulary: Any) -> str:
  """A vocabulary as errors name it: not by its address in memory."""
  kind = type(vocabulary).__name__
  path = getattr(vocabulary, 'sentencepiece_model_file', None)
  # The words of seqio's own need the file, which may be what is missing.
  text = str(vocabulary) if path is None else '<'
  if not text.startswith('<'):
    return text
  given = [] if path is None else [repr(str(path))]
  extra_ids = getattr(vocabulary, 'extra_ids', None)
  if isinstance(extra_ids, int):
    given.append(f'extra_ids={extra_ids}')
  return f'{kind}({", ".join(given)})'


def are_equal(left: Any, right: Any) -> bool:
  """Says whether two vocabularies are the same, whichever library's each is.

  Both ways round: seqio's equality knows its own classes only. SentencePiece
  models are the same where their pieces are, wherever each was read from: T5
  has one with its sentinels in the file, and one to which they are added.
  """
  if left == right or right == left:
    return True
  models = [getattr(side, 'sp_model', None) for side in (left, right)]
  return bool(models[0]) and models[0] == models[1]


def encode_as_written(text: str, *, vocabulary: Any) -> list[int]:
  """Tokens of a text in which `<extra_id_N>` is the sentinel of that number.

  SentencePiece vocabularies of T5 read it so themselves; here bytes do, too.
  What is no sentinel of the vocabulary is text.

  Args:
    text: such as 'def <extra_id_0>(self):'.
    vocabulary: 0 is its highest id.
  """
  if type(vocabulary).__name__ != 'ByteVocabulary':
    return [int(token) for token in vocabulary.encode(text)]
  tokens: list[int] = []
  end = 0
  for match in _SENTINEL.finditer(text):
    if int(match[1]) < vocabulary.extra_ids:
      tokens += vocabulary.encode(text[end : match.start()])
      tokens.append(vocabulary.vocab_size - 1 - int(match[1]))
      end = match.end()
  return [*map(int, tokens), *map(int, vocabulary.encode(text[end:]))]


def decode_as_written(ids: Iterable[int], *, vocabulary: Any) -> str:
  """The text of tokens, with the sentinels of bytes as `<extra_id_N>`."""
  if type(vocabulary).__name__ != 'ByteVocabulary':
    return vocabulary.decode([int(token) for token in ids])
  return decode_with_sentinels(
      ids, vocabulary=vocabulary, mark='<extra_id_{}>'
  )


def decode_with_sentinels(
    ids: Iterable[int], *, vocabulary: Any, mark: str = '<{}>'
) -> str:
  """Text up to the end of sequence, with each sentinel shown by its number.

  Args:
    ids: tokens; padding is passed over.
    vocabulary: its `extra_ids` highest ids are the sentinels.
    mark: how a sentinel is shown; {} is its number, 0 for the highest id.

  Returns:
    The text.
  """
  first = vocabulary.vocab_size - vocabulary.extra_ids
  parts: list[str] = []
  run: list[int] = []
  for token in (int(token) for token in ids):
    if token == vocabulary.eos_id:
      break
    if token < first:
      run.append(token)
      continue
    parts.append(vocabulary.decode(run))
    parts.append(mark.format(vocabulary.vocab_size - 1 - token))
    run = []
  parts.append(vocabulary.decode(run))
  return ''.join(parts)
