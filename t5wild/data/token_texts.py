# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tokens as text that shows what is no text: ends, sentinels, unknown ids."""

from collections.abc import Iterator, Sequence
from typing import Any
import unicodedata

TEXT, SENTINEL, END, UNKNOWN, PADDING = (
    'text', 'sentinel', 'end', 'unknown', 'padding'
)
_VISIBLE = {'\n': '↵', '\t': '⇥', '\x7f': '␡'}
_FIRST_BYTE = 3  # id of byte 0 in a vocabulary of bytes
_TRIED = 64  # pieces among which one is a text
# Signs that move or hide their neighbours, or end a line.
_HIDDEN = ('Cc', 'Cf', 'Zl', 'Zp')


def kind_of(token: int, vocabulary: Any) -> str:
  """What a token is: one of the names above."""
  size = int(vocabulary.vocab_size)
  if token == vocabulary.pad_id:
    return PADDING
  if token == vocabulary.eos_id:
    return END
  if token >= size or token == getattr(vocabulary, 'unk_id', None):
    return UNKNOWN
  if token >= size - int(getattr(vocabulary, 'extra_ids', 0) or 0):
    return SENTINEL
  return TEXT


def parts_of(
    tokens: Sequence[int], vocabulary: Any
) -> Iterator[tuple[str, str]]:
  """Yields (kind, text) of runs of tokens, so that nothing is left out."""
  run: list[int] = []
  is_first = True
  for token in tokens:
    kind = kind_of(token, vocabulary)
    if kind == TEXT:
      run.append(token)
      continue
    if run:
      yield TEXT, _decode(run, vocabulary, is_first=is_first)
      run = []
    is_first = False
    yield kind, _mark(token, kind, vocabulary)
  if run:
    yield TEXT, _decode(run, vocabulary, is_first=is_first)


def _decode(
    tokens: Sequence[int], vocabulary: Any, *, is_first: bool
) -> str:
  if not is_bytes(vocabulary):
    # SentencePiece drops the space before the first word that it is given.
    begins_word = not is_first and _begins_word(tokens[0], vocabulary)
    return ' ' * begins_word + vocabulary.decode(tokens)
  # What is no UTF-8, such as half a character, is shown, too.
  data = bytes(token - _FIRST_BYTE for token in tokens)
  return data.decode('utf-8', 'replace')


def _mark(token: int, kind: str, vocabulary: Any) -> str:
  if kind == SENTINEL:
    return f'<{int(vocabulary.vocab_size) - 1 - token}>'
  return {END: '</s>', PADDING: '<pad>'}.get(kind) or f'<?{token}>'


def name_of(token: int, vocabulary: Any) -> str:
  """A token alone, with what cannot be seen made visible."""
  kind = kind_of(token, vocabulary)
  if kind != TEXT:
    return _mark(token, kind, vocabulary)
  if is_bytes(vocabulary) and token - _FIRST_BYTE >= 0x80:
    return f'byte {token - _FIRST_BYTE:#04x}'
  text = visible(vocabulary.decode([token]))
  if not is_bytes(vocabulary) and _begins_word(token, vocabulary):
    return f'▁{text}'
  return '␣' if text == ' ' else text or f'#{token}'


def _begins_word(token: int, vocabulary: Any) -> bool:
  """Whether a piece has a space before it, which shows where it is second."""
  for first in range(_FIRST_BYTE, _FIRST_BYTE + _TRIED):
    before = vocabulary.decode([first])
    if before.strip():
      return vocabulary.decode([first, int(token)]).startswith(f'{before} ')
  return False


def is_bytes(vocabulary: Any) -> bool:
  """Whether a vocabulary is one of bytes, by the number of its ids."""
  extra = int(getattr(vocabulary, 'extra_ids', 0) or 0)
  return int(vocabulary.vocab_size) - extra == _FIRST_BYTE + 256


def visible(text: str) -> str:
  """A text on one line, in which nothing moves or hides."""
  return text if text.isprintable() else ''.join(map(_visible, text))


def _visible(sign: str) -> str:
  if sign in _VISIBLE:
    return _VISIBLE[sign]
  if sign < ' ':
    return chr(0x2400 + ord(sign))  # its picture
  if unicodedata.category(sign) in _HIDDEN:
    return f'⟨{ord(sign):04X}⟩'
  return sign
