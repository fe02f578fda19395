# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Opens what a planned run reads: training batches and evaluation data."""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

from absl import logging
import jax
import numpy as np

from t5wild import evaluator as evaluator_lib
from t5wild import training_plan
from t5wild.data import datasets
from t5wild.data import eval_batches
from t5wild.models import base as models_base
from t5wild.models import seqio_class
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import actions as actions_lib
from t5wild.trainer import initializer


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingData:
  """Readers, evaluators and the shape of a batch.

  Attributes:
    layout: Which rows of a training batch this host reads.
    reader: Training batches of this host.
    eval_datasets: Task name to host batches of teacher-forced evaluation.
    inference_evaluator: Evaluates by decoding, or None.
    input_shapes: Feature to its shape in a global batch.
    input_types: Feature to its dtype.
    position_is_saved: Whether checkpoints hold the position of the reader.
    seed: That the recipe gives the reader; None: it gives none.
  """

  layout: partitioner_lib.DataLayout
  reader: datasets.Reader
  eval_datasets: Mapping[str, Iterable[Any]]
  inference_evaluator: evaluator_lib.InferenceEvaluator | None
  input_shapes: Mapping[str, tuple[int, ...]]
  input_types: Mapping[str, Any]
  position_is_saved: bool
  seed: int | None = None

  @property
  def is_evaluated(self) -> bool:
    """Whether there is anything to do at an evaluation."""
    return bool(self.eval_datasets) or self.inference_evaluator is not None

  @property
  def evaluated_tasks(self) -> dict[actions_lib.ActionMode, list[str]]:
    """Names of the tasks of each kind of evaluation; none where it is not."""
    decoder = self.inference_evaluator
    return {
        actions_lib.ActionMode.TRAIN_EVAL: list(self.eval_datasets),
        actions_lib.ActionMode.INFER_EVAL: (
            [task.name for task in decoder.eval_tasks] if decoder else []
        ),
    }

  @property
  def position_is_exact(self) -> bool:
    """Whether a resumed run is sure to read what an unbroken one would."""
    return self.reader.is_exact and self.position_is_saved

  def start_after(
      self, step: int, *, position: Mapping[str, Any] | None
  ) -> None:
    """Goes to the position that was saved after a step, if one was."""
    if position is not None:
      self.reader.load_state_dict(position)
      self._tell_seed()
    if hasattr(self.reader, 'start_at'):  # rates and exclusions begin at steps
      self.reader.start_at(step)

  def _tell_seed(self) -> None:
    used = self.reader.state_dict().get('seed')
    if None not in (used, self.seed) and used != self.seed:
      logging.warning(
          'Training data: they go on in the order of seed %s, as saved; seed '
          '%s of the recipe is not used for them, since a run keeps the order '
          'that it began with. For another order train in another MODEL_DIR.',
          used, self.seed,
      )  # fmt: skip

  def tell_promise(self) -> None:
    """Says what a resumed run reads; after `start_after`, which settles it."""
    if self.position_is_saved:
      level = logging.INFO if self.reader.is_exact else logging.WARNING
      logging.log(level, 'Training data: %s', self.reader.promise)
      return
    logging.warning(
        'Training data: its position is not saved (SaveCheckpointConfig.'
        'save_dataset is False), so a resumed run reads it from the beginning '
        'and repeats what it has seen. Set save_dataset to True to go on where '
        'the run was.'
    )

  def check_decoding(self, states: Any) -> None:
    """Refuses arguments of decoding that evaluations would run into."""
    if self.inference_evaluator is not None:
      self.inference_evaluator.check_decoding(
          states.global_train_state_shape, states.train_state_axes
      )

  def abstract_batch(self) -> dict[str, jax.ShapeDtypeStruct]:
    """The global batch without its numbers."""
    return {
        name: jax.ShapeDtypeStruct(shape, self.input_types[name])
        for name, shape in self.input_shapes.items()
    }

  def batch_bytes(self) -> int:
    """Bytes of a global batch."""
    return sum(
        int(np.prod(shape)) * np.dtype(self.input_types[name]).itemsize
        for name, shape in self.input_shapes.items()
    )


