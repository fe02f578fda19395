# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Task features to model features: in numpy, and seqio's converters on demand.

`feature_converters.EncDecFeatureConverter`, `LMFeatureConverter` and the other
converters of seqio are attributes of this module, imported when first asked
for, so that naming this module costs no TensorFlow.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

ENCODER_DECODER_FEATURES = (
    'encoder_input_tokens',
    'decoder_target_tokens',
    'decoder_input_tokens',
    'decoder_loss_weights',
)
PACKING_FEATURES = (
    'encoder_segment_ids',
    'decoder_segment_ids',
    'encoder_positions',
    'decoder_positions',
)


def __getattr__(name: str) -> Any:
  """Finds seqio's feature converters, importing seqio only now."""
  if not name.endswith('FeatureConverter'):
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  import seqio

  return getattr(seqio, name)


def make_encoder_decoder_batch(
    examples: Iterable[Mapping[str, Any]],
    *,
    task_feature_lengths: Mapping[str, int],
    bos_id: int = 0,
) -> dict[str, np.ndarray]:
  """Pads examples to a batch, as seqio.EncDecFeatureConverter(pack=False).

  Args:
    examples: each with 'inputs' and 'targets', sequences of ids that end with
      the end of sequence; longer ones are cut off.
    task_feature_lengths: lengths of 'inputs' and 'targets'.
    bos_id: first id of the decoder's inputs.

  Returns:
    int32 [batch, length] under each of `ENCODER_DECODER_FEATURES`.
  """
  examples = list(examples)
  inputs = _pad(
      [example['inputs'] for example in examples],
      length=task_feature_lengths['inputs'],
  )
  targets = _pad(
      [example['targets'] for example in examples],
      length=task_feature_lengths['targets'],
  )
  return {
      'encoder_input_tokens': inputs,
      'decoder_target_tokens': targets,
      'decoder_input_tokens': shift_right(targets, bos_id=bos_id),
      'decoder_loss_weights': (targets != 0).astype(np.int32),
  }


def _pad(rows: list[Any], *, length: int) -> np.ndarray:
  padded = np.zeros((len(rows), length), np.int32)  # [batch, length]
  for index, row in enumerate(rows):
    tokens = np.asarray(row, np.int32)[:length]
    padded[index, : tokens.size] = tokens
  return padded


def shift_right(
    targets: np.ndarray,
    *,
    segment_ids: np.ndarray | None = None,
    bos_id: int = 0,
) -> np.ndarray:
  """Decoder inputs: the targets one later, each segment begun by `bos_id`.

  Args:
    targets: int32 [batch, length].
    segment_ids: int32 [batch, length] of packed targets, or None.
    bos_id: first id of each segment.

  Returns:
    int32 [batch, length].
  """
  shifted = np.full_like(targets, bos_id)
  shifted[:, 1:] = targets[:, :-1]
  if segment_ids is not None:
    same = segment_ids[:, 1:] == segment_ids[:, :-1]
    shifted[:, 1:] = np.where(same, shifted[:, 1:], bos_id)
  return shifted
