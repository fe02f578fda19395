# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Builds what a recipe of T5X's describes: model, abstract state and trainer.

No step is compiled. What a recipe leaves to others is filled in: macros, a
model or a run file, vocabularies and tasks that lie on unreachable storage.
"""

from collections.abc import Iterator
import contextlib
import copy
import dataclasses
import importlib
import os
import sys
import types
from unittest import mock

import gin
import jax
import numpy as np
import seqio
import tensorflow as tf

from t5wild import assembly
from t5wild import eval as evaluation
from t5wild import gin_utils
from t5wild import infer
from t5wild import precompile
from t5wild import train
from t5wild.compat import recipe_modules
from t5wild.data import datasets
from t5wild.evaluating import session
from t5wild.gin_config import lint
from t5wild.gin_config import reader
from t5wild.inferring import jobs
from t5wild.models import seqio_class
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer
from t5wild.trainer import trainer as trainer_lib

_BINARIES = (
    train.train, evaluation.evaluate, infer.infer, precompile.precompile,
)  # fmt: skip
_MODEL = 't5x/examples/t5/t5_1_1/base.gin'
_RUN = 't5x/configs/runs/pretrain.gin'
_VOCABULARY = os.path.join(
    os.path.dirname(seqio.__file__),
    'test_data/sentencepiece/sentencepiece.model',
)
STAND_INS = set()  # names of modules that were put into sys.modules
_LENGTHS = {'inputs': 16, 'targets': 8}
_VALUES = {
    'BATCH_SIZE': 8,
    'CHECKPOINT_PATH': '/there/checkpoint_1',
    'DROPOUT_RATE': 0.1,
    'EVAL_OUTPUT_DIR': '/there/out',
    'FALLBACK_TO_SCRATCH': False,
    'INFER_OUTPUT_DIR': '/there/out',
    'INITIAL_CHECKPOINT_PATH': '/there/checkpoint_1',
    'LOSS_NORMALIZING_FACTOR': 1.0,
    'MIXTURE_OR_TASK_NAME': 'filled_in',
    'MIXTURE_OR_TASK_NAME_EVAL': 'filled_in',
    'MODEL_DIR': '/there/run',
    'NUM_EXPERTS': 4,
    'RUN_EVAL_BEFORE_TRAINING': False,
    'STATE_TRANSFORMATION_FNS': [],
    'TASK_FEATURE_LENGTHS': _LENGTHS,
    'TASK_FEATURE_LENGTHS_EVAL': _LENGTHS,
    'TRAIN_EVAL_MIXTURE_OR_TASK_NAME': 'filled_in',
    'TRAIN_STEPS': 100,
    'USE_CACHED_TASKS': False,
}


class _Done(Exception):  # noqa: N818 -- it ends a run that went well
  """All is built but the step."""


def build(path: str, *, after=(), folders=()) -> tuple:
  """(model, abstract state, trainer) of the recipe at `path`."""
  files = [*after, path]
  report = _lint(files, (), folders)
  last = lint.last_bindings(report.seen)
  if ('macro', 'MODEL') not in last and not after:
    files.insert(0, _MODEL)
  binary = _binary(report)
  if binary is None:
    files.append(_RUN)
  elif not any(_binds_a_model(each, binary) for each in report.seen):
    files.insert(-1, _RUN)
  report = _lint(files, (), folders)
  bindings = list(_bindings(report))
  report = _lint(files, bindings, folders)
  bindings += [f'{name} = {_VALUES[name]!r}' for name in _missing(report)]
  report = _lint(files, bindings, folders)
  with _synthetic_tasks(report):
    gin_utils.parse_gin_flags(folders, files, bindings)
    return _run(_binary(report))


def _lint(files, bindings, folders):
  read = [reader.read_file(path, search_paths=folders) for path in files]
  flags = [reader.read_text(each).statements[0] for each in bindings]
  return lint.lint(read, flags, load=_StandIns(folders).load)


class _StandIns(recipe_modules.Modules):
  """Gives empty modules in the place of a recipe's own, which hold tasks."""

  def load(self, name):
    try:
      return super().load(name)
    except recipe_modules.OwnModuleError:
      parts = name.split('.')
      for end in range(1, len(parts) + 1):
        module = '.'.join(parts[:end])
        with contextlib.suppress(ImportError):  # t5x itself: a fork has more
          importlib.import_module(module)
        if module not in sys.modules:
          sys.modules[module] = types.ModuleType(module)
          STAND_INS.add(module)
      return sys.modules[name]


def _binary(report):
  """The binary that a recipe configures, or None."""
  sources = {t.signature_source for t in report.targets.values()}
  return next((each for each in _BINARIES if each in sources), None)


def _binds_a_model(seen, binary) -> bool:
  return (
      seen.target is not None
      and seen.target.signature_source is binary
      and seen.binding.parameter == 'model'
  )


