# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A task's own metrics over what a model predicts or scores.

The metrics are seqio's, computed by seqio.Evaluator, which is imported when an
evaluator is made, not before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import importlib.util
import os
from typing import Any

from absl import logging
import jax
import numpy as np

from t5wild import inference
from t5wild.models import base as models_base
from t5wild.partitioning import distributed

# Metrics of text (BLEU over a test set) are computed by one process, on a CPU.
_METRICS_SECONDS = 3600.0
_FOLDER = 'inference_eval'
_NO_METRICS = 'no metric_fns'

TaskMetrics = dict[str, float | str]


class NoMetricsError(ValueError):
  """Tasks have the split, and none of them metrics."""


class InferenceEvaluator:
  """Decodes (or scores) the examples of tasks and computes their metrics."""

  def __init__(
      self,
      infer_eval_dataset_cfg: Any,
      inference_evaluator_cls: Callable[..., Any] | None,
      model: models_base.BaseModel,
      partitioner: Any,
      log_dir: str | None = None,
      verify_matching_vocabs_fn: Callable[..., None] | None = None,
  ):
    """Reads the examples and measures their lengths (T5X's signature).

    Args:
      infer_eval_dataset_cfg: a `data.DatasetConfig`; without
        `task_feature_lengths` the lengths are the longest of the examples.
      inference_evaluator_cls: seqio.Evaluator or a class of its arguments; None
        is seqio.Evaluator with seqio.JSONLogger.
      model: predicts and scores.
      partitioner: lays batches over the devices.
      log_dir: MODEL_DIR; loggers write into its folder `inference_eval`. None
        means no loggers.
      verify_matching_vocabs_fn: called with (dataset config, model).

    Raises:
      NoMetricsError: no task that has the split has metrics.
      ValueError: no task has the split, or a task has no examples.
    """
    cfg = infer_eval_dataset_cfg
    if verify_matching_vocabs_fn is not None and isinstance(
        model, models_base.BaseTransformerModel
    ):
      verify_matching_vocabs_fn(cfg, model)
    self._cfg = cfg
    self._model = model
    self._partitioner = partitioner
    self._log_dir = os.path.join(log_dir, _FOLDER) if log_dir else None
    self._infer_fns: dict[str, Callable[..., Any]] | None = None
    self._has_log_dir = False
    partitioner.get_data_layout(cfg.batch_size)  # refuses what does not divide
    provider = _provider_of(cfg)
    _check_can_be_evaluated(provider, split=cfg.split)
    make = inference_evaluator_cls or make_seqio_evaluator
    loggers = (
        {'log_dir': self._log_dir} if log_dir else {'logger_cls': ()}
    )
    with _registered(provider):
      self._seqio_evaluator = make(
          mixture_or_task_name=provider.name,
          feature_converter=model.FEATURE_CONVERTER_CLS(pack=False),
          eval_split=cfg.split,
          use_cached=cfg.use_cached,
          seed=cfg.seed,
          sequence_length=cfg.task_feature_lengths,
          use_memory_cache=cfg.use_memory_cache,
          **loggers,
      )
    self._check_not_empty()
    self._check_packages()
    logging.info(
        'Evaluation by decoding: tasks %s, shapes %s',
        [task.name for task in self.eval_tasks],
        dict(self.model_feature_shapes),
    )

  @property
  def model_feature_shapes(self) -> Mapping[str, tuple[int, ...]]:
    """Shape of each feature of one example."""
    return self._seqio_evaluator.model_feature_shapes

  @property
  def eval_tasks(self) -> Sequence[Any]:
    """The seqio tasks that are evaluated."""
    return self._seqio_evaluator.eval_tasks

  def check_decoding(self, train_state: Any, train_state_axes: Any) -> None:
    """Refuses arguments of decoding that cannot work, by tracing it.

    Args:
      train_state: the state, or its shapes.
      train_state_axes: its PartitionSpecs.

    Raises:
      ValueError: an argument is out of its range.
    """
    if self._infer_fns is None:
      self._infer_fns = self._make_infer_fns(train_state_axes)
    batch = {
        name: jax.ShapeDtypeStruct((self._cfg.batch_size, *shape), np.int32)
        for name, shape in self.model_feature_shapes.items()
    }
    if any(task.predict_metric_fns for task in self.eval_tasks):
      self._infer_fns['predict_batch'].trace(
          train_state, batch, jax.random.PRNGKey(0)
      )

  def close(self) -> None:
    """Ends the thread that computes metrics."""
    self._seqio_evaluator.close()

  def evaluate(
      self, train_state: Any, train_state_axes: Any
  ) -> 'Evaluation':
    """Returns task -> metric -> value of a state, the same on every process.

    Waits for the metrics; see `start`, and `PendingMetrics.result` for what is
    returned and raised.
    """
    return Evaluation(self.start(train_state, train_state_axes).result())

  def start(
      self, train_state: Any, train_state_axes: Any
  ) -> 'PendingMetrics':
    """Predicts and scores, and leaves the metrics to a thread of the host.

    The state is not needed any more when this returns. The result of one start
    must be asked for before the next.

    Args:
      train_state: the state.
      train_state_axes: its PartitionSpecs.
    """
    if self._infer_fns is None:
      self._infer_fns = self._make_infer_fns(train_state_axes)
    if not self._has_log_dir:
      self._make_log_dir()
      self._has_log_dir = True
    # What a step's log ran into was told then; seqio would raise it again.
    self._seqio_evaluator._metrics_future = None
    counts = {name: len(rows) for name, rows in self._datasets().items()}
    logging.info('Decodes and scores, which may take a while: %s', counts)
    run = functools.partial(functools.partial, train_state=train_state)
    key = jax.random.PRNGKey(0)
    fns = self._infer_fns
    future, _ = self._seqio_evaluator.evaluate(
        compute_metrics=jax.process_index() == 0,
        step=int(train_state.step),
        predict_fn=run(fns['predict_batch'], rng=key),
        predict_with_aux_fn=run(fns['predict_batch_with_aux'], rng=key),
        score_fn=run(fns['score_batch']),
    )
    return PendingMetrics(future)

  def _make_log_dir(self) -> None:
    """Makes the loggers' folder: seqio.JSONLogger does not."""
    from etils import epath  # bucket paths as well as folders

    if self._log_dir is not None and jax.process_index() == 0:
      with contextlib.suppress(OSError):  # the logger tells it
        epath.Path(self._log_dir).mkdir(parents=True, exist_ok=True)

  def _make_infer_fns(self, train_state_axes: Any) -> dict[str, Any]:
    return {
        name: inference.get_infer_fn(
            getattr(self._model, name),
            self._cfg.batch_size,
            train_state_axes,
            self._partitioner,
        )
        for name in ('predict_batch', 'predict_batch_with_aux', 'score_batch')
    }

  def _check_not_empty(self) -> None:
    empty = [name for name, rows in self._datasets().items() if not len(rows)]
    if empty:
      raise ValueError(
          f'tasks {empty} have no example in split {self._cfg.split!r}: '
          'expected at least one to evaluate. Correct infer_eval/'
          'data.DatasetConfig.split, or the task.'
      )

  def _datasets(self) -> Mapping[str, Any]:
    return getattr(self._seqio_evaluator, 'cached_model_datasets', {})

  def _check_packages(self) -> None:
    """Refuses metrics whose package is missing, before there is a step."""
    missing = [
        (metric.__name__, task.name, module, package)
        for task in self.eval_tasks
        for metric in task.metric_fns
        # Metrics of t5wild.tasks say so: module -> package.
        for module, package in getattr(metric, 'needs', {}).items()
        if importlib.util.find_spec(module) is None
    ]
    for metric, task, module, package in missing:
      raise ValueError(
          f'the metric {metric} of the task {task} needs {module}, which is '
          f'not installed: expected it to evaluate. pip install {package}, or '
          'leave out evaluation by decoding '
          '(train_script.train.infer_eval_dataset_cfg = None).'
      )


