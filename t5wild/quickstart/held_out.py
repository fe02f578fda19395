# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An action that tells how well held-out text is understood, in bytes."""

from collections.abc import Sequence
import dataclasses
import json
import math
import os
from typing import Any

from absl import logging
import jax
import numpy as np

from t5wild.data import datasets
from t5wild.data import providers
from t5wild.quickstart import infilling
from t5wild.trainer import actions as actions_lib

RESULTS = 'held_out.jsonl'
_EXAMPLES_SHOWN = 3


class HeldOutText(actions_lib.BaseAction):
  """Measures nats per byte and exact infilling on held-out text.

  Runs after each evaluation (mode TRAIN_EVAL) and appends one line to
  `held_out.jsonl` in the run directory. Made for byte vocabularies. Sentinels
  and the end of sequence are not counted.
  """

  def __init__(
      self,
      *,
      model: Any,
      partitioner: Any,
      dataset_cfg: Any,
      output_dir: str,
      num_batches: int = 8,
      num_decoded_batches: int = 4,
  ):
    """Reads nothing yet.

    Args:
      model: The model under training.
      partitioner: The run's partitioner.
      dataset_cfg: A `data.DatasetConfig` of the held-out split, not packed.
      output_dir: The run directory.
      num_batches: Batches whose loss is measured.
      num_decoded_batches: Of these, batches that are infilled.

    Raises:
      ValueError: The vocabulary is not one of bytes.
    """
    vocabulary = model.output_vocabulary
    self._first_sentinel = vocabulary.vocab_size - vocabulary.extra_ids
    if self._first_sentinel != 259:
      raise ValueError(
          f'{type(vocabulary).__name__} has {self._first_sentinel} ids before '
          'its sentinels: expected a byte vocabulary (259). Leave the action '
          'quickstart.HeldOutText out of a recipe with another vocabulary.'
      )
    self._model = model
    self._partitioner = partitioner
    self._dataset_cfg = dataset_cfg
    self._output_dir = output_dir
    self._num_batches = num_batches
    self._num_decoded_batches = num_decoded_batches
    self._batches: list[dict[str, np.ndarray]] | None = None
    self._byte_counts: np.ndarray | None = None
    self._functions: tuple[Any, Any] | None = None

  def _load_batches(self) -> list[dict[str, np.ndarray]]:
    cfg = self._dataset_cfg
    by_task = datasets.make_eval_batches(
        cfg,
        data_layout=self._partitioner.get_data_layout(cfg.batch_size),
        eval_steps=self._num_batches,
        feature_converter_cls=self._model.FEATURE_CONVERTER_CLS,
    )
    batches = [dict(batch) for task in by_task.values() for batch in task]
    for batch in batches:
      batch['decoder_loss_weights'] = infilling.is_byte(
          batch['decoder_target_tokens']
      ).astype(np.int32)
    return batches

  def _count_bytes(self) -> np.ndarray:
    """Of the whole text where its source can tell, else of the batches."""
    task = providers.provider_of(self._dataset_cfg)
    count = getattr(getattr(task, 'source', None), 'byte_counts', None)
    if count is not None:
      return count()
    return sum(
        infilling.byte_counts(batch[feature])
        for batch in self._batches
        for feature in ('encoder_input_tokens', 'decoder_target_tokens')
    )

  def _compile(self, train_state):
    axes = self._partitioner.get_mesh_axes(train_state).params
    data = self._partitioner.data_partition_spec
    partition = self._partitioner.partition
    score = partition(
        self._model.score_batch,
        in_axis_resources=(axes, data),
        out_axis_resources=None,
    )
    predict = partition(
        self._model.predict_batch,
        in_axis_resources=(axes, data),
        out_axis_resources=None,
    )
    return score, predict

  def run(self, train_state, metrics_by_task) -> bool:
    """Measures, prints and appends; never stops the run."""
    del metrics_by_task
    if self._batches is None:
      self._batches = self._load_batches()
      self._byte_counts = self._count_bytes()
      self._functions = self._compile(train_state)
    score, predict = self._functions
    to_device = self._partitioner.global_batch
    scores = [
        np.asarray(score(train_state.params, to_device(batch)))
        for batch in self._batches
    ]
    decoded = self._batches[: self._num_decoded_batches]
    decodes = [
        np.asarray(predict(train_state.params, to_device(batch)))
        for batch in decoded
    ]
    result = self._summarise(int(train_state.step), scores, decoded, decodes)
    if jax.process_index() == 0:
      self._report(result)
    return False

  def _summarise(self, step, scores, decoded, decodes) -> 'Result':
    num_bytes = sum(
        int(infilling.is_byte(b['decoder_target_tokens']).sum())
        for b in self._batches
    )
    whole = self._byte_counts
    rows = [row for b in decoded for row in b['decoder_target_tokens']]
    made = [row for batch in decodes for row in batch]
    matches = infilling.compare(
        rows,
        made,
        first_sentinel=self._first_sentinel,
        most_frequent_id=int(whole.argmax()) + 3,
    )
    return Result(
        step=step,
        nats_per_byte=infilling.nats_per_byte(
            np.concatenate(scores), num_bytes
        ),
        unigram_entropy=infilling.unigram_entropy(whole),
        num_bytes=num_bytes,
        num_spans=matches.num_spans,
        mean_span_bytes=matches.mean_span_bytes,
        exact_fraction=matches.exact_fraction,
        most_frequent_fraction=matches.most_frequent_fraction,
        examples=self._examples(decoded, decodes),
    )

  def _examples(self, decoded, decodes) -> list[dict[str, str]]:
    shown = []
    for batch, made in zip(decoded, decodes, strict=True):
      for row in range(len(made)):
        if len(shown) == _EXAMPLES_SHOWN:
          return shown
        inputs = batch['encoder_input_tokens'][row]
        shown.append({
            name: infilling.filled_text(
                inputs,
                infilling.spans_of(ids, first_sentinel=self._first_sentinel),
                first_sentinel=self._first_sentinel,
            )
            for name, ids in (
                ('true', batch['decoder_target_tokens'][row]),
                ('infilled', made[row]),
            )
        })
    return shown

  def _report(self, result: 'Result') -> None:
    logging.info(
        'Held-out text at step %d: %.3f nats per byte (unigram entropy %.3f), '
        '%.1f%% of %d spans infilled exactly (most frequent byte: %.1f%%)',
        result.step, result.nats_per_byte, result.unigram_entropy,
        100 * result.exact_fraction, result.num_spans,
        100 * result.most_frequent_fraction,
    )
    os.makedirs(self._output_dir, exist_ok=True)
    with open(os.path.join(self._output_dir, RESULTS), 'a') as file:
      file.write(json.dumps(dataclasses.asdict(result)) + '\n')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
  """One measurement on held-out text.

  Attributes:
    step: Number of finished updates.
    nats_per_byte: Loss per byte of the spans, sentinels not counted.
    unigram_entropy: Of the bytes of the whole text (of the held-out sample,
      where the data set is not one of text files), in nats.
    num_bytes: Bytes whose loss was measured.
    num_spans: Spans that were infilled, all of a row in one greedy decode that
      sees nothing but the row's inputs.
    mean_span_bytes: Their mean length.
    exact_fraction: Fraction of them that is exactly right, length included.
    most_frequent_fraction: Fraction that the most frequent byte would match,
      repeated to the span's true length.
    examples: {'true': text, 'infilled': text}, gaps in brackets.
  """

  step: int
  nats_per_byte: float
  unigram_entropy: float
  num_bytes: int
  num_spans: int
  mean_span_bytes: float
  exact_fraction: float
  most_frequent_fraction: float
  examples: Sequence[dict[str, str]] = ()


def load_results(model_dir: str) -> list[Result]:
  """Reads what `HeldOutText` appended; empty when there is nothing."""
  path = os.path.join(model_dir, RESULTS)
  if not os.path.exists(path):
    return []
  with open(path) as file:
    rows = [json.loads(line) for line in file if line.endswith('\n')]
  results = [Result(**row) for row in rows]
  return [r for r in results if not math.isnan(r.nats_per_byte)]