def _bindings(report) -> Iterator[str]:
  """What is on unreachable storage, or of other machines, is replaced."""
  bound = {}
  for each in report.seen:
    if each.target is not None:
      owner = bound.setdefault(each.target.signature_source, set())
      owner.add(each.binding.scope)
  for scope in bound.get(seqio.SentencePieceVocabulary, ()):
    prefix = f'{scope}/' if scope else ''
    name = 'seqio.SentencePieceVocabulary.sentencepiece_model_file'
    yield f'{prefix}{name} = {_VOCABULARY!r}'
  for scope in bound.get(datasets.DatasetConfig, ()):
    prefix = f'{scope}/' if scope else ''
    yield f'{prefix}data.DatasetConfig.use_cached = False'
  if partitioner_lib.PjitPartitioner in bound:
    yield 'partitioning.PjitPartitioner.num_partitions = 1'
    yield 'partitioning.PjitPartitioner.model_parallel_submesh = None'
    yield from _batch_for_this_machine(report)


def _batch_for_this_machine(report) -> Iterator[str]:
  """A batch whose microbatches divide by the devices, where it has these."""
  last = lint.last_bindings(report.seen)
  for seen in last.values():
    if seen.binding.parameter == 'num_microbatches':
      number, _ = lint._resolved(seen.binding, last)
      if number and ('macro', 'BATCH_SIZE') in last:
        yield f'BATCH_SIZE = {number * jax.device_count()}'


def _missing(report) -> Iterator[str]:
  """Macros that a flag is to set."""
  last = lint.last_bindings(report.seen)
  required = reader.Macro('gin.REQUIRED')
  for name in [*report.reads, *(k[1] for k in last if k[0] == 'macro')]:
    seen = last.get(('macro', name))
    if name in _VALUES and (seen is None or seen.binding.value == required):
      yield name


def _vocabulary():
  """The vocabulary that the recipe names, or any."""
  try:
    return copy.deepcopy(gin.query_parameter('%VOCABULARY'))  # makes it
  except ValueError:
    return seqio.ByteVocabulary()


def _task(name, *, features, splits):
  """A small task; its vocabulary is the recipe's."""
  found = _vocabulary()

  def examples(split, shuffle_files=False, seed=None):
    del split, shuffle_files, seed
    row = {each: np.arange(2, 8, dtype=np.int32) for each in features}
    return tf.data.Dataset.from_tensors(row).repeat(64)

  return seqio.Task(
      f'synthetic_{name}',
      source=seqio.FunctionDataSource(examples, splits=splits),
      preprocessors=[],
      output_features={
          each: seqio.Feature(found, add_eos=False) for each in features
      },
  )


@contextlib.contextmanager
def _synthetic_tasks(report):
  """Small tasks in the place of all that a recipe names."""
  last = lint.last_bindings(report.seen)

  def values_of(parameter):
    return [
        lint._resolved(seen.binding, last)[0]
        for seen in last.values()
        if seen.binding.parameter == parameter
    ]

  lengths = filter(None, values_of('task_feature_lengths'))
  features = tuple(max(lengths, key=len, default=_LENGTHS))
  splits = {'train', *(each for each in values_of('split') if each)}

  def get(name):
    return _task(name, features=features, splits=splits)

  with mock.patch.object(seqio, 'get_mixture_or_task', get):
    yield


def _run(binary) -> tuple:
  """Runs a binary until all but its step is built."""
  partitioned_step = precompile._partitioned_step
  built = []

  def of_training(plan, data, info, trainer):
    del data, info
    built.append((plan.model, trainer.train_state, trainer))
    raise _Done

  def of_compiling(model, partitioner, states):
    step = partitioned_step(model, partitioner, states)
    built.append((model, states.global_train_state_shape, step))
    raise _Done

  def of_inference(plan, **_):
    built.append(_of_inference(plan))
    raise _Done

  arguments = {'dry_run': True} if binary is train.train else {}
  with (
      mock.patch.object(assembly, '_dry_run', of_training),
      mock.patch.object(precompile, '_partitioned_step', of_compiling),
      mock.patch.object(session, 'run_evaluation', of_inference),
      mock.patch.object(jobs, 'run', of_inference),
      contextlib.suppress(_Done),
  ):
    gin.get_configurable(binary)(**arguments)
  (only,) = built
  return only


def _of_inference(plan) -> tuple:
  """The same of recipes that train nothing."""
  cfg, partitioner = plan.dataset_cfg, plan.partitioner
  if cfg.task_feature_lengths is None:  # as long as the data, once it is read
    cfg = dataclasses.replace(cfg, task_feature_lengths=_LENGTHS)
  reader_ = datasets.make_train_reader(
      cfg,
      data_layout=partitioner.get_data_layout(cfg.batch_size),
      feature_converter_cls=seqio_class.converter_class_of(plan.model),
      get_dataset_fn=None,
  )
  spec = reader_.element_spec
  states = initializer.TrainStateInitializer(
      optimizer_def=plan.model.optimizer_def,
      init_fn=plan.model.get_initial_variables,
      input_shapes={
          name: (cfg.batch_size, *shape[1:])
          for name, (shape, _) in spec.items()
      },
      input_types={name: dtype for name, (_, dtype) in spec.items()},
      partitioner=partitioner,
  )
  trainer = trainer_lib.Trainer(
      model=plan.model,
      train_state=states.global_train_state_shape,
      partitioner=partitioner,
      eval_names=(),
      summary_dir=None,
      train_state_axes=states.train_state_axes,
      rng=jax.random.PRNGKey(0),
      learning_rate_fn=lambda step: 1e-3,
      num_microbatches=None,
  )
  return plan.model, states.global_train_state_shape, trainer
