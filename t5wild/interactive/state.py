# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A model with its state, trained on texts: half of an InteractiveModel."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import os
from typing import Any

from absl import logging
import jax
import numpy as np

from t5wild.checkpoints import configs
from t5wild.checkpoints import initialize
from t5wild.checkpoints import manager
from t5wild.inferring import inputs
from t5wild.interactive import texts
from t5wild.models import base as models_base
from t5wild.optimizers import schedules
from t5wild.partitioning import distributed
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import initializer
from t5wild.trainer import trainer as trainer_lib

Examples = Sequence[texts.Example]
Preprocessors = Sequence[Callable[..., Any]]


class TrainableModel:
  """A model with its state, that makes updates on examples at hand."""

  def __init__(  # noqa: PLR0913 -- T5X's signature
      self,
      batch_size: int,
      task_feature_lengths: Mapping[str, int],
      output_dir: str,
      partitioner: partitioner_lib.BasePartitioner,
      model: models_base.BaseTransformerModel,
      dtype: str | None,
      restore_mode: str,
      checkpoint_path: str | Sequence[str] | None,
      input_shapes: Mapping[str, Any],
      input_types: Mapping[str, Any] | None = None,
      init_random_seed: int = 42,
      add_eos: bool = True,
      eval_names: Sequence[str] | None = None,
      *,
      learning_rate_fn: Callable[[Any], Any] | None = None,
      saves_every_step: bool = True,
  ):
    """Restores or makes the state.

    It is that of `checkpoint_path`, else the newest in `output_dir`, else new.

    Args:
      batch_size: Examples of a batch, in training and inference.
      task_feature_lengths: Most tokens of 'inputs' and 'targets'.
      output_dir: Folder of checkpoints and of TensorBoard events.
      partitioner: Lays state and batches over the devices.
      model: The model; with seqio vocabularies.
      dtype: 'float32' or 'bfloat16' to restore parameters to; None as saved.
      restore_mode: 'specific' or 'latest', of `checkpoint_path`.
      checkpoint_path: A checkpoint, or a folder of some; '' or None for none.
      input_shapes: Feature of the model to the shape of a batch.
      input_types: Feature to dtype; None means int32 throughout.
      init_random_seed: Seed of parameters and dropout.
      add_eos: Whether texts get an end token.
      eval_names: Names of data sets for `trainer.eval`.
      learning_rate_fn: Step to learning rate; None: the scheduler's defaults.
      saves_every_step: Whether `train_step` saves a checkpoint, as in T5X.

    Raises:
      ValueError: There are several processes, or arguments do not fit.
    """
    import seqio

    check_one_process()
    partitioner.get_data_layout(batch_size)  # refuses what does not divide
    self._batch_size = batch_size
    self._task_feature_lengths = task_feature_lengths
    self._output_dir = os.fspath(output_dir)
    self._partitioner = partitioner
    self._model = model
    self._saves_every_step = saves_every_step
    self._features = {
        'inputs': seqio.Feature(model.input_vocabulary, add_eos=add_eos),
        'targets': seqio.Feature(model.output_vocabulary, add_eos=add_eos),
    }
    self._restore_cfg = None
    if checkpoint_path:
      self._restore_cfg = configs.RestoreCheckpointConfig(
          path=checkpoint_path, mode=restore_mode, dtype=dtype
      )
    self._save_cfg = configs.SaveCheckpointConfig(
        dtype=dtype, keep=5, save_dataset=False, period=1000
    )
    states = initializer.TrainStateInitializer(
        optimizer_def=model.optimizer_def,
        init_fn=model.get_initial_variables,
        input_shapes={n: _as_shape(s) for n, s in input_shapes.items()},
        input_types=input_types,
        partitioner=partitioner,
    )
    self._trainer = self._make_trainer(
        states,
        seed=init_random_seed,
        eval_names=eval_names or (),
        learning_rate_fn=learning_rate_fn,
    )
    self._manager: manager.CheckpointManager | None = None
    self._train_summary: Any = None

  def _make_trainer(
      self, states, *, seed: int, eval_names, learning_rate_fn
  ) -> trainer_lib.Trainer:
    init_rng, trainer_rng = jax.random.split(jax.random.PRNGKey(seed), 2)
    self._train_state_axes = states.train_state_axes
    return trainer_lib.Trainer(
        model=self._model,
        train_state=self._first_state(states, init_rng),
        partitioner=self._partitioner,
        eval_names=eval_names,
        summary_dir=self._output_dir,
        train_state_axes=states.train_state_axes,
        rng=trainer_rng,
        learning_rate_fn=(
            learning_rate_fn or schedules.create_learning_rate_scheduler()
        ),
        num_microbatches=None,
    )

  def _first_state(self, states, rng: jax.Array):
    return initialize.initialize_train_state(
        checkpoint_cfg=configs.CheckpointConfig(restore=self._restore_cfg),
        model_dir=None if self._restore_cfg else self._output_dir,
        partitioner=self._partitioner,
        train_state_shape=states.global_train_state_shape,
        train_state_axes=states.train_state_axes,
        init_fn=states.from_scratch,
        rng=rng,
    ).train_state

  @property
  def trainer(self) -> trainer_lib.Trainer:
    """The trainer, which holds the state."""
    return self._trainer

  @property
  def partitioner(self) -> partitioner_lib.BasePartitioner:
    """The partitioner."""
    return self._partitioner

  @property
  def model(self) -> models_base.BaseTransformerModel:
    """The model."""
    return self._model

  @property
  def train_state(self) -> Any:
    """The newest state."""
    return self._trainer.train_state

  @property
  def train_state_axes(self) -> Any:
    """PartitionSpecs of the state."""
    return self._train_state_axes

  @property
  def batch_size(self) -> int:
    """Examples of a batch."""
    return self._batch_size

  @property
  def task_feature_lengths(self) -> dict[str, int]:
    """Tokens of each feature."""
    return dict(self._task_feature_lengths)

  @property
  def features(self) -> dict[str, Any]:
    """The seqio features of examples."""
    return dict(self._features)

  @property
  def output_dir(self) -> str:
    """Where checkpoints go."""
    return self._output_dir

  @property
  def checkpoint_path(self) -> Any:
    """The checkpoint that was asked for, or None."""
    return self._restore_cfg.path if self._restore_cfg else None

  @property
  def restore_mode(self) -> str | None:
    """How that path is read, or None."""
    return self._restore_cfg.mode if self._restore_cfg else None

  @property
  def train_summary(self) -> Mapping[str, float]:
    """Metrics of the last training step."""
    if self._train_summary is None:
      raise ValueError(
          f'no step was trained yet (the state has {self.step}): expected a '
          'call of train_step before. Call it first.'
      )
    return self._train_summary.result()

  @property
  def step(self) -> int:
    """Number of updates in the state."""
    return int(self.train_state.step)

  def close(self) -> None:
    """Waits for savers and writers, and ends them."""
    if self._manager is not None:
      self._manager.close()
      self._manager = None
    self._trainer.close()

  def train_step(self, examples: Examples) -> None:
    """Makes one update with the first `batch_size` examples, and saves."""
    self.train_step_with_preprocessors(examples, default_preprocessors())

  def train_step_with_preprocessors(
      self, examples: Examples, preprocessors: Preprocessors
  ) -> None:
    """The same with one's own seqio preprocessors.

    Raises:
      ValueError: There are fewer examples than a batch.
    """
    if self._trainer.stop_training:
      logging.info('trainer.stop_training is set: nothing is trained')
      return
    _, features = self.features_of(examples, preprocessors)
    if len(features) < self._batch_size:
      raise ValueError(
          f'{len(features)} examples were given: expected at least a batch of '
          f'{self._batch_size}. Give more, or make an InteractiveModel with a '
          'smaller batch_size.'
      )
    rows = features[: self._batch_size]
    batch = {n: np.stack([row[n] for row in rows]) for n in rows[0]}
    self.train_step_from_batch_iterator(iter([batch]))
    if self._saves_every_step:
      self.save_checkpoint()

  def train_step_from_batch_iterator(self, iterator: Iterator[Any]) -> None:
    """Makes one update with the next batch of model features; saves nothing."""
    self._train_summary = self._trainer.train(iterator, 1, self.step)
    self._train_summary.result()

  def save_checkpoint(self) -> None:
    """Saves the state in `output_dir`; one of this step is replaced.

    Raises:
      manager.StateNotSavedError: It could not be written.
    """
    if self._manager is None:
      self._manager = manager.CheckpointManager(
          self._output_dir, config=self._save_cfg
      )
    self._manager.save(self.step, self.train_state, force=True)
    if not self._manager.wait():
      raise manager.StateNotSavedError(
          self.step,
          directory=self._output_dir,
          newest=self._manager.latest_step(),
      )

  def features_of(
      self, examples: Examples, preprocessors: Preprocessors
  ) -> tuple[list[dict[str, Any]], list[dict[str, np.ndarray]]]:
    """Returns preprocessed examples, and the model's features of each."""
    dataset = texts.get_dataset_from_natural_text_examples(
        examples,
        preprocessors=preprocessors,
        task_feature_lengths=self._task_feature_lengths,
        features=self._features,
    )
    task_examples = list(dataset.as_numpy_iterator())
    features = inputs.to_model_features(
        task_examples,
        converter=self._model.FEATURE_CONVERTER_CLS(pack=False),
        lengths=self._task_feature_lengths,
    )
    return task_examples, features


def check_one_process() -> None:
  """Refuses several processes.

  Raises:
    ValueError: There are several.
  """
  count = distributed.process_count()
  if count > 1:
    raise ValueError(
        f'there are {count} processes: expected one, which sees all devices. '
        'Start it without a launcher, or use t5wild train, eval and infer.'
    )


def _as_shape(shape: Any) -> tuple[int, ...]:
  return tuple(int(length) for length in shape)


def default_preprocessors() -> Preprocessors:
  """Returns those that make ids of texts, and put an end token after them."""
  import seqio

  return (seqio.preprocessors.tokenize, seqio.preprocessors.append_eos)
