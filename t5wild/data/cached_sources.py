# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One task of a mixture, read from its cache: records to examples.

The examples of a record are a function of the seed, the epoch and the record's
number: an objective is drawn afresh in each epoch.
"""

from collections.abc import Callable, Mapping
import dataclasses
import types
from typing import Any

import numpy as np

from t5wild.data import examples as examples_lib
from t5wild.data import exclusions as exclusions_lib
from t5wild.data import fingerprints
from t5wild.data import index_order
from t5wild.data import objectives
from t5wild.data import pending_examples
from t5wild.data import record_cache
from t5wild.data import record_format
from t5wild.data import rows as rows_lib

# Records that are joined where documents are merged.
_MERGED = 64
_WHOLE = np.iinfo(np.int64).max  # the end of a record, wherever it is


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
  """How the records of all sources become examples.

  Attributes:
    features: names of the features of an example.
    lengths: where each feature is cut off.
    objective: of `data.objectives`, for caches of tokens; None for examples.
    is_for_some: whether there are caches of both; examples stay as they are.
    seed: of order and objective.
    shuffle: whether records come in an order drawn for each epoch.
    exclusions: documents that are left out from some step on.
    is_alone: whether one host reads all rows.
  """

  features: tuple[str, ...]
  lengths: Mapping[str, int]
  objective: Callable[..., Any] | None
  seed: int
  shuffle: bool
  exclusions: exclusions_lib.Exclusions | None = None
  is_alone: bool = False
  is_for_some: bool = False


class CachedSource:
  """The records of one split of a task, in the order of any epoch."""

  def __init__(self, cache: record_cache.RecordCache, reading: Reading):
    """Checks that what is to be read can be made of the cache.

    Raises:
      ValueError: for an objective where there is one already, none where it
        is needed, or features that the cache lacks.
    """
    self.cache = cache
    self.manifest = cache.manifest
    self._reading = reading
    self._check_features()
    self._objective = self._plan_objective()
    self._key = index_order.make_key(
        'records', reading.seed, self.manifest.task, self.manifest.split
    )

  def __len__(self) -> int:
    """Records of an epoch."""
    return len(self.cache)

  @property
  def vocabulary(self) -> fingerprints.StoredVocabulary:
    """Of the targets."""
    return _stored(self.manifest, 'targets')

  @property
  def objective(self) -> examples_lib.Objective | None:
    """What is made of tokens; None where examples are read."""
    return self._objective

  @property
  def tokens_per_record(self) -> float:
    """Mean tokens of a record, of all features."""
    return self.manifest.num_tokens / len(self.cache)

  @property
  def examples_per_record(self) -> float:
    """About how many an objective makes; 1 of whole examples."""
    if self._objective is None:
      return 1.0
    found = self.tokens_per_record / self._objective.mean_tokens
    return found if self._objective.merge_documents else max(found, 1.0)

  def _check_features(self) -> None:
    found = sorted(self.manifest.features)
    wanted = sorted(self._reading.features)
    if not set(wanted) <= set(found):
      raise ValueError(
          f'the cache of {self.manifest.task} lacks features:\n'
          f'  the model needs {wanted}\n'
          f'  {self.cache.folder} has {found}\n'
          'Expected all that are needed. Choose another CACHE_DIR or model, or '
          "cache a task with these features (of text: 'targets' alone, or "
          'inputs_and_targets).'
      )

  def _plan_objective(self) -> examples_lib.Objective | None:
    objective = self._reading.objective
    if self.manifest.content == 'examples':
      if objective is None or self._reading.is_for_some:
        return None
      raise ValueError(
          f'the objective {_named(objective)} is set, and '
          f'{self.cache.folder} holds whole examples: expected a cache of '
          'tokens. Set OBJECTIVE (CachedDatasetConfig.objective) to None, or '
          'cache with --content=tokens.'
      )
    if objective is None:
      raise ValueError(
          f'{self.cache.folder} holds tokens, and no objective is set: '
          'expected one of data.objectives. Set OBJECTIVE '
          '(CachedDatasetConfig.objective), for instance to '
          f'@objectives.span_corruption; its task had '
          f'{self.manifest.objective or "none"}.'
      )
    plan = objectives.plan_of(
        objective,
        sequence_length=self._reading.lengths,
        output_features={
            name: types.SimpleNamespace(
                vocabulary=_stored(self.manifest, name),
                add_eos=self.manifest.features[name]['add_eos'],
            )
            for name in self._reading.features
        },
    )
    if not isinstance(plan, examples_lib.Objective):
      raise ValueError(
          f'the objective {_named(objective)} gave a '
          f'{type(plan).__name__}: expected the plan of one of '
          'data.objectives, which run without TensorFlow. Choose one, or cache '
          'its examples with --content=examples.'
      )
    return plan

  def numbers(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which records stand at some places of the endless order.

    Args:
      counts: int64 [records], places from 0; epoch after epoch.

    Returns:
      (epochs, numbers of records), int64 [records] each.
    """
    size = len(self)
    epochs, numbers = np.divmod(counts, size)
    if self._reading.shuffle:
      for epoch in np.unique(epochs).tolist():
        of_it = np.flatnonzero(epochs == epoch)
        numbers[of_it] = index_order.permute(
            numbers[of_it],
            size=size,
            key=index_order.make_key(self._key, 'order', epoch),
        )
    return epochs, numbers

  def places(self, numbers: np.ndarray, *, epoch: int) -> np.ndarray:
    """Where records stand in the endless order in some epoch: int64."""
    size = len(self)
    if self._reading.shuffle:
      numbers = index_order.positions_of(
          numbers,
          size=size,
          key=index_order.make_key(self._key, 'order', epoch),
      )
    return epoch * size + numbers

  def examples(self, counts: np.ndarray) -> 'TracedExamples':
    """The examples of the records at some places of the endless order."""
    epochs, numbers = self.numbers(counts)
    records = self.cache.read(numbers)
    first = last = np.arange(numbers.size)
    starts, stops = np.zeros_like(first), np.full_like(first, _WHOLE)
    pending: pending_examples.Pending
    if self._objective is None:
      pending = pending_examples.Made(
          rows=self._finish(
              {name: records.features[name] for name in self._reading.features}
          )
      )
    else:
      plan = self._plan(records, epochs, numbers)
      first, last = plan.first_documents, plan.last_documents
      starts, stops = plan.starts, plan.stops
      pending = self._pending(plan)
    return TracedExamples(
        pending=pending,
        firsts=first,
        extents=last - first + 1,
        starts=starts,
        stops=stops,
        excluded_from=self._excluded_from(records, numbers, first, last),
    )

  def _plan(
      self,
      records: record_format.Records,
      epochs: np.ndarray,
      numbers: np.ndarray,
  ) -> examples_lib.Planned:
    """Draws what the objective makes of some records."""
    objective = self._objective
    pieces = records.features['targets'].split() if numbers.size else []
    if objective.document_end is not None:
      # Only where a document ends, not where it was cut into records.
      end = np.int32(objective.document_end)
      pieces = [
          np.append(piece, end) if is_last else piece
          for piece, is_last in zip(pieces, records.is_last, strict=True)
      ]
    objective = dataclasses.replace(objective, document_end=None)
    epoch_keys = {
        epoch: index_order.make_key(self._key, 'objective', epoch)
        for epoch in set(epochs.tolist())
    }
    keys = [
        (epoch_keys[epoch], number)
        for epoch, number in zip(
            epochs.tolist(), numbers.tolist(), strict=True
        )
    ]
    step = _MERGED if objective.merge_documents else max(len(pieces), 1)
    parts = [
        examples_lib.plan_examples(
            pieces[start : start + step], keys[start : start + step], objective
        )
        for start in range(0, max(len(pieces), 1), step)
    ]
    return examples_lib.join_plans(parts, num_documents=step)

  def _pending(self, plan: examples_lib.Planned) -> pending_examples.Pending:
    """Examples that are made when needed, where their lengths are known."""
    lengths = plan.lengths()
    # Many rules on the few rows of a batch cost more than on a whole window,
    # which one host needs in any case.
    is_mixed = len(plan.objective.ingredients) > 1
    if lengths is None or (self._reading.is_alone and is_mixed):
      return pending_examples.Made(rows=self._finished(plan.make()))
    features = self._reading.features
    return _PlannedExamples(
        lengths={
            name: np.minimum(
                size + self._is_ended(name), self._reading.lengths[name]
            )
            for name, size in zip(('inputs', 'targets'), lengths, strict=True)
            if name in features
        },
        finished=lambda chosen: self._finished(plan.make(chosen)),
    )

  def _excluded_from(
      self,
      records: record_format.Records,
      numbers: np.ndarray,
      first: np.ndarray,
      last: np.ndarray,
  ) -> np.ndarray:
    """The step from which each example is left out: int64 [examples]."""
    found = np.full(first.size, exclusions_lib.NEVER)
    listed = self._reading.exclusions
    mine = listed.for_task(self.manifest.task) if listed else None
    if not mine:
      return found
    shards = np.array(self.cache.shard_numbers)[self.cache.locate(numbers)[0]]
    steps = mine.first_steps(shards, records.documents)
    # Where documents were merged, an example may be of several.
    for place in np.flatnonzero(steps != exclusions_lib.NEVER).tolist():
      of_it = (first <= place) & (place <= last)
      found[of_it] = np.minimum(found[of_it], steps[place])
    return found

  def _finished(
      self, made: tuple[rows_lib.Rows, rows_lib.Rows]
  ) -> Mapping[str, rows_lib.Rows]:
    named = dict(zip(('inputs', 'targets'), made, strict=True))
    return self._finish({name: named[name] for name in self._reading.features})

  def _is_ended(self, name: str) -> bool:
    """Whether an end of sequence is put behind what an objective made."""
    return self._objective is not None and bool(
        self.manifest.features[name]['add_eos']
    )

  def _finish(
      self, made: Mapping[str, rows_lib.Rows]
  ) -> Mapping[str, rows_lib.Rows]:
    """Ends sequences where the task does, and cuts off what is too long."""
    finished = {}
    for name, rows in made.items():
      if self._is_ended(name):
        eos_id = self.manifest.features[name]['vocabulary']['eos_id']
        end = np.full((rows.lengths.size, 1), eos_id, np.int32)
        rows = rows_lib.join(rows, rows_lib.from_matrix(end))
      finished[name] = rows_lib.cut_off(rows, self._reading.lengths[name])
    return finished


