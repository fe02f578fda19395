# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A gin file of the network that a model of Hugging Face's is of."""

from collections.abc import Mapping
import os
from typing import Any

from t5wild.checkpoints import hf_tokenizers

FILE = 'model.gin'
_BYT5_SENTINELS = 125
_HEAD = '''# The network of {source}, written by t5wild convert.
#
# It goes before a run's gin file:
#   t5wild train --gin_file={file} --gin_file=runs/finetune.gin ...
from __gin__ import dynamic_registration

import seqio
from t5wild.networks import {module} as network

include '{base}'

'''


def make(
    network: Mapping[str, Any],
    *,
    source: str,
    folder: str,
    tokenizer: Mapping[str, bytes],
    is_decoder: bool,
) -> str:
  """Returns the text.

  Args:
    network: Values of `TransformerConfig` or `T5Config`.
    source: The model, to be named.
    folder: Where the file and the tokenizer will lie.
    tokenizer: Its files by name.
    is_decoder: Whether it is a decoder alone.
  """
  text = _HEAD.format(
      source=source,
      file=os.path.join(folder, FILE),
      module='decoder_only' if is_decoder else 'transformer',
      base='models/decoder_lm/base.gin'
      if is_decoder
      else 'models/t5_1_1/base.gin',
  )
  text += _vocabulary(folder, network, tokenizer)
  name = 'TransformerConfig' if is_decoder else 'T5Config'
  text += f'\nnetwork.{name}:\n'
  for key, value in network.items():
    text += f'  {key} = {value!r}\n'
  return text


def _vocabulary(
    folder: str, network: Mapping[str, Any], tokenizer: Mapping[str, bytes]
) -> str:
  name = next(
      (n for n in (hf_tokenizers.SENTENCEPIECE, 'tokenizer.model')
       if n in tokenizer),
      None,
  )  # fmt: skip
  if name is not None:
    path = os.path.join(folder, name)
    lines = (
        'VOCABULARY = @seqio.SentencePieceVocabulary()\n'
        'seqio.SentencePieceVocabulary.sentencepiece_model_file = '
        f'{path!r}\n'
    )
    if name == hf_tokenizers.SENTENCEPIECE:
      sentinels = b'extra_id_0' in tokenizer.get(hf_tokenizers.CONFIG, b'')
      extra = 100 if sentinels else 0
      lines += f'seqio.SentencePieceVocabulary.extra_ids = {extra}\n'
    return lines
  if b'ByT5Tokenizer' in tokenizer.get(hf_tokenizers.CONFIG, b''):
    return (
        'VOCABULARY = @seqio.ByteVocabulary()\n'
        f'seqio.ByteVocabulary.extra_ids = {_BYT5_SENTINELS}\n'
    )
  return (
      '# The model came without a SentencePiece file: set VOCABULARY, of '
      f'{network["vocab_size"]} tokens at most.\n'
  )
