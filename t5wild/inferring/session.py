# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a model over sources, chunk by chunk, into resumable outputs.

While the devices decode a chunk, a thread tokenises the next one and another
writes the one before. A chunk's batches have a few static shapes; its outputs
are put back into the order of its inputs.
"""

from collections.abc import Callable, Iterator, Mapping
import concurrent.futures
import contextlib
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from t5wild.data import argument_checks
from t5wild.inferring import buckets as buckets_lib
from t5wild.inferring import inputs
from t5wild.inferring import outputs as outputs_lib
from t5wild.inferring import progress as progress_lib
from t5wild.inferring import writing
from t5wild.models import base as models_base

# (dataset, rng) -> what `inference.get_infer_fn` says.
InferFn = Callable[..., Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
  """What is done to every source.

  Attributes:
    mode: One of `inputs.MODES`.
    model: Its feature converter makes the batches.
    lengths: Full length of each task feature.
    batch_size: Examples per global batch.
    chunk_size: Examples per chunk.
    num_buckets: The most shapes of batches.
    write_fn: Writes a chunk; of `write_inferences_to_file`'s arguments.
    token_scores: Whether 'score' gives the score of each token, too.
  """

  mode: str
  model: models_base.BaseModel
  lengths: Mapping[str, Any]
  batch_size: int
  chunk_size: int
  num_buckets: int
  write_fn: Callable[..., None]
  token_scores: bool = True

  def __post_init__(self):
    """Refuses lengths, or a number of shapes, that are none."""
    argument_checks.check_lengths(self.lengths)
    _ = self.buckets

  @functools.cached_property
  def converter(self) -> Any:
    """Turns task features into the model's."""
    return self.model.FEATURE_CONVERTER_CLS(pack=False)

  @property
  def deciding(self) -> tuple[str, ...]:
    """The features whose lengths choose a bucket."""
    names = ['inputs', 'targets'] if self.mode == inputs.SCORE else ['inputs']
    return tuple(name for name in names if name in self.lengths)

  @functools.cached_property
  def buckets(self) -> list[dict[str, Any]]:
    """Lengths of each shape of batch."""
    whole = [name for name in self.lengths if name not in self.deciding]
    return buckets_lib.make_buckets(
        self.lengths, num_buckets=self.num_buckets, whole=whole
    )

  def input_shapes(
      self, source: Any
  ) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """Shape and dtype of each feature of a global batch, in full length.

    Raises:
      ValueError: The source has no example.
    """
    first = next(iter(source.examples()), None)
    if first is None:
      raise ValueError(
          f'{source.name} has no example: expected at least one. Correct the '
          'split, or give other inputs.'
      )
    (features,) = inputs.to_model_features(
        [first], converter=self.converter, lengths=self.lengths
    )
    return (
        {n: (self.batch_size, *x.shape) for n, x in features.items()},
        {n: x.dtype for n, x in features.items()},
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chunk:
  """Some examples in a row, made ready for the devices.

  Attributes:
    number: Which chunk of the source.
    examples: As they came.
    digest: Hash of their tokens.
    batches: Pairs of places of examples, and their model features.
  """

  number: int
  examples: list[inputs.Example]
  digest: str
  batches: list[tuple[list[int], list[dict[str, np.ndarray]]]]


def prepare(
    plan: Plan, examples: list[inputs.Example], *, number: int, digest: str
) -> Chunk:
  """Sorts the examples of a chunk into batches of a few shapes."""
  chosen = [
      buckets_lib.choose(
          {name: len(example[name]) for name in plan.deciding}, plan.buckets
      )
      for example in examples
  ]
  planned = buckets_lib.plan(chosen, batch_size=plan.batch_size)
  return Chunk(
      number=number,
      examples=examples,
      digest=digest,
      batches=[
          (
              places,
              inputs.to_model_features(
                  [examples[place] for place in places],
                  converter=plan.converter,
                  lengths=plan.buckets[bucket],
              ),
          )
          for bucket, places in planned.items()
      ],
  )


def run(
    plan: Plan,
    source: Any,
    output: outputs_lib.Output,
    *,
    infer_fn: InferFn,
) -> None:
  """Infers on what of a source is not in its output yet; all processes call it.

  Args:
    plan: What to do.
    source: Examples, the same on every process.
    output: Where to; process 0 writes.
    infer_fn: From `jobs.Engine`.
  """
  with contextlib.closing(output):
    output.start()
    if not output.is_complete:  # by another job, meanwhile
      _run_chunks(plan, source, output, infer_fn=infer_fn)


def _run_chunks(
    plan: Plan,
    source: Any,
    output: outputs_lib.Output,
    *,
    infer_fn: InferFn,
) -> None:
  is_writer = jax.process_index() == 0
  progress = progress_lib.Progress(source.name, total=source.num_examples)
  chunks = _chunks_to_do(plan, source, output, progress)
  with (
      concurrent.futures.ThreadPoolExecutor(1) as reader,
      concurrent.futures.ThreadPoolExecutor(1) as writer,
  ):
    ready = reader.submit(next, chunks, None)
    written = None
    while (chunk := ready.result()) is not None:
      ready = reader.submit(next, chunks, None)
      inferences = infer_chunk(
          chunk, infer_fn=infer_fn, progress=progress
      )
      if written is not None:
        written.result()  # one that failed ends the run here
      if is_writer:
        written = writer.submit(
            output.write,
            chunk.number,
            digest=chunk.digest,
            write=_write_of(plan, source, chunk, inferences),
        )
    if written is not None:
      written.result()
  if is_writer:
    output.finish()
  progress.tell()


def _write_of(plan, source, chunk, inferences) -> Callable[[str], None]:
  def write(path: str) -> None:
    plan.write_fn(
        path,
        inferences,
        writing.Examples(chunk.examples),
        plan.mode,
        source.vocabulary,
    )

  return write


def _chunks_to_do(
    plan: Plan, source: Any, output: outputs_lib.Output, progress
) -> Iterator[Chunk]:
  """Yields the chunks that are not in the output."""
  pieces = inputs.chunks(source.examples(), plan.chunk_size)
  for number, examples in enumerate(pieces):
    digest = inputs.digest_of(examples, list(plan.lengths))
    if output.is_done(number, digest=digest):
      progress.skip(len(examples))
    else:
      yield prepare(plan, examples, number=number, digest=digest)


def infer_chunk(
    chunk: Chunk,
    *,
    infer_fn: InferFn,
    progress: progress_lib.Progress,
) -> writing.Inferences:
  """Returns (outputs, auxiliary values) of a chunk, in its examples' order.

  What is drawn depends on the chunk and the place in it, not on the run.
  """
  outputs: list[Any] = [None] * len(chunk.examples)
  aux: dict[str, list[Any]] = {}
  chunk_rng = jax.random.fold_in(jax.random.PRNGKey(0), chunk.number)
  for number, (places, features) in enumerate(chunk.batches):
    numbered = list(zip(places, features, strict=True))
    result = infer_fn(
        progress.watch(numbered),
        rng=jax.random.fold_in(chunk_rng, number),
    )
    rows, values = result if isinstance(result, tuple) else (result, {})
    for place, row in rows:
      outputs[place] = row
    for name, column in values.items():
      into = aux.setdefault(name, [None] * len(outputs))
      for place, value in zip(places, column, strict=True):
        into[place] = value
  return outputs, aux
