# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Objectives as seqio preprocessors, thin wrappers over a numpy core.

Each turns tokenized documents, {'targets': int32 [tokens]}, into examples. A
task whose features are 'inputs' and 'targets' gets both; one that has
'targets' only gets inputs and targets joined, for a model that reads one
sequence. Put `seqio.preprocessors.append_eos` after an objective: the lengths
leave room for it. TensorFlow and seqio are imported when an objective is
called, not before; `examples` has the core.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t5wild.data import denoisers as denoisers_lib
from t5wild.data import document_pipeline
from t5wild.data import examples
from t5wild.data import language_modelling
from t5wild.data import objective_plans
from t5wild.data import ul2 as ul2_lib

# Named here by gin files: `objectives.Denoiser`.
Denoiser = ul2_lib.Denoiser
tokenize_documents = document_pipeline.tokenize_documents


def plan_of(
    objective: Callable[..., Any],
    *,
    sequence_length: Mapping[str, int],
    output_features: Mapping[str, Any],
) -> examples.Objective:
  """Gives what an objective plans, for `examples.make_examples`.

  No TensorFlow and no seqio: a reader of records makes its examples so, with
  the same bits.

  Args:
    objective: one of this module, its arguments set by gin or functools.
    sequence_length: lengths of the features.
    output_features: anything with `vocabulary` and `add_eos`, by name.

  Returns:
    The plan.
  """
  return objective(
      document_pipeline.PlanOnly(), sequence_length, output_features
  )


def span_corruption(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    mean_noise_span_length: float = 3.0,
    noise_density: float = 0.15,
    *,
    merge_documents: bool = False,
    min_tokens: int = 2,
) -> Any:
  """seqio preprocessor: documents in `targets` to corrupted chunks.

  Each document is cut into chunks that fill `sequence_length['inputs']`
  exactly once corrupted; only a document's last chunk is shorter.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: lengths of 'inputs' and 'targets'.
    output_features: seqio features; the vocabulary of 'targets' is used.
    mean_noise_span_length: mean tokens per corrupted span.
    noise_density: fraction of the tokens to corrupt.
    merge_documents: join documents before they are cut, as T5 does, so that
      almost every chunk is full and chunks straddle documents. False: a chunk
      never holds text of two documents.
    min_tokens: drop a last chunk of fewer tokens; at least 2.

  Returns:
    tf.data.Dataset of {'inputs', 'targets'}, int32, without end of sequence.
  """
  vocabulary = output_features['targets'].vocabulary
  room = objective_plans.make_room(sequence_length, output_features)
  plan = objective_plans.checked_plan(
      room,
      vocabulary=vocabulary,
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )
  rule = denoisers_lib.SpanDenoiser(
      noise_density=noise_density,
      mean_noise_span_length=mean_noise_span_length,
  )
  return document_pipeline.apply(
      dataset,
      examples.Objective(
          ingredients=(
              examples.Ingredient(rule=rule, tokens_length=plan.tokens_length),
          ),
          first_sentinel=vocabulary.vocab_size - 1,
          min_tokens=min_tokens,
          is_concatenated=room.is_concatenated,
          merge_documents=merge_documents,
      ),
  )


def iid_denoising(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    noise_density: float = 0.15,
    *,
    merge_documents: bool = False,
    min_tokens: int = 2,
) -> Any:
  """seqio preprocessor: documents to chunks of which single tokens are hidden.

  A chunk is as long as always fits; how much of the lengths it fills depends
  on how many hidden tokens are neighbours, which share a sentinel.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: lengths of the features.
    output_features: seqio features; the vocabulary of 'targets' is used.
    noise_density: fraction of the tokens to hide, in (0, 1).
    merge_documents: see `span_corruption`.
    min_tokens: drop a last chunk of fewer tokens.

  Returns:
    tf.data.Dataset of examples, without end of sequence.
  """
  vocabulary = output_features['targets'].vocabulary
  room = objective_plans.make_room(sequence_length, output_features)
  rule = denoisers_lib.IidDenoiser(noise_density=noise_density)
  tokens_length = objective_plans.longest_chunk(rule, room=room)
  objective_plans.check_sentinels(
      vocabulary,
      num_sentinels=rule.lengths(tokens_length).num_sentinels,
      what_for=f'one per hidden token of {tokens_length}',
      else_do='lower noise_density or TASK_FEATURE_LENGTHS',
  )
  return document_pipeline.apply(
      dataset,
      examples.Objective(
          ingredients=(
              examples.Ingredient(rule=rule, tokens_length=tokens_length),
          ),
          first_sentinel=vocabulary.vocab_size - 1,
          min_tokens=min_tokens,
          is_concatenated=room.is_concatenated,
          merge_documents=merge_documents,
      ),
  )


