# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of a recipe that its programs are made of, and these programs.

A recipe is one of training (it binds `train`) or of T5X's precompile binary (it
binds `precompile`). Nothing of it is run: data stay closed, states are shapes.
"""

from collections.abc import Callable, Mapping
import copy
import dataclasses
import functools
from typing import Any

import gin
import jax

from t5wild.data import datasets
from t5wild.models import base as models_base
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.planner import batches
from t5wild.trainer import initializer
from t5wild.trainer import trainer as trainer_lib

_TASK = 'mixture_or_task_name'
_LEARNING_RATE = 1e-3  # any: it is compiled in, and changes no shape


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
  """What a recipe binds, made.

  Attributes:
    model: the model.
    partitioner: its mesh is made of the devices selected when it is asked for.
    dataset_cfg: data of training.
    get_dataset_fn: T5X's reader of them, or None.
    make_trainer: `trainer_cls` of the recipe.
    model_dir: where the run would write; None where the recipe does not say.
    total_steps: of the run; None likewise.
  """

  model: models_base.BaseModel
  partitioner: partitioner_lib.BasePartitioner
  dataset_cfg: Any
  get_dataset_fn: Callable[..., Any] | None
  make_trainer: Callable[..., Any]
  model_dir: str | None
  total_steps: int | None

  @functools.cached_property
  def batch(self) -> batches.Batch:
    """The global batch without its numbers."""
    return batches.abstract_batch(
        model=self.model,
        dataset_cfg=self.dataset_cfg,
        partitioner=self.partitioner,
        get_dataset_fn=self.get_dataset_fn,
    )

  @functools.cached_property
  def states(self) -> initializer.TrainStateInitializer:
    """The state's shapes and how they lie on the mesh."""
    return initializer.TrainStateInitializer(
        optimizer_def=self.model.optimizer_def,
        init_fn=self.model.get_initial_variables,
        input_shapes={name: x.shape for name, x in self.batch.items()},
        input_types={name: x.dtype for name, x in self.batch.items()},
        partitioner=self.partitioner,
    )

  @functools.cached_property
  def trainer(self) -> trainer_lib.BaseTrainer:
    """The trainer of shapes in place of a state."""
    trainer = self.make_trainer(
        model=self.model,
        train_state=self.states.global_train_state_shape,
        partitioner=self.partitioner,
        train_state_axes=self.states.train_state_axes,
        eval_names=(),
        summary_dir=None,
        rng=jax.random.PRNGKey(0),
    )
    trainer.check_train_batch(self.batch)
    return trainer

  @property
  def num_microbatches(self) -> int:
    """Parts of a batch that are in memory one at a time."""
    return getattr(self.trainer, '_num_microbatches', None) or 1

  def lower(self, program: str) -> jax.stages.Lowered:
    """Returns one of `for_topology.PROGRAMS`, lowered for the mesh."""
    state = self.states.global_train_state_shape
    if program == 'train':
      step = self.trainer._partitioned_train_step
      return step.lower(state, self.batch)
    if program == 'eval':
      step = self.trainer._partitioned_eval_step
      return step.lower(state, self.batch)
    decode = self.partitioner.partition(
        self.model.predict_batch,
        in_axis_resources=(
            self.states.train_state_axes.params,
            self.partitioner.data_partition_spec,
        ),
        out_axis_resources=self.partitioner.data_partition_spec,
    )
    return decode.lower(state.params, self._unpacked())

  def _unpacked(self) -> batches.Batch:
    """What decoding reads: one example a row."""
    packed = ('_segment_ids', '_positions')
    return {
        name: x for name, x in self.batch.items() if not name.endswith(packed)
    }


def read(*, train: Any, precompile: Any) -> Recipe:
  """Makes the parts of the recipe that gin has read.

  Args:
    train: the function that trains, configurable.
    precompile: T5X's precompile function, configurable.

  Raises:
    ValueError: the recipe binds neither.
  """
  for function in (train, precompile):
    bound = _bindings(function)
    if not bound.get('get_dataset_fn'):
      _leave_texts_unread()
    if 'model' in bound and 'partitioner' in bound:
      return _read(bound, name=function.__name__)
  raise ValueError(
      'The recipe binds neither train.model nor precompile.model.\n'
      'Expected a recipe that trains, or one of T5X\'s precompile.\n'
      "Add --gin_file=runs/pretrain.gin beside a model file."
  )


def _leave_texts_unread() -> None:
  """Has a name stand in for each task that the recipe makes.

  Such a task lists its files, and reads of them, when it is made; rows follow
  from the lengths alone.
  """
  with gin.unlock_config():
    for (scope, selector), values in list(gin.config._CONFIG.items()):
      is_ours = gin.config._REGISTRY[selector].wrapped is datasets.DatasetConfig
      if is_ours and _is_made(values.get(_TASK)):
        start = f'{scope}/' if scope else ''
        gin.bind_parameter(f'{start}{selector}.{_TASK}', 'any')


def _is_made(value: Any) -> bool:
  """Whether a bound value is what a call returns, through macros."""
  references = list(gin.config.iterate_references([value]))
  if len(references) != 1:
    return False
  (reference,) = references
  if reference.configurable.selector != 'gin.macro':
    return reference.evaluate
  macro = gin.config._CONFIG.get(('/'.join(reference.scopes), 'gin.macro'))
  return _is_made(macro['value']) if macro else False


def _bindings(function: Any) -> Mapping[str, Any]:
  try:
    return gin.get_bindings(function, resolve_references=False)
  except ValueError:
    return {}  # gin knows a function once a file names it


def _read(bound: Mapping[str, Any], *, name: str) -> Recipe:
  for argument in ('model', 'partitioner', 'train_dataset_cfg'):
    if argument not in bound:
      raise ValueError(
          f'The recipe does not bind {name}.{argument}.\n'
          f'Expected it beside {sorted(bound)}.\n'
          'Add it, or include a run file, such as runs/pretrain.gin.'
      )
  # gin makes the objects of references when they are copied.
  made = functools.partial(_made, bound)
  return Recipe(
      model=made('model'),
      partitioner=made('partitioner'),
      dataset_cfg=made('train_dataset_cfg'),
      get_dataset_fn=made('get_dataset_fn'),
      make_trainer=made('trainer_cls') or _plain_trainer,
      model_dir=made('model_dir'),
      total_steps=made('total_steps'),
  )


def _made(bound: Mapping[str, Any], argument: str) -> Any:
  return copy.deepcopy(bound.get(argument))


def _plain_trainer(**arguments: Any) -> trainer_lib.Trainer:
  """T5X's precompile has no trainer of its own: a plain step."""
  return trainer_lib.Trainer(
      learning_rate_fn=functools.partial(_constant, _LEARNING_RATE),
      num_microbatches=None,
      **arguments,
  )


def _constant(value: float, step: jax.Array) -> float:
  del step
  return value
