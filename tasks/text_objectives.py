# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What objectives make of text, from any seqio source of it.

    from t5wild.tasks import text_objectives
    text_objectives.add_text_tasks('books', source=my_seqio_source)

registers span_corruption_books, prefix_lm_books, lm_books, fim_books and so
on. Importing this module registers nothing and imports no TensorFlow.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import os
from typing import Any

from t5wild import vocabulary_files
from t5wild.data import objectives
from t5wild.data import vocabularies

# Sentinels: with 125 the byte vocabulary has 384 ids, as in ByT5; SentencePiece
# vocabularies of T5 have 100.
_BYTE_SENTINELS = 125
_SENTENCEPIECE_SENTINELS = 100

FEATURES = ('inputs_and_targets', 'targets')


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextObjective:
  """An objective by name, and the task features that suit it.

  Attributes:
    preprocessor: see `data.objectives`.
    features: one of `FEATURES`.
    inputs_end: whether inputs have an end of sequence. Not where the targets
      go on with the text that they begin.
    targets_end: whether the targets of each example have one.
  """

  preprocessor: Callable[..., Any]
  features: str = 'inputs_and_targets'
  inputs_end: bool = True
  targets_end: bool = True


# By the names that tasks begin with.
OBJECTIVES: Mapping[str, TextObjective] = {
    'span_corruption': TextObjective(preprocessor=objectives.span_corruption),
    'iid_denoising': TextObjective(preprocessor=objectives.iid_denoising),
    'ul2': TextObjective(preprocessor=objectives.ul2),
    'prefix_lm': TextObjective(
        preprocessor=objectives.prefix_lm, inputs_end=False
    ),
    'lm': TextObjective(
        preprocessor=objectives.causal_lm,
        features='targets',
        targets_end=False,  # documents have one
    ),
    'fim': TextObjective(
        preprocessor=objectives.fill_in_the_middle, features='targets'
    ),
}


# A name in `OBJECTIVES`, a seqio preprocessor of tokenized {'targets'}, of
# `data.objectives` or another, or what `find_objective` made of either.
Objective = str | Callable[..., Any] | TextObjective


def find_objective(
    objective: Objective, *, features: str | None = None
) -> TextObjective:
  """Finds an objective, and settles the features of its task.

  Args:
    objective: see `Objective`.
    features: 'inputs_and_targets', or 'targets' for a model that reads one
      sequence, which is then the inputs followed by the targets. None: what
      suits the objective, targets only for 'lm' and 'fim'.

  Returns:
    The objective with these features.

  Raises:
    ValueError: for an unknown name of an objective or of features.
  """
  if isinstance(objective, str) and objective not in OBJECTIVES:
    raise ValueError(
        f'objective is {objective!r}: expected one of {sorted(OBJECTIVES)} or '
        "a seqio preprocessor. Set the task's objective to one of them."
    )
  if features not in (None, *FEATURES):
    raise ValueError(
        f'features is {features!r}: expected one of {FEATURES}, or None for '
        "those that suit the objective. Set the task's features to one of them."
    )
  if isinstance(objective, TextObjective):
    found = objective
  elif isinstance(objective, str):
    found = OBJECTIVES[objective]
  else:
    found = _known_as(objective)
  return dataclasses.replace(found, features=features or found.features)


def _known_as(preprocessor: Callable[..., Any]) -> TextObjective:
  """The one of `OBJECTIVES` that a preprocessor is or wraps, else a new one.

  gin wraps what it configures, functools.partial what it fills in.
  """
  inner = preprocessor
  while True:
    for known in OBJECTIVES.values():
      if inner is known.preprocessor:
        return dataclasses.replace(known, preprocessor=preprocessor)
    within = getattr(inner, '__wrapped__', None) or getattr(inner, 'func', None)
    if within is None:
      return TextObjective(preprocessor=preprocessor)
    inner = within


def task_parts(
    objective: Objective, *, vocabulary: Any = None
) -> dict[str, Any]:
  """Makes what a seqio.Task over {'targets': text} needs besides its source.

  Args:
    objective: see `Objective`.
    vocabulary: a seqio vocabulary, the path of a SentencePiece model, or None
      for bytes (384 ids, of which 125 are sentinels).

  Returns:
    'output_features' and 'preprocessors'.

  Raises:
    FileNotFoundError: for a vocabulary that does not exist.
    ValueError: for an unknown name.
  """
  import seqio

  found = find_objective(objective)
  vocabulary = seqio_vocabulary(vocabulary)
  output_features = {
      'targets': seqio.Feature(vocabulary=vocabulary, add_eos=found.targets_end)
  }
  if found.features == 'inputs_and_targets':
    output_features['inputs'] = seqio.Feature(
        vocabulary=vocabulary, add_eos=found.inputs_end
    )
  return {
      'output_features': output_features,
      'preprocessors': [
          objectives.tokenize_documents,
          found.preprocessor,
          seqio.preprocessors.append_eos,
      ],
  }


