# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Gin files of a model that came from Hugging Face.

`model.gin` has its network and vocabulary, to go before a run's gin file;
`config.gin` is what a run would have left, so that `--run` finds the model.
"""

from collections.abc import Mapping
import os
import re
from typing import Any

from t5wild.checkpoints import hf_tokenizers

FILE = 'model.gin'
_HEAD = '''# The network of {source}, written by t5wild convert.
#
# It goes before a run's gin file:
#   t5wild train --gin_file={file} --gin_file=runs/finetune.gin ...
from __gin__ import dynamic_registration

import seqio
from t5wild.networks import {module} as network

include '{base}'

'''
_RUN = '''
# Not a run's, but what t5wild infer --run reads of one.
from t5wild import partitioning
from t5wild import train as train_script

DROPOUT_RATE = 0.0
train_script.train:
  model = %MODEL
  partitioner = @partitioning.PjitPartitioner()
partitioning.PjitPartitioner.num_partitions = 1
'''


def make(
    network: Mapping[str, Any],
    *,
    source: str,
    model_dir: str,
    folder: str,
    tokenizer: Mapping[str, bytes],
) -> dict[str, str]:
  """Returns texts by their names.

  Args:
    network: Values of `TransformerConfig` or `T5Config`.
    source: The model, to be named.
    model_dir: Where the files will lie.
    folder: Where the tokenizer will lie.
    tokenizer: Its files by name.
  """
  is_decoder = 'num_layers' in network
  text = _HEAD.format(
      source=source,
      file=os.path.join(model_dir, FILE),
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
  return {FILE: text, 'config.gin': text + _RUN}


def _count_sentinels(tokenizer: Mapping[str, bytes]) -> int:
  """The number of sentinels by what is written of the first and the last."""
  text = b''.join(tokenizer.values())
  numbers = re.findall(rb'<extra_id_(\d{1,4})>', text)
  return 1 + max(map(int, numbers), default=-1)


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
      extra = _count_sentinels(tokenizer)
      lines += f'seqio.SentencePieceVocabulary.extra_ids = {extra}\n'
    return lines
  if b'ByT5Tokenizer' in tokenizer.get(hf_tokenizers.CONFIG, b''):
    return (
        'VOCABULARY = @seqio.ByteVocabulary()\n'
        f'seqio.ByteVocabulary.extra_ids = {_count_sentinels(tokenizer)}\n'
    )
  return (
      '# The model came without a SentencePiece file: set VOCABULARY, of '
      f'{network["vocab_size"]} tokens at most.\n'
  )
