# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Examples of span corruption and of UL2 per CPU-second, at 512/114.

From tokenized text: the numpy core alone, and a whole seqio task (its seeds,
end of sequence, trimming) in padded batches.
"""

from collections.abc import Callable
import statistics

import numpy as np
import seqio
import tensorflow as tf

from benchmarks import measure
from t5wild.data import examples
from t5wild.data import objectives
from t5wild.data import pipelines

_LENGTHS = {'inputs': 512, 'targets': 114}
_GOAL = 5000  # examples per CPU-second
_BATCH_SIZE = 64
_VOCAB_SIZE = 32128


class _Vocabulary(seqio.PassThroughVocabulary):
  """Ids that are there already, the last hundred of them sentinels."""

  @property
  def extra_ids(self) -> int:
    return 100


def run(options) -> None:
  """Prints one figure for each objective, alone and through seqio."""
  num_documents = 40 if options.small else 400
  sizes = np.random.default_rng(0).integers(500, 12_000, num_documents)
  documents = [
      np.random.default_rng(i).integers(3, 32_000, size, np.int32)
      for i, size in enumerate(sizes)
  ]
  functions: dict[str, Callable[[], int]] = {}
  for name in ('span_corruption', 'ul2'):
    task = _make_task(getattr(objectives, name), documents)
    functions[f'{name}_core'] = _core(task, documents)
    functions[f'{name}_seqio'] = _through_seqio(task)
  counts = {name: function() for name, function in functions.items()}
  times = measure.interleave(functions, runs=options.runs)
  for name, count in counts.items():
    rate = count / statistics.median(times[name].cpu)
    measure.emit(
        f'objectives_{name}',
        rate,
        'examples per CPU-second',
        goal=_GOAL,
        met=rate >= _GOAL,
        lowest=count / max(times[name].cpu),
        highest=count / min(times[name].cpu),
        examples=count,
        runs=len(times[name].cpu),
    )


def _make_task(
    objective: Callable[..., tf.data.Dataset], documents: list[np.ndarray]
) -> seqio.Task:
  feature = seqio.Feature(_Vocabulary(_VOCAB_SIZE, eos_id=1))
  ragged = tf.ragged.constant(documents, tf.int32)

  def source(split, shuffle_files, seed=None):
    del split, shuffle_files, seed
    dataset = tf.data.Dataset.from_tensor_slices(ragged)
    return dataset.map(lambda row: {'targets': row}).cache()

  return seqio.Task(
      objective.__name__,
      source=seqio.FunctionDataSource(source, splits=('train',)),
      preprocessors=[objective, seqio.preprocessors.append_eos],
      output_features={'inputs': feature, 'targets': feature},
  )


def _through_seqio(task: seqio.Task) -> Callable[[], int]:
  """Reads a task from start to end; gives the number of examples."""
  dataset = task.get_dataset(_LENGTHS, 'train', shuffle=False, seed=0)
  dataset = pipelines.with_options(dataset.padded_batch(_BATCH_SIZE))

  def read() -> int:
    return sum(len(batch['targets']) for batch in dataset)

  return read


def _core(
    task: seqio.Task, documents: list[np.ndarray]
) -> Callable[[], int]:
  """Makes the same task's examples without tf.data."""
  plan = objectives.plan_of(
      task.preprocessors[0],
      sequence_length=_LENGTHS,
      output_features=task.output_features,
  )

  def make() -> int:
    count = 0
    for start in range(0, len(documents), 16):
      block = documents[start : start + 16]
      keys = [(0, start + index) for index in range(len(block))]
      inputs, _ = examples.make_examples(block, keys, plan)
      count += inputs.lengths.size
    return count

  return make