def open_training_data(plan: training_plan.TrainingPlan) -> TrainingData:
  """Opens all data of a run; nothing is compiled.

  Raises:
    ValueError: A config does not fit its task, the model or the mesh.
    OSError: Files are not there.
  """
  cfg = plan.train_dataset_cfg
  layout = plan.partitioner.get_data_layout(cfg.batch_size)
  verify = plan.verify_matching_vocabs_fn
  is_transformer = isinstance(plan.model, models_base.BaseTransformerModel)
  for one in (cfg, plan.train_eval_dataset_cfg):
    if verify is not None and one is not None and is_transformer:
      verify(one, plan.model)
  reader = datasets.make_train_reader(
      cfg,
      data_layout=layout,
      feature_converter_cls=_converter_class(plan),
      get_dataset_fn=plan.get_dataset_fn,
  )
  save = plan.checkpoint_cfg.save
  position_is_saved = save is None or save.save_dataset
  spec = reader.element_spec
  return TrainingData(
      layout=layout,
      reader=reader,
      eval_datasets=_open_eval_data(plan),
      inference_evaluator=_open_inference_data(plan),
      input_shapes={
          name: (layout.batch_size, *shape[1:])
          for name, (shape, _) in spec.items()
      },
      input_types={name: dtype for name, (_, dtype) in spec.items()},
      position_is_saved=position_is_saved,
      seed=getattr(cfg, 'seed', None),
  )


def make_states(
    plan: training_plan.TrainingPlan, data: TrainingData
) -> initializer.TrainStateInitializer:
  """Makes what describes and makes train states; nothing is compiled."""
  return plan.train_state_initializer_cls(
      optimizer_def=plan.model.optimizer_def,
      init_fn=plan.model.get_initial_variables,
      input_shapes=data.input_shapes,
      input_types=data.input_types,
      partitioner=plan.partitioner,
  )


def _converter_class(plan: training_plan.TrainingPlan) -> Any:
  if plan.get_dataset_fn or plan.train_eval_get_dataset_fn:
    # Code written for T5X may ask which class it is.
    return plan.model.FEATURE_CONVERTER_CLS
  return seqio_class.converter_class_of(plan.model)


def _open_eval_data(plan: training_plan.TrainingPlan) -> Mapping[str, Any]:
  cfg = plan.train_eval_dataset_cfg
  if cfg is None:
    return {}
  layout = plan.partitioner.get_data_layout(cfg.batch_size)
  converter = _converter_class(plan)
  if plan.train_eval_get_dataset_fn is None:
    return datasets.make_eval_batches(
        cfg,
        data_layout=layout,
        eval_steps=plan.eval_steps,
        feature_converter_cls=converter,
    )
  given = plan.train_eval_get_dataset_fn(
      cfg, layout.shard_id, layout.num_shards, plan.eval_steps, converter
  )
  return {
      # A tf.data pipeline gives tensors, anything else its own batches.
      name: eval_batches.EvalBatches(dataset, use_memory_cache=True)
      if hasattr(dataset, 'as_numpy_iterator')
      else dataset
      for name, dataset in given.items()
  }


def _open_inference_data(
    plan: training_plan.TrainingPlan,
) -> evaluator_lib.InferenceEvaluator | None:
  cfg = plan.infer_eval_dataset_cfg
  if cfg is None:
    return None
  provider = datasets.open_provider(cfg)
  if cfg.pack:
    logging.warning(
        'infer_eval_dataset_cfg has pack = True; decoding is of one example a '
        'row, so nothing is packed.'
    )
  try:
    return evaluator_lib.InferenceEvaluator(
        dataclasses.replace(cfg, mixture_or_task_name=provider),
        plan.inference_evaluator_cls,
        plan.model,
        plan.partitioner,
        log_dir=plan.model_dir,
        verify_matching_vocabs_fn=plan.verify_matching_vocabs_fn,
    )
  except evaluator_lib.NoMetricsError as error:
    # T5X's finetune.gin evaluates whatever task it is given.
    logging.warning('The run goes on without evaluation by decoding: %s', error)
    return None
