# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The compiling binary: `t5wild precompile` and `python -m t5wild.precompile`.

Compiles the training step of a recipe and trains nothing: to see early that it
compiles and fits, and to fill the compilation cache for the run to come. With
--topology, for a machine that need not be here, by that machine's own compiler.
"""

from collections.abc import Callable, Sequence
import functools
import sys
import threading
import time
from typing import Any

from absl import flags
from absl import logging
from etils import epath
import jax

from t5wild import command_line
from t5wild import gin_utils
from t5wild.data import datasets
from t5wild.models import base as models_base
from t5wild.models import seqio_class
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.planner import for_topology
from t5wild.trainer import initializer
from t5wild.trainer import model_info
from t5wild.trainer import trainer as trainer_lib

# Until then an error is one of the recipe, which a restart would repeat.
_ARGUMENTS_ARE_GOOD = threading.Event()
_MEND = (
    "Include 't5x/configs/runs/precompile.gin' in the place of another run "
    'file, or give --topology (cpu:1, or another machine), which takes recipes '
    'of training as they are.'
)
_LEARNING_RATE = 1e-3  # any: it is compiled in, and changes no shape


def precompile(  # T5X's signature
    *,
    model: models_base.BaseModel,
    train_dataset_cfg: datasets.DatasetConfig,
    partitioner: partitioner_lib.BasePartitioner,
    model_dir: str,
    random_seed: int | None,
    get_dataset_fn: Callable[..., Any] | None = None,
    verify_matching_vocabs_fn: Callable[
        ..., None
    ] | None = datasets.verify_matching_vocabs,
) -> dict[str, int]:
  """Compiles the training step; the arguments are T5X's.

  Writes into `model_dir`: `model-info.txt`, `lowered_step.txt` (StableHLO) and
  `compiled_step.txt` (the compiler's HLO).

  Args:
    model: What would be trained.
    train_dataset_cfg: A `data.DatasetConfig`; its batches give the shapes.
    partitioner: Lays state and batches over the devices.
    model_dir: Folder or bucket path.
    random_seed: Accepted; keys are arguments of the step.
    get_dataset_fn: Gives training batches; see `data.custom_reader`.
    verify_matching_vocabs_fn: Called with (dataset config, model).

  Returns:
    Bytes of one device by kind: 'arguments', 'temporary', as the compiler says;
    empty where it does not.
  """
  del random_seed
  if verify_matching_vocabs_fn is not None:
    verify_matching_vocabs_fn(train_dataset_cfg, model)
  layout = partitioner.get_data_layout(train_dataset_cfg.batch_size)
  spec = datasets.make_train_reader(
      train_dataset_cfg,
      data_layout=layout,
      feature_converter_cls=seqio_class.converter_class_of(model),
      get_dataset_fn=get_dataset_fn,
  ).element_spec
  batch = {
      name: jax.ShapeDtypeStruct((layout.batch_size, *shape[1:]), dtype)
      for name, (shape, dtype) in spec.items()
  }
  states = initializer.TrainStateInitializer(
      optimizer_def=model.optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes={name: x.shape for name, x in batch.items()},
      input_types={name: x.dtype for name, x in batch.items()},
      partitioner=partitioner,
  )
  _ARGUMENTS_ARE_GOOD.set()
  info = model_info.describe(states, partitioner)
  start = time.perf_counter()
  step = _partitioned_step(model, partitioner, states)
  lowered = step.lower(states.global_train_state_shape, batch)
  compiled = lowered.compile()
  logging.info('Compiled in %.1f s', time.perf_counter() - start)
  _write(model_dir, {
      'model-info.txt': info.text(),
      'lowered_step.txt': lowered.as_text(),
      'compiled_step.txt': compiled.as_text(),
  })
  return _memory(compiled)


def _partitioned_step(
    model: Any, partitioner: Any, states: initializer.TrainStateInitializer
) -> Any:
  trainer = trainer_lib.Trainer(
      model=model,
      train_state=states.global_train_state_shape,
      partitioner=partitioner,
      eval_names=(),
      summary_dir=None,
      train_state_axes=states.train_state_axes,
      rng=jax.random.PRNGKey(0),
      learning_rate_fn=functools.partial(_constant, _LEARNING_RATE),
      num_microbatches=None,
  )
  return trainer._partitioned_train_step


def _constant(value: float, step: jax.Array) -> float:
  del step
  return value


def _memory(compiled: Any) -> dict[str, int]:
  analysis = compiled.memory_analysis()
  if analysis is None:
    return {}
  found = {
      'arguments': analysis.argument_size_in_bytes,
      'temporary': analysis.temp_size_in_bytes,
  }
  logging.info('Bytes of one device: %s', found)
  return found


def _write(folder: str, texts: dict[str, str]) -> None:
  if jax.process_index() != 0:
    return
  path = epath.Path(folder)
  path.mkdir(parents=True, exist_ok=True)
  for name, text in texts.items():
    (path / name).write_text(text)


def _start() -> None:
  command_line.use_data_dirs()
  command_line.parse_gin(precompile=precompile)
  gin_utils.configured(precompile, mend=_MEND)()


def run(argv: Sequence[str]) -> int:
  """Runs the binary; returns one of `exit_codes`."""
  for_topology.define_flags()
  code = command_line.exit_code_of_flags(
      argv, make_help=for_topology.help_text, check=for_topology.check_flags
  )
  if code is not None:
    return code
  if flags.FLAGS.topology is not None:
    return for_topology.compile_and_tell(argv[1:])
  return command_line.run_binary(
      _start, is_ready=_ARGUMENTS_ARE_GOOD, for_the_user=()
  )


def main() -> None:
  """Runs with the process's own command line and exits."""
  sys.exit(run(sys.argv))


if __name__ == '__main__':
  # The module that gin files name must be the one that runs.
  from t5wild import precompile as precompile_module

  precompile_module.main()
