# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer files that go with a model for `transformers`.

Of a model of Hugging Face's they are copied; of a vocabulary of ours they are
written, where `transformers` has a tokenizer that gives the same tokens.
"""

from collections.abc import Mapping
import json
import os
from typing import Any

from etils import epath

CONFIG = 'tokenizer_config.json'
SENTENCEPIECE = 'spiece.model'
# What is copied; other files may be programs.
_COPIED = (
    'added_tokens.json', 'chat_template.jinja', CONFIG,
    'generation_config.json', 'merges.txt', 'special_tokens_map.json',
    SENTENCEPIECE, 'tokenizer.json', 'tokenizer.model', 'vocab.json',
)  # fmt: skip
_MOST_BYTES = 500_000_000
_SPECIAL = {
    'pad_token': '<pad>', 'eos_token': '</s>', 'unk_token': '<unk>',
}  # fmt: skip
_NUM_BYTES = 256
_UNIGRAM = 1  # SentencePiece's number of its kind of model.


def copy(folder: str | os.PathLike[str]) -> dict[str, bytes]:
  """Returns the tokenizer files of a folder, and its generation_config.json."""
  found = {}
  for name in _COPIED:
    path = os.path.join(folder, name)
    if os.path.isfile(path) and os.path.getsize(path) <= _MOST_BYTES:
      with open(path, 'rb') as file:
        found[name] = file.read()
  if CONFIG in found:
    found[CONFIG] = _without_code(found[CONFIG])
  return found


def _without_code(text: bytes) -> bytes:
  """The same settings without names of somebody's programs."""
  try:
    content = json.loads(text)
  except ValueError:
    return text
  if isinstance(content, dict) and content.pop('auto_map', None):
    return _json(content)
  return text


def make(vocabulary: Any) -> tuple[dict[str, bytes], str]:
  """Writes the files of a vocabulary.

  Args:
    vocabulary: seqio's, or ours.

  Returns:
    Files by name, none where transformers has no tokenizer that is sure to
    give the same tokens; and what to tell of them.
  """
  kind = type(vocabulary).__name__
  if kind == 'ByteVocabulary':
    return {CONFIG: _json(_byte_config(vocabulary))}, 'a ByT5Tokenizer'
  path = getattr(vocabulary, 'sentencepiece_model_file', None)
  if path is None:
    return {}, f'no tokenizer, which transformers lacks for {kind}: write one'
  model = epath.Path(path).read_bytes()
  if not _is_unigram(vocabulary):
    return {}, (
        f'no tokenizer: {path} is no unigram model, of which transformers '
        'makes the same tokens; write one'
    )
  config = {
      'tokenizer_class': 'T5Tokenizer',
      'extra_ids': vocabulary.extra_ids,
      'additional_special_tokens': _sentinels(vocabulary.extra_ids),
      **_SPECIAL,
  }
  return {SENTENCEPIECE: model, CONFIG: _json(config)}, 'a T5Tokenizer'


def tokens(vocabulary: Any) -> dict[str, int]:
  """Returns the ids that config.json names."""
  found = {
      'eos_token_id': vocabulary.eos_id, 'pad_token_id': vocabulary.pad_id,
  }  # fmt: skip
  # Decoding begins with padding, as training does.
  return found | {'decoder_start_token_id': vocabulary.pad_id}


def _byte_config(vocabulary: Any) -> dict[str, Any]:
  """transformers numbers sentinels upwards if not told; T5 and we downwards."""
  first = len(_SPECIAL) + _NUM_BYTES
  names = dict(enumerate(_SPECIAL.values()))
  for number, name in enumerate(_sentinels(vocabulary.extra_ids)):
    names[first + vocabulary.extra_ids - 1 - number] = name
  flags = dict.fromkeys(
      ('lstrip', 'rstrip', 'normalized', 'single_word'), False
  )
  return {
      'tokenizer_class': 'ByT5Tokenizer',
      'extra_ids': vocabulary.extra_ids,
      'additional_special_tokens': _sentinels(vocabulary.extra_ids),
      'added_tokens_decoder': {
          str(token): {'content': name, 'special': True, **flags}
          for token, name in sorted(names.items())
      },
      **_SPECIAL,
  }


def _sentinels(count: int) -> list[str]:
  return [f'<extra_id_{number}>' for number in range(count)]


def _is_unigram(vocabulary: Any) -> bool:
  """Whether scores choose the pieces, as in T5's models.

  Models of merged pairs have scores 0, -1, -2, ... in order of the merges.
  """
  processor = vocabulary.tokenizer
  scores = [
      processor.GetScore(piece)
      for piece in range(processor.GetPieceSize())
      if not (processor.IsControl(piece) or processor.IsUnknown(piece))
  ]
  return any(score % 1 for score in scores)


def _json(content: Mapping[str, Any]) -> bytes:
  return (json.dumps(content, indent=2, sort_keys=True) + '\n').encode()