def causal_lm(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    *,
    merge_documents: bool = False,
    min_tokens: int = 1,
) -> Any:
  """seqio preprocessor: documents cut into chunks that fill `targets`.

  Where the feature 'targets' has add_eos, each chunk ends with the end of
  sequence; where it has not, only each document does.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: length of 'targets'.
    output_features: seqio features, 'targets' only.
    merge_documents: see `span_corruption`.
    min_tokens: drop a last chunk of fewer tokens.

  Returns:
    tf.data.Dataset of {'targets'}.
  """
  if 'inputs' in output_features:
    raise ValueError(
        f'the task has the features {sorted(output_features)}: expected '
        "'targets' only, as a causal LM has no inputs. Make the task with "
        "features = 'targets', or choose prefix_lm."
    )
  feature = output_features['targets']
  room = objective_plans.make_room(sequence_length, output_features)
  return document_pipeline.apply(
      dataset,
      examples.Objective(
          ingredients=(
              examples.Ingredient(
                  rule=language_modelling.CausalLM(), tokens_length=room.targets
              ),
          ),
          first_sentinel=feature.vocabulary.vocab_size - 1,
          min_tokens=min_tokens,
          is_concatenated=True,
          document_end=None if feature.add_eos else feature.vocabulary.eos_id,
          merge_documents=merge_documents,
      ),
  )


def prefix_lm(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    split: float | tuple[float, float] | str = (0.0, 1.0),
    *,
    merge_documents: bool = False,
    min_tokens: int = 2,
) -> Any:
  """seqio preprocessor: documents cut into chunks, those into two parts.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: lengths of the features.
    output_features: seqio features; 'inputs' gets the first part.
    split: share of the first part: a fraction, or the smallest and the largest
      of a share that is drawn evenly for each chunk, or 'lengths', which makes
      a chunk fill both lengths exactly.
    merge_documents: see `span_corruption`.
    min_tokens: drop a last chunk of fewer tokens.

  Returns:
    tf.data.Dataset of examples, without end of sequence.
  """
  room = objective_plans.make_room(sequence_length, output_features)
  rule = _prefix_rule(split, room=room)
  return document_pipeline.apply(
      dataset,
      examples.Objective(
          ingredients=(
              examples.Ingredient(
                  rule=rule,
                  tokens_length=objective_plans.longest_chunk(rule, room=room),
              ),
          ),
          first_sentinel=output_features['targets'].vocabulary.vocab_size - 1,
          min_tokens=min_tokens,
          is_concatenated=room.is_concatenated,
          merge_documents=merge_documents,
      ),
  )


def _prefix_rule(
    split: Any, *, room: objective_plans.Room
) -> language_modelling.PrefixLM:
  """The rule that a `split` stands for."""
  if split == 'lengths' and room.inputs is not None:
    split = room.inputs / (room.inputs + room.targets)
  if isinstance(split, int | float):
    split = (split, split)
  if isinstance(split, str) or len(split) != 2:
    raise ValueError(
        f'split is {split!r}: expected a fraction such as 0.75, a pair such as '
        "(0.0, 1.0), or 'lengths' for a task that has 'inputs'. Set "
        "prefix_lm's split to one of these."
    )
  return language_modelling.PrefixLM(
      shortest=float(split[0]), longest=float(split[1])
  )


