# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of examples as the features of a model, packed or one to a row.

In numpy, the same features as seqio's converters make with tf.data.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any

import numpy as np

from t5wild.data import feature_converters
from t5wild.data import reader_protocol
from t5wild.data import rows as rows_lib

# By the names of seqio's converters, which models hold.
_KINDS = {
    'EncDecFeatureConverter': 'encoder_decoder',
    'LMFeatureConverter': 'lm',
    'PrefixLMFeatureConverter': 'prefix_lm',
}
# Arguments of theirs that are kept.
_ARGUMENTS = ('loss_on_targets_only', 'bos_id')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
  """What a model's rows are made of.

  Attributes:
    kind: 'encoder_decoder'; 'lm', targets alone; or 'prefix_lm', inputs and
      targets as one sequence.
    lengths: length of each task feature.
    pack: several examples per row.
    loss_on_targets_only: of 'prefix_lm', whether inputs are not asked for.
    bos_id: first decoder input of each example.
  """

  kind: str
  lengths: Mapping[str, int]
  pack: bool
  loss_on_targets_only: bool = True
  bos_id: int = 0

  @property
  def features(self) -> tuple[str, ...]:
    """Task features that are read."""
    return ('targets',) if self.kind == 'lm' else ('inputs', 'targets')

  @property
  def capacities(self) -> tuple[int, ...]:
    """What a row holds: of each feature, or of all as one sequence."""
    lengths = [self.lengths[name] for name in self.features]
    return tuple(lengths if self.kind != 'prefix_lm' else [sum(lengths)])

  def sizes(self, lengths: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What examples of some lengths take of the capacities: int64 each."""
    found = [lengths[name] for name in self.features]
    return found if self.kind != 'prefix_lm' else [sum(found)]


def find_layout(
    converter_cls: Any, *, lengths: Mapping[str, int], pack: bool
) -> Layout:
  """The layout that a model's feature converter stands for; imports nothing.

  Args:
    converter_cls: one of seqio's, its stand-in on a model (which has a
      `class_name`), or a functools.partial of either.
    lengths: length of each task feature.
    pack: several examples per row.

  Raises:
    ValueError: for another converter, or features without a length.
  """
  given: dict[str, Any] = {}
  while isinstance(converter_cls, functools.partial):
    given = {**converter_cls.keywords, **given}
    converter_cls = converter_cls.func
  name = _name_of(converter_cls)
  if name == 'DecoderFeatureConverter':
    has_inputs = 'inputs' in lengths  # by this seqio's picks one, too
    name = 'PrefixLMFeatureConverter' if has_inputs else 'LMFeatureConverter'
  if name not in _KINDS:
    raise ValueError(
        f'the model takes its data through {name}: expected one of '
        f'{sorted([*_KINDS, "DecoderFeatureConverter"])}, which are those that '
        'rows of a cache can be made for. Read the live task '
        '(data.DatasetConfig), or give the model one of these.'
    )
  layout = Layout(
      kind=_KINDS[name],
      lengths=dict(lengths),
      pack=pack,
      **{key: given[key] for key in _ARGUMENTS if key in given},
  )
  missing = [name for name in layout.features if name not in lengths]
  if missing:
    raise ValueError(
        f'task_feature_lengths {dict(lengths)} lacks {missing}: expected '
        f'{list(layout.features)}, as the model ({name}) needs. Add them to '
        'TASK_FEATURE_LENGTHS, or choose a model for these features.'
    )
  return layout


def _name_of(converter_cls: Callable[..., Any]) -> str:
  name = getattr(converter_cls, 'class_name', None)
  return name or getattr(converter_cls, '__name__', repr(converter_cls))


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowsOfExamples:
  """Examples in the order of the rows that they stand in.

  Attributes:
    examples: tokens by task feature, end of sequence included.
    row_starts: int64 [rows + 1], the first example of each row.
  """

  examples: Mapping[str, rows_lib.Rows]
  row_starts: np.ndarray

  @property
  def num_rows(self) -> int:
    """Rows there are."""
    return self.row_starts.size - 1

  def make(
      self, start: int, stop: int, *, layout: Layout
  ) -> reader_protocol.Batch:
    """Makes the features of rows start to stop: int32 [rows, length] each."""
    first, last = self.row_starts[[start, stop]]
    examples = {
        name: rows_lib.part(rows, int(first), int(last))
        for name, rows in self.examples.items()
    }
    counts = np.diff(self.row_starts[start : stop + 1])
    make = {
        'encoder_decoder': _encoder_decoder,
        'lm': _lm,
        'prefix_lm': _prefix_lm,
    }[layout.kind]
    return make(examples, counts, layout=layout)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Sequences:
  """Tokens of rows, int32 [rows, length], and where they come from.

  `segments` are numbers of examples in their row, from 1; 0 is padding.
  """

  tokens: np.ndarray
  segments: np.ndarray
  positions: np.ndarray


def _lay_out(
    examples: rows_lib.Rows, counts: np.ndarray, *, length: int
) -> _Sequences:
  """Puts examples behind each other, `counts[row]` in each row."""
  starts = np.cumsum(examples.lengths) - examples.lengths
  row_of = np.repeat(np.arange(counts.size), counts)
  firsts = np.cumsum(counts) - counts  # first example of each row
  begins = np.append(starts, examples.values.size)[firsts]
  where = rows_lib.ranges(
      starts - begins[row_of] + row_of * length, examples.lengths
  )
  number = np.arange(row_of.size) - firsts[row_of] + 1
  within = np.arange(examples.values.size) - np.repeat(starts, examples.lengths)
  return _Sequences(**{
      name: _scattered(where, values, shape=(counts.size, length))
      for name, values in (
          ('tokens', examples.values),
          ('segments', np.repeat(number, examples.lengths)),
          ('positions', within),
      )
  })


def _scattered(
    where: np.ndarray, values: np.ndarray, *, shape: tuple[int, int]
) -> np.ndarray:
  array = np.zeros(shape[0] * shape[1], np.int32)
  array[where] = values
  return array.reshape(shape)


def _lm(
    examples: Mapping[str, rows_lib.Rows],
    counts: np.ndarray,
    *,
    layout: Layout,
) -> reader_protocol.Batch:
  targets = _lay_out(
      examples['targets'], counts, length=layout.capacities[-1]
  )
  return _decoder(targets, layout=layout)


def _decoder(targets: _Sequences, *, layout: Layout) -> reader_protocol.Batch:
  features = {
      'decoder_target_tokens': targets.tokens,
      'decoder_input_tokens': feature_converters.shift_right(
          targets.tokens,
          # An end of the targets is no begin of an example.
          segment_ids=targets.segments if layout.pack else None,
          bos_id=layout.bos_id,
      ),
      'decoder_loss_weights': (targets.tokens != 0).astype(np.int32),
  }
  if layout.pack:
    features['decoder_segment_ids'] = targets.segments
    features['decoder_positions'] = targets.positions
  return features


def _encoder_decoder(
    examples: Mapping[str, rows_lib.Rows],
    counts: np.ndarray,
    *,
    layout: Layout,
) -> reader_protocol.Batch:
  inputs = _lay_out(examples['inputs'], counts, length=layout.capacities[0])
  features = {
      'encoder_input_tokens': inputs.tokens,
      **_lm(examples, counts, layout=layout),
  }
  if layout.pack:
    features['encoder_segment_ids'] = inputs.segments
    features['encoder_positions'] = inputs.positions
  return features


def _prefix_lm(
    examples: Mapping[str, rows_lib.Rows],
    counts: np.ndarray,
    *,
    layout: Layout,
) -> reader_protocol.Batch:
  inputs, targets = examples['inputs'], examples['targets']
  length = layout.capacities[0]
  joined = _lay_out(rows_lib.join(inputs, targets), counts, length=length)
  # How many tokens of inputs each token's example has: [rows, length].
  widths = _lay_out(
      rows_lib.Rows(
          values=np.repeat(inputs.lengths, inputs.lengths + targets.lengths),
          lengths=inputs.lengths + targets.lengths,
      ),
      counts,
      length=length,
  ).tokens
  is_text = joined.segments > 0
  features = _decoder(joined, layout=layout)
  # One position more than the inputs: there the first target is foretold.
  features['decoder_causal_attention'] = (
      is_text & (joined.positions <= widths)
  ).astype(np.int32)
  if layout.loss_on_targets_only:
    features['decoder_loss_weights'] *= joined.positions >= widths
  return features