class Evaluation(dict[str, TaskMetrics]):
  """Task -> metric -> value, already there."""

  def result(self) -> dict[str, TaskMetrics]:
    """Itself: in T5X a future of it was returned."""
    return self


class PendingMetrics:
  """Metrics that process 0 is computing in another thread."""

  def __init__(self, future: Any):
    """Takes seqio's future of task -> metric -> value, or of None."""
    self._future = future

  def result(self) -> dict[str, TaskMetrics]:
    """Waits for the metrics and returns them, the same on every process.

    All processes call it together.

    Returns:
      Task -> metric -> number or text; metrics of another kind go to seqio's
      loggers only. Without those of a step whose logs the disk did not take.

    Raises:
      ValueError: a metric of a task failed.
    """
    return _shared(_result(self._future))

  def when_done(
      self, function: Callable[[dict[str, TaskMetrics]], None]
  ) -> None:
    """Calls the function with the metrics as soon as they are there.

    In the thread that computed them, on process 0 alone; not after an error,
    which `result` raises.
    """

    def call(future: Any) -> None:
      if future.exception() is None and future.result() is not None:
        function(_result(future)['metrics'])

    self._future.add_done_callback(call)


def make_seqio_evaluator(**arguments: Any) -> Any:
  """seqio.Evaluator, which leaves predictions as JSON lines by default."""
  import seqio

  return seqio.Evaluator(**{'logger_cls': (seqio.JSONLogger,), **arguments})


