# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is looked at, wherever it came from: some examples, and how they pack.

Imports neither seqio nor TensorFlow.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from t5wild.data import examples as examples_lib
from t5wild.data import model_rows
from t5wild.data import objectives
from t5wild.data import packing
from t5wild.data import reader_protocol
from t5wild.data import rows as rows_lib

KINDS = ('encoder_decoder', 'lm', 'prefix_lm')
ALONE, IN_ORDER, BEST_FIT = 'one to a row', 'in order', 'best fit'
_MAX_OBJECTIVE_SEED = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
  """What the command line says of how to look.

  Attributes:
    split: None for 'train', or the first there is.
    lengths: of the features, None for those of the recipe or fitting ones.
    layout: one of `KINDS`, None for what suits the features.
    objective: name in `data.objectives`, None for the subject's own.
    num_examples: most examples that are looked at.
    seed: of the objective.
    vocabulary: path of a SentencePiece model for files, None for bytes.
    extra_ids: sentinels of that vocabulary, None for as many as is usual.
    columns: of files: 'inputs', 'targets', 'text', by what was given.
  """

  split: str | None = None
  lengths: Mapping[str, int] | None = None
  layout: str | None = None
  objective: str | None = None
  num_examples: int = 2000
  seed: int = 0
  vocabulary: str | None = None
  extra_ids: int | None = None
  columns: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    """Refuses what nothing could be shown of."""
    if self.num_examples < 1:
      raise ValueError(
          f'--examples is {self.num_examples}: expected 1 at least. Raise it.'
      )
    if self.extra_ids is not None and self.extra_ids < 0:
      raise ValueError(
          f'--extra_ids is {self.extra_ids}: expected 0 or more sentinels. '
          'Leave it out for as many as is usual.'
      )

  def check_vocabulary_is_open(self, what: str) -> None:
    """Refuses a vocabulary for what has one of its own.

    Raises:
      ValueError: naming what was given.
    """
    given = [
        f'--{name}={value}'
        for name in ('vocabulary', 'extra_ids')
        if (value := getattr(self, name)) is not None
    ]
    if given:
      raise ValueError(
          f'{" ".join(given)} is given, and {what} has a vocabulary of its '
          'own: expected one for files alone. Leave it out.'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
  """Examples of a task, a file or a cache, and how they become rows.

  Attributes:
    title: shown above all.
    facts: what there is to say of it, by label.
    vocabularies: of each feature.
    layout: what rows are made of.
    examples: by feature, end of sequence included, before they are cut.
    documents: what the examples are made of, as far as it was looked at: their
      bytes, by which they are compared.
    document_lengths: tokens of each document, None where they are no tokens.
    ended: features of which a cut example ends with an end of sequence.
    packs_by: how a run packs them: `IN_ORDER` or `BEST_FIT`.
    skipped: corrupt rows that were left out.
    notes: what to know when reading the numbers.
  """

  title: str
  facts: Mapping[str, str]
  vocabularies: Mapping[str, Any]
  layout: model_rows.Layout
  examples: Mapping[str, rows_lib.Rows]
  documents: Sequence[bytes]
  document_lengths: np.ndarray | None = None
  ended: Sequence[str] = ()
  packs_by: str = IN_ORDER
  skipped: int = 0
  notes: Sequence[str] = ()

  @property
  def num_examples(self) -> int:
    """Examples that are looked at."""
    return next(iter(self.examples.values())).lengths.size

  def cut_examples(self) -> dict[str, rows_lib.Rows]:
    """The examples as long as the features may be."""
    return {name: self._cut(name) for name in self.layout.features}

  def _cut(self, name: str) -> rows_lib.Rows:
    rows, length = self.examples[name], self.layout.lengths[name]
    cut = rows_lib.cut_off(rows, length)
    if name not in self.ended:
      return cut
    lasts = np.cumsum(cut.lengths)[rows.lengths > length] - 1
    values = cut.values.copy()
    values[lasts] = self.vocabularies[name].eos_id
    return dataclasses.replace(cut, values=values)

  def rows(self, how: str) -> model_rows.RowsOfExamples:
    """The examples in rows, packed in one of three ways."""
    examples = self.cut_examples()
    sizes = self.layout.sizes(
        {name: each.lengths for name, each in examples.items()}
    )
    capacities = self.layout.capacities
    if how == ALONE:
      rows = np.arange(self.num_examples)
    elif how == IN_ORDER:
      rows = _rows_in_order(sizes, capacities)
    else:
      rows = packing.assign_rows(sizes, capacities=capacities)
    order = np.argsort(rows, kind='stable')
    counts = np.bincount(rows) if rows.size else np.zeros(0, np.int64)
    return model_rows.RowsOfExamples(
        examples={
            name: rows_lib.take(each, order) for name, each in examples.items()
        },
        row_starts=np.append(0, np.cumsum(counts)),
    )

  def batch(self, num_rows: int) -> reader_protocol.Batch:
    """The features of the first rows, packed as a run packs them."""
    rows = self.rows(self.packs_by if self.layout.pack else ALONE)
    return rows.make(0, min(num_rows, rows.num_rows), layout=self.layout)


def _rows_in_order(
    sizes: Sequence[np.ndarray], capacities: Sequence[int]
) -> np.ndarray:
  """Rows of examples that are filled one after the other: int64 [examples].

  A row is closed when the next example does not fit, as seqio's packing does.
  """
  rows = np.empty(sizes[0].size, np.int64)
  row, room = 0, list(capacities)
  columns = np.stack([np.asarray(each) for each in sizes], axis=1).tolist()
  for index, needed in enumerate(columns):
    if any(n > r for n, r in zip(needed, room, strict=True)):
      row, room = row + 1, list(capacities)
    room = [r - n for n, r in zip(needed, room, strict=True)]
    rows[index] = row
  return rows


def find_objective(name: str) -> Callable[..., Any]:
  """An objective of `data.objectives` by its name; 'lm' is causal_lm.

  Raises:
    ValueError: there is none.
  """
  names = {
      'lm': 'causal_lm', 'fim': 'fill_in_the_middle',
      **{each: each for each in OBJECTIVES},
  }  # fmt: skip
  if name not in names:
    raise ValueError(
        f'--objective is {name!r}: expected one of {sorted(names)}. Choose '
        'one of them, or leave it out.'
    )
  return getattr(objectives, names[name])


OBJECTIVES = (
    'span_corruption', 'iid_denoising', 'ul2', 'prefix_lm', 'causal_lm',
    'fill_in_the_middle',
)


def apply_objective(
    documents: Sequence[np.ndarray],
    objective: Callable[..., Any],
    *,
    features: Mapping[str, Any],
    lengths: Mapping[str, int],
    seed: int,
) -> dict[str, rows_lib.Rows]:
  """Makes examples of documents of tokens, ended where the features are.

  Args:
    documents: int32 [tokens] each.
    objective: of `data.objectives`.
    features: anything with `vocabulary` and `add_eos`, by name.
    lengths: of the features.
    seed: of what is random.
  """
  plan = objectives.plan_of(
      objective, sequence_length=lengths, output_features=features
  )
  keys = [(seed % _MAX_OBJECTIVE_SEED, n) for n in range(len(documents))]
  inputs, targets = examples_lib.make_examples(documents, keys, plan)
  made = {'targets': targets}
  if not plan.is_concatenated:
    made['inputs'] = inputs
  return {
      name: end_all(rows, features[name].vocabulary)
      if features[name].add_eos
      else rows
      for name, rows in made.items()
  }


def end_all(rows: rows_lib.Rows, vocabulary: Any) -> rows_lib.Rows:
  """The rows, each with an end of sequence behind it."""
  end = np.full((rows.lengths.size, 1), vocabulary.eos_id, np.int32)
  return rows_lib.join(rows, rows_lib.from_matrix(end))


def make_layout(
    features: Sequence[str],
    *,
    kind: str | None,
    lengths: Mapping[str, int],
    pack: bool = True,
) -> model_rows.Layout:
  """A layout for the features there are; `kind` None for what suits them.

  Raises:
    ValueError: the layout needs features that are not there.
  """
  kind = kind or ('encoder_decoder' if 'inputs' in features else 'lm')
  layout = model_rows.Layout(kind=kind, lengths=dict(lengths), pack=pack)
  missing = [name for name in layout.features if name not in features]
  if missing:
    raise ValueError(
        f'--layout is {kind!r}, which needs the features '
        f'{list(layout.features)}, and there are {sorted(features)}: '
        f'{missing} is missing. Choose another --layout, or leave it out.'
    )
  unset = [name for name in layout.features if name not in lengths]
  if unset:
    raise ValueError(
        f'--task_feature_lengths is {dict(lengths)}: expected a length of each '
        f'of {list(layout.features)}. Add {unset}, or leave it out.'
    )
  return layout


def fitting_lengths(
    examples: Mapping[str, rows_lib.Rows]
) -> dict[str, int]:
  """Lengths that cut nothing off: the next power of two."""
  return {
      name: 1 << max(int(rows.lengths.max(initial=1)) - 1, 0).bit_length()
      for name, rows in examples.items()
  }
