# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The vocabulary by which files are shown, without seqio."""

from t5wild import vocabulary_files
from t5wild.data import fingerprints
from t5wild.data import vocabularies

_BYTE_SENTINELS = 125
_SENTENCEPIECE_SENTINELS = 100


def load(
    path: str | None, *, extra_ids: int | None = None
) -> vocabularies.ByteVocabulary | fingerprints.StoredVocabulary:
  """A SentencePiece model with sentinels behind it; bytes where path is None.

  Args:
    path: of the model.
    extra_ids: how many sentinels; None: as many as T5 and ByT5 have.

  Raises:
    FileNotFoundError: there is no such model.
    ValueError: it is none.
  """
  if path is None:
    return vocabularies.ByteVocabulary(
        _BYTE_SENTINELS if extra_ids is None else extra_ids
    )
  path = vocabulary_files.local_file(path)
  import sentencepiece

  model = sentencepiece.SentencePieceProcessor(model_file=path)
  if extra_ids is None:
    extra_ids = _SENTENCEPIECE_SENTINELS
  return fingerprints.StoredVocabulary({
      'kind': 'SentencePiece',
      'path': path,
      'fingerprint': fingerprints.of_file(path)[:16],
      'vocab_size': model.vocab_size() + extra_ids,
      'extra_ids': extra_ids,
      'eos_id': model.eos_id(),
      'pad_id': model.pad_id(),
      'unk_id': model.unk_id(),
  })
