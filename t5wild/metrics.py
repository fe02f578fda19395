# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics that add up over microbatches, steps and hosts.

A metric is a small pytree (clu's `Metric`): built on the device inside the
step, merged there, and computed once on the host. How many steps and seconds it
covers is unknown inside a compiled step, so the host sets both just before it
computes: `set_step_metrics_num_steps`, `set_time_metrics_duration`.
"""

from collections.abc import Callable, Mapping, MutableMapping
import dataclasses
from typing import Any, Self

from clu import metrics as clu_metrics
import flax
import jax
from jax import numpy as jnp
import numpy as np

MetricsMap = MutableMapping[str, clu_metrics.Metric]
Scalar = int | float | np.number | np.ndarray | jax.Array


def _require_set(metric: clu_metrics.Metric, field: str, mend: str) -> Scalar:
  """The field's value; an error that names the mend while it is None."""
  value = getattr(metric, field)
  if value is None:
    raise ValueError(
        f'`{field}` of {type(metric).__name__} is None: expected a number '
        f'before the metric is computed; {mend}'
    )
  return value


def _require_same_type(
    metric: clu_metrics.Metric, other: clu_metrics.Metric
) -> None:
  if type(metric) is not type(other):
    raise TypeError(
        f'{type(metric).__name__} was merged with {type(other).__name__}: '
        'expected two metrics of one type; give them different names'
    )


@flax.struct.dataclass
class Sum(clu_metrics.Metric):
  """Sum of all values seen."""

  total: Scalar

  @classmethod
  def from_model_output(cls, values: Scalar, **_: Any) -> Self:
    """A metric of the sum over a number or an array of any shape."""
    return cls(total=jnp.sum(jnp.asarray(values)))

  def merge(self, other: Self) -> Self:
    """The sum of both."""
    return type(self)(total=self.total + other.total)

  def compute(self) -> jax.Array:
    """The sum."""
    return jnp.asarray(self.total)


@flax.struct.dataclass
class Step(clu_metrics.Metric):
  """Base of metrics that are divided by, or divide, a number of steps.

  Attributes:
    steps: number of finished updates. Set by the host: every microbatch brings
      one, so merging alone would count microbatches.
  """

  steps: int | None = 1

  def replace_steps(self, steps: int) -> Self:
    """The same metric over that many steps."""
    return self.replace(steps=steps)

  def compute(self) -> jax.Array:
    """The number of steps."""
    return jnp.asarray(_require_set(self, 'steps', 'call `replace_steps`'))


@flax.struct.dataclass
class AveragePerStep(Step):
  """Sum of all values seen, divided by the number of steps."""

  total: Scalar | None = None

  @classmethod
  def from_model_output(
      cls, values: Scalar, steps: int | None = 1, **_: Any
  ) -> Self:
    """A metric of the sum over `values`, seen in `steps` steps."""
    return cls(total=jnp.sum(jnp.asarray(values)), steps=steps)

  def merge(self, other: Self) -> Self:
    """Sum of values and of steps."""
    _require_same_type(self, other)
    return type(self)(
        total=self.total + other.total, steps=self.steps + other.steps
    )

  def compute(self) -> jax.Array:
    """The average per step."""
    total = _require_set(self, 'total', 'build it by `from_model_output`')
    return total / Step.compute(self)


@flax.struct.dataclass
class AveragesPerStep(AveragePerStep):
  """Averages per step of several numbers in one array, each with a name.

  One array costs a step what one number does, however many there are.

  Attributes:
    total: [names] sums of the values seen.
    names: of each of them.
  """

  names: tuple[str, ...] = flax.struct.field(pytree_node=False, default=())

  def merge(self, other: Self) -> Self:
    """Sum of values and of steps; both have the same names."""
    _require_same_type(self, other)
    return self.replace(
        total=self.total + other.total, steps=self.steps + other.steps
    )


@flax.struct.dataclass
class Maximum(clu_metrics.Metric):
  """Largest of all values seen."""

  value: Scalar

  @classmethod
  def from_model_output(cls, values: Scalar, **_: Any) -> Self:
    """A metric of the largest of a number or an array of any shape."""
    return cls(value=jnp.max(jnp.asarray(values)))

  def merge(self, other: Self) -> Self:
    """The larger of both."""
    return type(self)(value=jnp.maximum(self.value, other.value))

  def compute(self) -> jax.Array:
    """The largest."""
    return jnp.asarray(self.value)


@flax.struct.dataclass
class Time(clu_metrics.Metric):
  """Seconds that the metric covers.

  Attributes:
    duration: seconds, set by the host (a clock read in a compiled step would
      read the time of its compilation).
  """

  duration: Scalar | None = None

  def merge(self, other: Self) -> Self:
    """The first of both: a duration is set, never summed."""
    del other
    return self

  def replace_duration(self, duration: Scalar) -> Self:
    """The same metric over that many seconds."""
    return self.replace(duration=duration)

  def compute(self) -> jax.Array:
    """The seconds."""
    return jnp.asarray(
        _require_set(self, 'duration', 'call `replace_duration`')
    )


def _require_no_duration(*metrics: Time) -> None:
  durations = [metric.duration for metric in metrics]
  if any(duration is not None for duration in durations):
    raise ValueError(
        f'metrics with durations {durations} were merged: expected None, since '
        'the seconds of both are not known to add up; merge first, then call '
        '`replace_duration`'
    )


@flax.struct.dataclass
class TimeRate(Time):
  """Sum of all values seen, divided by seconds."""

  numerator: Scalar | None = None

  @classmethod
  def from_model_output(cls, numerator: Scalar, **_: Any) -> Self:
    """A metric whose seconds are still to be set."""
    return cls(numerator=numerator)

  def merge(self, other: Self) -> Self:
    """The sum of both; neither may have its duration yet."""
    _require_no_duration(self, other)
    return type(self)(numerator=self.numerator + other.numerator)

  def compute(self) -> jax.Array:
    """The rate per second."""
    numerator = _require_set(
        self, 'numerator', 'build it by `from_model_output`'
    )
    return numerator / Time.compute(self)


@flax.struct.dataclass
class StepsPerTime(Step, Time):
  """Number of steps divided by seconds."""

  @classmethod
  def from_model_output(cls, steps: int | None = 1, **_: Any) -> Self:
    """A metric of so many steps whose seconds are still to be set."""
    return cls(steps=steps)

  def merge(self, other: Self) -> Self:
    """The sum of the steps."""
    _require_same_type(self, other)
    return type(self)(steps=self.steps + other.steps)

  def compute(self) -> jax.Array:
    """Steps per second."""
    return Step.compute(self) / Time.compute(self)


def is_metric_obj(obj: Any) -> bool:
  """Whether it is a metric (and so a leaf of a tree of metrics)."""
  return isinstance(obj, clu_metrics.Metric)


def is_time_metric(obj: Any) -> bool:
  """Whether it is a metric that needs its duration set."""
  return isinstance(obj, Time)


def create_metrics_dict(
    float_metrics_dict: Mapping[str, Scalar],
) -> dict[str, Sum]:
  """A `Sum` of each number, under the same names."""
  return {name: Sum(value) for name, value in float_metrics_dict.items()}


def shape_obj_to_defined_obj(obj: clu_metrics.Metric) -> clu_metrics.Metric:
  """The metric `jax.eval_shape` described, with zeros in place of shapes."""
  return obj.__class__(**{
      field.name: _defined(getattr(obj, field.name))
      for field in dataclasses.fields(obj)
  })


def _defined(value: Any) -> Any:
  if is_metric_obj(value):
    return shape_obj_to_defined_obj(value)
  if hasattr(value, 'shape'):
    return jnp.zeros(value.shape, value.dtype)
  return value


def _map_metrics(
    fn: Callable[[Any], Any], metrics: Any, metric_type: type
) -> Any:
  """Applies `fn` to the metrics of that type in a tree, the rest as it is."""
  return jax.tree.map(
      lambda leaf: fn(leaf) if isinstance(leaf, metric_type) else leaf,
      metrics,
      is_leaf=is_metric_obj,
  )


def set_time_metrics_duration(metrics: Any, duration: Scalar) -> Any:
  """The tree of metrics with the seconds of every `Time` metric set."""
  return _map_metrics(
      lambda metric: metric.replace_duration(duration), metrics, Time
  )


def set_step_metrics_num_steps(metrics: Any, num_steps: int) -> Any:
  """The tree of metrics with the steps of every `Step` metric set."""
  return _map_metrics(
      lambda metric: metric.replace_steps(num_steps), metrics, Step
  )