def _provider_of(cfg: Any) -> Any:
  import seqio

  named = cfg.mixture_or_task_name
  return seqio.get_mixture_or_task(named) if isinstance(named, str) else named


def _check_can_be_evaluated(provider: Any, *, split: str) -> None:
  """Refuses a mixture of which no task has both metrics and the split."""
  import seqio

  reasons = {}
  for task in seqio.get_subtasks(provider):
    if split not in task.splits:
      reasons[task.name] = f'no split {split!r}, its splits: {[*task.splits]}'
    elif not task.metric_fns and not task.metric_objs:
      reasons[task.name] = _NO_METRICS
    else:
      reasons[task.name] = None
  if None not in reasons.values():
    lines = [f'  {name}: {reason}' for name, reason in reasons.items()]
    kind = NoMetricsError if _NO_METRICS in reasons.values() else ValueError
    raise kind(
        f'no task of {provider.name!r} can be evaluated by decoding:\n'
        + '\n'.join(lines)
        + '\nExpected at least one with metric_fns and that split. Give the '
        'seqio.Task metric_fns, correct data.DatasetConfig.split, or set '
        'train_script.train.infer_eval_dataset_cfg (in `t5wild eval`, '
        'inference_evaluator_cls) = None.'
    )
  for name, reason in reasons.items():
    if reason:
      logging.warning('%s is not evaluated by decoding: %s', name, reason)


@contextlib.contextmanager
def _registered(provider: Any) -> Iterator[None]:
  """Lends a task or mixture its name: seqio.Evaluator finds it by that only."""
  import seqio

  is_mixture = isinstance(provider, seqio.Mixture)
  registry = seqio.MixtureRegistry if is_mixture else seqio.TaskRegistry
  name = provider.name
  before = registry.get(name) if name in registry.names() else None
  if before is provider:
    yield
    return
  if before is not None:
    registry.remove(name)
  registry.add_provider(name, provider)
  try:
    yield
  finally:
    registry.remove(name)
    if before is not None:
      registry.add_provider(name, before)


def _result(future: Any) -> dict[str, Any]:
  """{'metrics': ...} of this process, or {'error': why not}."""
  try:
    by_task = future.result() or {}
  except Exception as error:  # noqa: BLE001 -- raised on every process
    if _is_of_the_disk(error):
      logging.error(
          'The results of the evaluation by decoding were not written (%s); '
          'the run goes on without them: free some space, or point MODEL_DIR '
          'elsewhere.', error,
      )
      return {'metrics': {}}
    return {'error': str(error)}
  return {
      'metrics': {
          task: dict(_plain_values(metrics))
          for task, metrics in by_task.items()
      }
  }


def _shared(result: dict[str, Any]) -> dict[str, TaskMetrics]:
  """What process 0 has computed, on every process."""
  first = distributed.meet(
      'metrics of the evaluation by decoding',
      value=result,
      timeout_seconds=_METRICS_SECONDS,
  )[0]
  if 'error' in first:
    raise ValueError(
        f'evaluation by decoding failed: {first["error"]}\nExpected the '
        "task's metric_fns to take the targets and the predictions of all "
        'examples. Correct them, or set '
        'train_script.train.infer_eval_dataset_cfg = None.'
    )
  return first['metrics']


def _is_of_the_disk(error: BaseException | None) -> bool:
  """Whether a logger could not write: TensorFlow's file errors, or Python's."""
  import tensorflow as tf

  while error is not None:
    if isinstance(error, OSError | tf.errors.OpError):
      return True
    error = error.__cause__ or error.__context__
  return False


def _plain_values(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
  """Yields the metrics that are a number or a text."""
  for name, metric in metrics.items():
    value = getattr(metric, 'value', getattr(metric, 'textdata', metric))
    if isinstance(value, str):
      yield name, value
      continue
    try:
      yield name, float(np.asarray(value).reshape(()))
    except (TypeError, ValueError):
      logging.info('%s is no number: it goes to seqio\'s loggers only', name)
