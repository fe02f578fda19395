# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics add up as their names say."""

from clu import metrics as clu_metrics
import jax
from jax import numpy as jnp
import numpy as np
import pytest

from t5wild import metrics


@pytest.mark.parametrize(
    ('values', 'expected'),
    [(2.0, 2.0), ([1, 2, 3], 6.0), ([[1, 2], [2, 3]], 8.0), ([[[1], [2]]], 3)],
)
def test_sum_is_over_all_values_and_merges(values, expected):
  one = metrics.Sum.from_model_output(values)
  assert one.compute() == expected
  assert one.merge(one).compute() == 2 * expected


def test_average_per_step_divides_the_sum_by_steps():
  one = metrics.AveragePerStep.from_model_output([1.0, 3.0])
  assert one.compute() == 4.0
  assert one.merge(metrics.AveragePerStep(total=2.0)).compute() == 3.0
  assert one.replace_steps(8).compute() == 0.5


def test_steps_set_by_the_host_win_over_merged_microbatches():
  microbatch = {'loss': metrics.AveragePerStep(total=3.0), 'n': metrics.Sum(1)}
  merged = {k: v.merge(v) for k, v in microbatch.items()}
  assert merged['loss'].compute() == 3.0
  merged = metrics.set_step_metrics_num_steps(merged, 1)
  assert merged['loss'].compute() == 6.0
  assert merged['n'].compute() == 2


def test_rates_divide_by_the_seconds_set_by_the_host():
  tree = {
      'rate': metrics.TimeRate.from_model_output(jnp.asarray(6.0)),
      'steps': metrics.StepsPerTime.from_model_output(steps=8),
      'seconds': metrics.Time(),
      'sum': metrics.Sum(1.0),
  }
  tree = metrics.set_time_metrics_duration(tree, 2.0)
  computed = {name: float(metric.compute()) for name, metric in tree.items()}
  assert computed == {'rate': 3.0, 'steps': 4.0, 'seconds': 2.0, 'sum': 1.0}


@pytest.mark.parametrize(
    'metric',
    [
        metrics.Time(),
        metrics.TimeRate.from_model_output(jnp.asarray(1.0)),
        metrics.StepsPerTime.from_model_output(),
    ],
)
def test_seconds_never_set_are_an_error_that_names_the_mend(metric):
  with pytest.raises(ValueError, match='is None.*call `replace_duration`'):
    metric.compute()


def test_steps_never_set_are_an_error_that_names_the_mend():
  metric = metrics.AveragePerStep(total=1.0, steps=None)
  with pytest.raises(ValueError, match='is None.*call `replace_steps`'):
    metric.compute()


def test_merging_rates_adds_numerators_and_refuses_set_seconds():
  rate = metrics.TimeRate.from_model_output(jnp.asarray(1.0))
  assert rate.merge(rate).replace_duration(0.5).compute() == 4.0
  with pytest.raises(ValueError, match=r'\[None, 2\.0\]'):
    rate.merge(rate.replace_duration(2.0))


def test_merging_steps_per_time_adds_steps():
  one = metrics.StepsPerTime.from_model_output(steps=2)
  assert one.merge(one).replace_duration(2.0).compute() == 2.0


def test_merging_different_types_is_refused():
  with pytest.raises(TypeError, match='StepsPerTime'):
    metrics.AveragePerStep(total=1.0).merge(metrics.StepsPerTime())


def test_metrics_pass_through_a_compiled_loop():
  start = {
      'a': metrics.AveragePerStep(total=jnp.asarray(0.0), steps=0),
      't': metrics.TimeRate.from_model_output(jnp.asarray(0.0)),
  }

  def body(i, tree):
    new = {
        'a': metrics.AveragePerStep.from_model_output(i.astype(jnp.float32)),
        't': metrics.TimeRate.from_model_output(jnp.asarray(1.0)),
    }
    return {name: tree[name].merge(new[name]) for name in tree}

  end = jax.jit(lambda tree: jax.lax.fori_loop(0, 4, body, tree))(start)
  assert end['a'].total == 6.0
  assert end['a'].steps == 4
  assert metrics.set_time_metrics_duration(end, 2.0)['t'].compute() == 2.0


def test_shapes_become_zeros_of_the_same_metric():
  shapes = jax.eval_shape(
      lambda: {
          'average': clu_metrics.Average(
              total=jnp.ones(()), count=jnp.ones((), jnp.int32)
          ),
          'rate': metrics.TimeRate.from_model_output(jnp.ones(())),
      }
  )
  average = metrics.shape_obj_to_defined_obj(shapes['average'])
  assert isinstance(average, clu_metrics.Average)
  np.testing.assert_array_equal(average.count, np.zeros((), np.int32))
  assert average.count.dtype == jnp.int32
  assert metrics.shape_obj_to_defined_obj(shapes['rate']).duration is None


def test_numbers_become_sums_under_the_same_names():
  made = metrics.create_metrics_dict({'a': 1.0, 'b': 2})
  assert {name: float(m.compute()) for name, m in made.items()} == {
      'a': 1.0,
      'b': 2.0,
  }


def test_kinds_of_metrics_are_told_apart():
  assert metrics.is_metric_obj(metrics.Sum(1.0))
  assert not metrics.is_metric_obj(1.0)
  assert metrics.is_time_metric(metrics.StepsPerTime())
  assert not metrics.is_time_metric(metrics.Sum(1.0))