@dataclasses.dataclass(frozen=True, kw_only=True)
class _PlannedExamples:
  """What an objective will make; see `pending_examples.Pending`."""

  lengths: Mapping[str, np.ndarray]
  finished: Callable[[np.ndarray], Mapping[str, rows_lib.Rows]]

  def make(self, chosen: np.ndarray) -> Mapping[str, rows_lib.Rows]:
    """See `pending_examples.Pending.make`."""
    return self.finished(chosen)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TracedExamples:
  """Examples, and the places of the records that they are of.

  Attributes:
    pending: the examples.
    firsts: int64 [examples], places in the `counts` that were asked for, of
      the first record of each.
    extents: int64 [examples], how many of them from there on it is of.
    starts: int64 [examples], its first token in the first of them.
    stops: int64 [examples], the end of its tokens in the last of them.
    excluded_from: int64 [examples], the step from which on each is left out.
  """

  pending: pending_examples.Pending
  firsts: np.ndarray
  extents: np.ndarray
  starts: np.ndarray
  stops: np.ndarray
  excluded_from: np.ndarray


def _named(objective: Callable[..., Any]) -> str:
  return fingerprints.describe_preprocessor(objective)


def _stored(
    manifest: record_cache.Manifest, name: str
) -> fingerprints.StoredVocabulary:
  return fingerprints.StoredVocabulary(manifest.features[name]['vocabulary'])