def fill_in_the_middle(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    rate: float = 0.5,
    spm_rate: float = 0.5,
    *,
    mark_ids: Sequence[int] | None = None,
    merge_documents: bool = False,
    min_tokens: int = 2,
) -> Any:
  """seqio preprocessor: chunks whose middle is moved to their end.

  The others are left as they are. `language_modelling.FillInTheMiddle` has the
  two orders of the parts.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: lengths of the features.
    output_features: seqio features; 'inputs', if there, gets all before the
      middle.
    rate: fraction of the chunks whose middle is moved.
    spm_rate: fraction of those in the order suffix, prefix, middle.
    mark_ids: ids of the marks of prefix, suffix and middle, None for the first
      three sentinels.
    merge_documents: see `span_corruption`.
    min_tokens: drop a last chunk of fewer tokens.

  Returns:
    tf.data.Dataset of examples, without end of sequence.
  """
  objective_plans.check_fraction('rate', rate)
  objective_plans.check_fraction('spm_rate', spm_rate)
  vocabulary = output_features['targets'].vocabulary
  marks = _checked_marks(mark_ids, vocabulary=vocabulary)
  room = objective_plans.make_room(sequence_length, output_features)
  rules = {
      language_modelling.CausalLM(): 1.0 - rate,
      language_modelling.FillInTheMiddle(
          order=language_modelling.MiddleOrder.PSM, marks=marks
      ): rate * (1.0 - spm_rate),
      language_modelling.FillInTheMiddle(
          order=language_modelling.MiddleOrder.SPM, marks=marks
      ): rate * spm_rate,
  }
  return document_pipeline.apply(
      dataset,
      examples.Objective(
          ingredients=tuple(
              examples.Ingredient(
                  rule=rule,
                  tokens_length=objective_plans.longest_chunk(rule, room=room),
                  weight=weight,
              )
              for rule, weight in rules.items()
              if weight > 0
          ),
          first_sentinel=vocabulary.vocab_size - 1,
          min_tokens=min_tokens,
          is_concatenated=room.is_concatenated,
          merge_documents=merge_documents,
      ),
  )


def _checked_marks(
    mark_ids: Sequence[int] | None, *, vocabulary: Any
) -> tuple[int, int, int] | None:
  """Three different ids of the vocabulary, or None for its sentinels."""
  if mark_ids is None:
    objective_plans.check_sentinels(
        vocabulary,
        num_sentinels=3,
        what_for='for the marks of prefix, suffix and middle',
        else_do="set fill_in_the_middle's mark_ids to three ids it has",
    )
    return None
  marks = tuple(mark_ids)
  size = vocabulary.vocab_size
  if len(set(marks)) != 3 or not all(0 < mark < size for mark in marks):
    raise ValueError(
        f'mark_ids is {marks}: expected three different ids from 1 to '
        f'{size - 1}, of prefix, suffix and middle. Set them to ids that the '
        'vocabulary keeps for this, or to None for its first three sentinels.'
    )
  return marks


def ul2(
    dataset: Any,
    sequence_length: Any,
    output_features: Any,
    denoisers: Sequence[Denoiser] = ul2_lib.PAPER_DENOISERS,
    mode_tokens: Mapping[str, str] | None = None,
    *,
    max_tokens_length: int | None = None,
    merge_documents: bool = False,
    min_tokens: int = 2,
) -> Any:
  """seqio preprocessor: UL2's mixture of denoisers; `data.ul2` says which.

  Each chunk is as long as its denoiser can make use of: either the inputs or
  the targets are full, but for a document's last chunk.

  Args:
    dataset: tf.data.Dataset of {'targets': int32 [tokens]}.
    sequence_length: lengths of the features.
    output_features: seqio features; the vocabulary of 'targets' is used.
    denoisers: what to mix.
    mode_tokens: text of each mode, {} for none, None for the lowest sentinels;
      see `ul2.mode_tokens`.
    max_tokens_length: no more text than this in a chunk; the fewer sentinels
      are needed.
    merge_documents: see `span_corruption`.
    min_tokens: drop a last chunk of fewer tokens.

  Returns:
    tf.data.Dataset of examples, without end of sequence.
  """
  objective = ul2_lib.make_objective(
      room=objective_plans.make_room(sequence_length, output_features),
      vocabulary=output_features['targets'].vocabulary,
      denoisers=tuple(denoisers),
      texts=mode_tokens,
      max_tokens_length=max_tokens_length,
      min_tokens=min_tokens,
      merge_documents=merge_documents,
  )
  return document_pipeline.apply(dataset, objective)
