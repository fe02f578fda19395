# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Inference on a file, and bare decoding of the batches that it makes."""

from collections.abc import Callable
import functools
import itertools
import pathlib

import jax

from benchmarks import workload as workload_lib
from t5wild import decoding
from t5wild import inference
from t5wild.inferring import inputs
from t5wild.inferring import outputs
from t5wild.inferring import session
from t5wild.inferring import writing
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer


def make_sides(
    workload: workload_lib.Workload, path: pathlib.Path
) -> dict[str, Callable[[], None]]:
  """The two, by name; the first call of each compiles."""
  model = workload_lib.make_model(workload, decode_fn=decoding.greedy_decode)
  cfg = inputs.FileConfig(
      paths=str(path),
      task_feature_lengths={
          'inputs': workload.inputs, 'targets': workload.targets
      },
      batch_size=workload.batch_size,
  )
  plan = session.Plan(
      mode=inputs.PREDICT,
      model=model,
      lengths=cfg.task_feature_lengths,
      batch_size=workload.batch_size,
      chunk_size=20 * workload.batch_size,
      num_buckets=4,
      write_fn=writing.write_inferences_to_file,
  )
  (source,) = inputs.open_sources(
      cfg, model=model, mode=plan.mode, shard=(0, 1), output_feature='targets'
  )
  shapes, types = plan.input_shapes(source)
  partitioner = partitioner_lib.PjitPartitioner(num_partitions=1)
  states = initializer.TrainStateInitializer(
      optimizer_def=None,
      init_fn=model.get_initial_variables,
      input_shapes=shapes,
      input_types=types,
      partitioner=partitioner,
  )
  state = states.from_scratch(jax.random.PRNGKey(0))
  infer_fn = functools.partial(
      inference.get_infer_fn(
          model.predict_batch,
          plan.batch_size,
          states.train_state_axes,
          partitioner,
      ),
      train_state=state,
  )
  names = (f'out-{number}.jsonl' for number in itertools.count())

  def whole():
    output = outputs.Output(
        str(path.parent), next(names), tmp_name='tmp', settings={}
    )
    session.run(plan, source, output, infer_fn=infer_fn)

  decode = jax.jit(model.predict_batch)
  batches = [
      jax.device_put(batch)
      for features in _features(plan, source)
      for _, batch in inference._batches(
          list(enumerate(features)), plan.batch_size
      )
  ]

  def bare():
    for batch in batches:
      jax.block_until_ready(decode(state.params, batch))

  return {'whole': whole, 'bare': bare}


def _features(plan: session.Plan, source):
  """Yields the model's features of the examples of each shape and chunk."""
  pieces = inputs.chunks(source.examples(), plan.chunk_size)
  for number, examples in enumerate(pieces):
    chunk = session.prepare(plan, examples, number=number, digest='')
    for _, features in chunk.batches:
      yield features
