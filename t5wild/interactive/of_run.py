# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run's checkpoint at hand: predict, score, train a little, save."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import os
from typing import Any

import jax
import numpy as np

from t5wild import inference
from t5wild import inference_state
from t5wild import train_state as train_state_lib
from t5wild.checkpoints import configs
from t5wild.checkpoints import initialize
from t5wild.checkpoints import manager
from t5wild.inferring import inputs
from t5wild.inferring import interactive
from t5wild.inferring import lengths as lengths_lib
from t5wild.inferring import progress
from t5wild.inferring import session
from t5wild.inferring import steps
from t5wild.inferring import writing
from t5wild.interactive import run_gin
from t5wild.interactive import state as state_lib
from t5wild.interactive import texts
from t5wild.trainer import initializer

Pair = tuple[str, str] | Mapping[str, str]


def load(
    run_dir: str | os.PathLike[str],
    step: int | None = None,
    *,
    batch_size: int = 8,
    input_length: int | None = None,
    decode_length: int | None = None,
    gin_bindings: Sequence[str] = (),
) -> 'LoadedRun':
  """Reads a checkpoint of a run, with the run's own configuration.

  Args:
    run_dir: MODEL_DIR of the run.
    step: Which checkpoint; None is the newest.
    batch_size: Examples computed together; raised to what the devices divide.
    input_length: Most tokens of an input; None is as trained.
    decode_length: Most tokens of a target; None is as trained.
    gin_bindings: `'NAME = value'` each, to override the configuration by.

  Raises:
    ValueError: The directory is no run's, or has no such checkpoint (lists
      those there).
  """
  return LoadedRun(
      os.fspath(run_dir),
      step,
      batch_size=batch_size,
      wishes=_Wishes(input_length=input_length, decode_length=decode_length),
      gin_bindings=gin_bindings,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Wishes:
  """What flags would say to `t5wild infer`."""

  input_length: int | None
  decode_length: int | None
  input_eos: bool | None = None
  mode: str = inputs.PREDICT
  input: str | None = None

  def __getitem__(self, name: str) -> Any:
    """One of them, as a flag with a value."""
    return dataclasses.make_dataclass('_Flag', ['value'])(getattr(self, name))


class LoadedRun:
  """The model of a run, with the state of one checkpoint. See `load`.

  The run's directory is only read.

  Attributes:
    checkpoint: Folder of the checkpoint.
    model: The model.
    lengths: Tokens of inputs and targets.
  """

  def __init__(
      self,
      run: str,
      step: int | None,
      *,
      batch_size: int,
      wishes: _Wishes,
      gin_bindings: Sequence[str],
  ):
    """Reads the parameters; compiles nothing."""
    state_lib.check_one_process()
    self._gin = run_gin.RunGin(run, bindings=gin_bindings)
    self.checkpoint = inference_state.checkpoint_of_step(run, step)
    bound = self._gin.read()
    found = lengths_lib.Lengths.of_run(wishes, bound)
    self.lengths = dict(found.by_feature)
    self.model = bound.need('model')
    self._partitioner = bound.make_partitioner()
    devices = self._partitioner.data_mesh_size
    self._cfg = inputs.FileConfig(
        paths='-',
        task_feature_lengths=self.lengths,
        batch_size=-(-batch_size // devices) * devices,
        add_eos=found.add_eos,
    )
    self._restore_cfg = configs.RestoreCheckpointConfig(
        path=self.checkpoint, mode='specific'
    )
    self._trainer: Any = None
    self._infer_fns: dict[str, Callable[..., Any]] = {}
    self._state, self._axes = self._read_parameters()

  @property
  def step(self) -> int:
    """Number of updates in the state."""
    return int(self.state.step)

  @property
  def state(self) -> Any:
    """The newest state; one to infer with until something is trained."""
    return self._trainer.train_state if self._trainer else self._state

  def predict(self, examples: Sequence[str]) -> list[Any]:
    """Returns what the model decodes of each text.

    Where it gives several decodes of each, a list of texts.
    """
    outputs, _ = self._infer(
        inputs.PREDICT, [{'inputs': text} for text in _listed(examples)]
    )
    return [self._text(tokens) for tokens in outputs]

  def score(
      self, examples: Sequence[str], targets: Sequence[str]
  ) -> list[float]:
    """Returns the log likelihood of each target, given its text.

    Raises:
      ValueError: There are not as many targets as texts.
    """
    examples, targets = _listed(examples), _listed(targets)
    if len(examples) != len(targets):
      raise ValueError(
          f'{len(examples)} texts and {len(targets)} targets were given: '
          'expected one target for each text. Pair them.'
      )
    outputs, _ = self._infer(
        inputs.SCORE,
        [
            {'inputs': text, 'targets': target}
            for text, target in zip(examples, targets, strict=True)
        ],
    )
    return [float(score) for score in outputs]

  def train(
      self, examples: Sequence[Pair], num_epochs: int = 1
  ) -> dict[str, float]:
    """Trains on pairs of texts, as the run was trained; saves nothing.

    Args:
      examples: Pairs (input, target), or dicts of them.
      num_epochs: Times that all examples are gone through, with an update for
        every `batch_size` of them; what is missing in the last is left empty.

    Returns:
      Metrics of the last update, by name.
    """
    if num_epochs < 1:
      raise ValueError(
          f'num_epochs is {num_epochs!r}: expected at least 1. Raise it.'
      )
    self._gin.use()
    maker = inputs.ExampleMaker(
        self._cfg, model=self.model, mode=inputs.SCORE
    )
    made = [
        maker.make(_as_pair(example, number=number))[0]
        for number, example in enumerate(_listed(examples))
    ]
    features = self._features(made)
    size = self._cfg.batch_size
    batches = [
        _as_batch(features[start : start + size], size)
        for start in range(0, len(features), size)
    ]
    if self._trainer is None:
      self._trainer = self._make_trainer(batches[0])
    for _ in range(num_epochs):
      for batch in batches:
        report = self._trainer.train(iter([batch]), 1, self.step)
    return report.result()

  def save(self, folder: str | os.PathLike[str]) -> str:
    """Saves what was trained as `folder/checkpoint_STEP`; returns that path.

    Raises:
      ValueError: Nothing was trained.
      manager.StateNotSavedError: It could not be written.
    """
    if self._trainer is None:
      raise ValueError(
          f'nothing was trained since {self.checkpoint} (step {self.step}): '
          'expected something new to save. Call train first.'
      )
    saver = manager.CheckpointManager(
        folder, config=configs.SaveCheckpointConfig(save_dataset=False)
    )
    saver.save(self.step, self.state, force=True)
    is_saved = saver.wait()
    newest = saver.latest_step()
    saver.close()
    if not is_saved:
      raise manager.StateNotSavedError(
          self.step, directory=os.fspath(folder), newest=newest
      )
    return inference_state.checkpoint_of_step(os.fspath(folder), self.step)

  def _infer(
      self, mode: str, records: Sequence[Mapping[str, str]]
  ) -> writing.Inferences:
    self._gin.use()
    plan = self._plan(mode)
    if mode not in self._infer_fns:
      self._infer_fns[mode] = inference.get_infer_fn(
          steps.make_infer_step(
              self.model, mode=mode, lengths=self.lengths, token_scores=False
          ),
          self._cfg.batch_size,
          self._axes,
          self._partitioner,
          keep_aux_as_numpy=True,
      )
    maker = inputs.ExampleMaker(self._cfg, model=self.model, mode=mode)
    chunk = session.prepare(
        plan, [maker.make(one)[0] for one in records], number=0, digest=''
    )
    return session.infer_chunk(
        chunk,
        infer_fn=functools.partial(
            self._infer_fns[mode], train_state=self.state
        ),
        progress=progress.Progress('texts', total=len(records)),
    )

  def _plan(self, mode: str) -> session.Plan:
    return session.Plan(
        mode=mode,
        model=self.model,
        lengths=self.lengths,
        batch_size=self._cfg.batch_size,
        chunk_size=self._cfg.batch_size,
        num_buckets=4,
        write_fn=writing.write_inferences_to_file,
        token_scores=False,
    )

  def _text(self, tokens: Any) -> Any:
    if tokens and isinstance(tokens[0], list):
      return [self._text(one) for one in tokens]
    return self.model.output_vocabulary.decode(tokens)

  def _features(
      self, examples: Sequence[inputs.Example]
  ) -> list[dict[str, np.ndarray]]:
    return inputs.to_model_features(
        examples,
        converter=self.model.FEATURE_CONVERTER_CLS(pack=False),
        lengths=self.lengths,
    )

  def _read_parameters(self) -> tuple[train_state_lib.InferenceState, Any]:
    shapes, types = self._plan(inputs.PREDICT).input_shapes(
        interactive.EmptyPrompt(self._cfg, model=self.model)
    )
    states = inference_state.InferenceStates(
        model=self.model,
        partitioner=self._partitioner,
        restore_checkpoint_cfg=self._restore_cfg,
        input_shapes=shapes,
        input_types=types,
    )
    return states.restore(self.checkpoint), states.train_state_axes

  def _make_trainer(self, batch: Mapping[str, np.ndarray]) -> Any:
    """The run's own trainer, with the optimizer's state too."""
    bound = self._gin.read()
    states = initializer.TrainStateInitializer(
        optimizer_def=self.model.optimizer_def,
        init_fn=self.model.get_initial_variables,
        input_shapes={name: x.shape for name, x in batch.items()},
        input_types={name: x.dtype for name, x in batch.items()},
        partitioner=self._partitioner,
    )
    rng = jax.random.PRNGKey(bound.get('random_seed') or 0)
    state = initialize.initialize_train_state(
        checkpoint_cfg=configs.CheckpointConfig(restore=self._restore_cfg),
        model_dir=None,
        partitioner=self._partitioner,
        train_state_shape=states.global_train_state_shape,
        train_state_axes=states.train_state_axes,
        init_fn=states.from_scratch,
        rng=rng,
    ).train_state
    self._state = None  # the parameters are in the other, too
    return bound.need('trainer_cls')(
        model=self.model,
        train_state=state,
        partitioner=self._partitioner,
        train_state_axes=states.train_state_axes,
        eval_names=(),
        summary_dir=None,
        rng=jax.random.split(rng, 2)[1],
    )


def _listed(examples: Sequence[Any]) -> list[Any]:
  if isinstance(examples, str | bytes) or not len(examples):
    raise ValueError(
        f'the examples are {examples!r}: expected a list of at least one. Put '
        'them into a list.'
    )
  return list(examples)


def _as_pair(example: Pair, *, number: int) -> dict[str, Any]:
  if isinstance(example, tuple | list) and len(example) == 2:
    return dict(zip(('inputs', 'targets'), example, strict=True))
  if isinstance(example, str):
    raise ValueError(
        f'example {number} is {example!r}: expected a pair (input, target). '
        'Give the target, too.'
    )
  return texts.as_record(example, number=number)


def _as_batch(
    rows: Sequence[Mapping[str, np.ndarray]], size: int
) -> dict[str, np.ndarray]:
  """A batch of rows; empty ones, of no weight, where some are missing."""
  return {
      name: np.stack(
          [row[name] for row in rows]
          + [np.zeros_like(rows[0][name])] * (size - len(rows))
      )
      for name in rows[0]
  }