def parts_over_source(
    source: Any,
    *,
    text_field: str,
    objective: Objective,
    vocabulary: Any = None,
) -> dict[str, Any]:
  """Makes what a seqio.Task over a source of text, or of its tokens, needs.

  Args:
    source: a seqio.DataSource, whose examples have a text.
    text_field: where it is; text, or int32 tokens of the vocabulary, whose
      end of sequence is left out.
    objective: see `Objective`.
    vocabulary: see `task_parts`.

  Returns:
    'source', 'output_features' and 'preprocessors'.

  Raises:
    ValueError: for an unknown name, or a source without this field.
  """
  parts = task_parts(objective, vocabulary=vocabulary)
  first = [_text_from(text_field)]
  if hasattr(source, 'with_columns'):  # reads no more of it
    source = source.with_columns({'targets': text_field})
    first = []
    if source.kinds['targets'] != 'text':
      first = [without_end]
  parts['preprocessors'] = [*first, *parts['preprocessors']]
  return {'source': source, **parts}


def without_end(dataset: Any, output_features: Any) -> Any:
  """seqio preprocessor: tokens without the end of sequence behind them."""
  import tensorflow as tf

  def cut(example):
    example = dict(example)
    for name, feature in output_features.items():
      tokens = example.get(name)
      if tokens is None or tokens.dtype == tf.string:
        continue
      has_end = tf.reduce_all(tokens[-1:] == feature.vocabulary.eos_id)
      size = tf.size(tokens)
      example[name] = tokens[: size - tf.cast(has_end & (size > 0), tf.int32)]
    return example

  return dataset.map(cut, num_parallel_calls=2, deterministic=True)


def add_text_tasks(
    name: str,
    *,
    source: Any,
    vocabulary: Any = None,
    objectives_to_add: Sequence[str] | None = None,
    text_field: str = 'targets',
    shuffle_buffer_size: int = 1000,
) -> list[Any]:
  """Registers a seqio task for each objective over one source of text.

  Args:
    name: tasks are named OBJECTIVE_name: ul2_books for 'books'.
    source: a seqio.DataSource, whose examples have a text.
    vocabulary: see `task_parts`.
    objectives_to_add: names in `OBJECTIVES`, None for all of them.
    text_field: where the text is in the source's examples.
    shuffle_buffer_size: examples among which the next one is drawn.

  Returns:
    The tasks.

  Raises:
    ValueError: for a name that is taken, or an unknown objective.
  """
  import seqio

  vocabulary = seqio_vocabulary(vocabulary)
  tasks = []
  for objective in objectives_to_add or OBJECTIVES:
    parts = task_parts(objective, vocabulary=vocabulary)
    parts['preprocessors'].insert(0, _text_from(text_field))
    tasks.append(
        seqio.TaskRegistry.add(
            f'{objective}_{name}',
            source=source,
            shuffle_buffer_size=shuffle_buffer_size,
            **parts,
        )
    )
  return tasks


def _text_from(text_field: str) -> Callable[[Any], Any]:
  """seqio preprocessor: the text alone, as 'targets'."""

  def text_from(dataset):
    fields = sorted(dataset.element_spec)
    if text_field not in fields:
      raise ValueError(
          f'the source has no field {text_field!r}: expected one of {fields}. '
          'Set text_field to the one that has the text.'
      )
    if fields == ['targets']:
      return dataset
    return dataset.map(
        lambda example: {'targets': example[text_field]},
        num_parallel_calls=2,
        deterministic=True,
    )

  return text_from


def seqio_vocabulary(vocabulary: Any) -> Any:
  """seqio's form of a vocabulary, which can encode inside tf.data."""
  import seqio

  if vocabulary is None:
    return seqio.ByteVocabulary(_BYTE_SENTINELS)
  if isinstance(vocabulary, vocabularies.ByteVocabulary):
    return seqio.ByteVocabulary(vocabulary.extra_ids)
  if not isinstance(vocabulary, str | os.PathLike):
    return vocabulary
  vocabulary_files.check(vocabulary)
  return seqio.SentencePieceVocabulary(
      os.fspath(vocabulary), extra_ids=_SENTENCEPIECE_SENTINELS
  )
