# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's InteractiveModel: train, predict, score and evaluate on texts."""

from collections.abc import Callable, Mapping, Sequence
import enum
import functools
from typing import Any

import jax

from t5wild import inference
from t5wild.interactive import looping
from t5wild.interactive import metric_fns as metric_fns_lib
from t5wild.interactive import state as state_lib
from t5wild.interactive import texts

Inferences = tuple[list[tuple[dict[str, Any], Any]], dict[str, Any]]
Examples = Sequence[texts.Example]


class InferenceType(enum.Enum):
  """What to infer (T5X's names)."""

  PREDICT_WITH_AUX = 1
  SCORE = 2


class InteractiveModel(state_lib.TrainableModel):
  """A model with its state; examples are texts (T5X's class).

  An example is a text, or {'input': ..., 'target': ...}. For one process.
  """

  @functools.cached_property
  def _infer_fns(self) -> dict[Any, Callable[..., Any]]:
    return {}

  def predict(self, examples: Examples) -> list[Any]:
    """Returns the text predicted for each example (not in T5X).

    Where the model gives several decodes of each, a list of texts.
    """
    inferences, _ = self.predict_with_aux(examples)
    return [as_text(prediction) for _, prediction in inferences]

  def predict_with_aux(self, examples: Examples) -> Inferences:
    """Returns pairs (example, prediction in bytes), and auxiliary values."""
    return self.infer_with_preprocessors(
        InferenceType.PREDICT_WITH_AUX,
        examples,
        state_lib.default_preprocessors(),
    )

  def score(self, examples: Examples) -> list[tuple[dict[str, Any], Any]]:
    """Returns pairs (example, log likelihood of its target)."""
    return self.infer_with_preprocessors(
        InferenceType.SCORE, examples, state_lib.default_preprocessors()
    )[0]

  def infer_with_preprocessors(
      self,
      mode: InferenceType,
      examples: Examples,
      preprocessors: state_lib.Preprocessors,
      **inference_kwargs: Any,
  ) -> Inferences:
    """Returns pairs (example, output), and auxiliary values by name.

    Args:
      mode: What to infer. Predictions are bytes, as in T5X.
      examples: Texts.
      preprocessors: seqio preprocessors.
      **inference_kwargs: More arguments of the model's
        `predict_batch_with_aux` or `score_batch`.

    Raises:
      ValueError: Unknown mode, or examples that are none.
    """
    infer_fn = self._infer_fn(mode, inference_kwargs)
    task_examples, features = self.features_of(examples, preprocessors)
    found = infer_fn(
        list(enumerate(features)),
        train_state=self.train_state,
        rng=jax.random.PRNGKey(0),
    )
    rows, aux = found if isinstance(found, tuple) else (found, {})
    outputs = [output for _, output in rows]
    if mode is InferenceType.PREDICT_WITH_AUX:
      outputs = [self._decoded(output) for output in outputs]
    return list(zip(task_examples, outputs, strict=True)), dict(aux)

  def _infer_fn(self, mode, arguments: Mapping[str, Any]):
    steps = {
        InferenceType.PREDICT_WITH_AUX: self._model.predict_batch_with_aux,
        InferenceType.SCORE: self._model.score_batch,
    }
    if mode not in steps:
      raise ValueError(
          f'mode is {mode!r}: expected one of {[str(one) for one in steps]}. '
          'Give an InferenceType.'
      )
    key = (mode, repr(sorted(arguments.items())))
    if key not in self._infer_fns:
      self._infer_fns[key] = inference.get_infer_fn(
          functools.partial(steps[mode], **arguments),
          self._batch_size,
          self._train_state_axes,
          self._partitioner,
      )
    return self._infer_fns[key]

  def _decoded(self, tokens: Any) -> Any:
    if tokens and isinstance(tokens[0], list):
      return [self._decoded(one) for one in tokens]
    return self._model.output_vocabulary.decode(tokens).encode()

  def evaluate(
      self,
      examples: Examples,
      metric_fns: Sequence[metric_fns_lib.MetricFn],
  ) -> dict[str, Any]:
    """Returns the metrics of predictions, or scores, for the targets."""
    return self.evaluate_with_preprocessors(
        examples, state_lib.default_preprocessors(), metric_fns
    )

  def evaluate_with_preprocessors(
      self,
      examples: Examples,
      preprocessors: state_lib.Preprocessors,
      metric_fns: Sequence[metric_fns_lib.MetricFn],
      postprocessor: Callable[..., Any] | None = None,
  ) -> dict[str, Any]:
    """The same with one's own preprocessors.

    Args:
      examples: With targets.
      preprocessors: seqio preprocessors.
      metric_fns: Functions of (targets, predictions), of (targets,
        predictions, aux_values) or of (targets, scores), named so.
      postprocessor: Makes of the text of a target what the functions take;
        called with (text, example=..., is_target=True). None hands over the
        text. (T5X handed over bytes, which equal no prediction.)

    Raises:
      ValueError: A function takes other arguments.
    """
    taken = set().union(*metric_fns_lib.kinds_of(metric_fns))
    task_examples, _ = self.features_of(examples, preprocessors)
    given: dict[str, Any] = {
        'targets': [_target_of(one, postprocessor) for one in task_examples]
    }
    if 'predictions' in taken:
      found, given['aux_values'] = self.infer_with_preprocessors(
          InferenceType.PREDICT_WITH_AUX, examples, preprocessors
      )
      given['predictions'] = [as_text(prediction) for _, prediction in found]
    if 'scores' in taken:
      found, _ = self.infer_with_preprocessors(
          InferenceType.SCORE, examples, preprocessors
      )
      given['scores'] = [score for _, score in found]
    return metric_fns_lib.compute(metric_fns, given)

  def train_loop(
      self,
      num_steps: int,
      eval_period: int | None = 1,
      train_batches: looping.Batches | None = None,
      predict_batches: looping.Batches | None = None,
      score_batches: looping.Batches | None = None,
      eval_batches: looping.Batches | None = None,
      metrics_fns: Sequence[metric_fns_lib.MetricFn] | None = None,
  ) -> tuple[Any, Any, Any]:
    """Trains, and looks at batches meanwhile; see `looping.run`."""
    return looping.run(
        self,
        num_steps=num_steps,
        eval_period=eval_period,
        train_batches=train_batches,
        predict_batches=predict_batches,
        score_batches=score_batches,
        eval_batches=eval_batches,
        metrics_fns=metrics_fns or (),
    )


def as_text(prediction: Any) -> Any:
  """Returns a prediction in bytes, or a list of some, as text."""
  if isinstance(prediction, list):
    return [as_text(one) for one in prediction]
  return prediction.decode()


def _target_of(example: Mapping[str, Any], postprocessor) -> Any:
  if 'targets_pretokenized' not in example:
    raise ValueError(
        f'after preprocessing the examples have {sorted(example)}: expected '
        "'targets_pretokenized' too, to compare with. Tokenize with "
        'seqio.preprocessors.tokenize, which leaves it.'
    )
  text = example['targets_pretokenized'].decode()
  if postprocessor is None:
    return text
  return postprocessor(text, example=example, is_target=True)
