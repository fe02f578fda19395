# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A sweep's runs: all, each once, the same again; what is none is refused."""

import pytest

from t5wild.experiments import designs
from t5wild.experiments import points as points_lib
from t5wild.experiments import sweep as sweep_lib
from t5wild.gin_config import reader


def _sweep(**changed):
  return sweep_lib.Sweep(**{
      'recipe': 'r.gin', 'values': {'x': [1, 2]}, 'metric': 'm', **changed
  })  # fmt: skip


def test_a_grid_is_every_combination():
  points = designs.Grid().points({'a': [1, 2], 'b': ['x', None]})
  assert [dict(p.bindings) for p in points] == [
      {'a': 1, 'b': 'x'}, {'a': 1, 'b': None},
      {'a': 2, 'b': 'x'}, {'a': 2, 'b': None},
  ]  # fmt: skip
  assert len({p.name for p in points}) == 4


def test_more_draws_begin_with_the_same_ones_and_all_differ():
  values = {
      'a': {'log_uniform': [1e-4, 1e-1]}, 'b': {'integers': [1, 3]},
      'c': [True, False], 'd': {'uniform': [0, 1]},
  }  # fmt: skip
  few = designs.Random(num_runs=5, seed=1).points(values)
  many = designs.Random(num_runs=20, seed=1).points(values)
  assert [p.key for p in many[:5]] == [p.key for p in few]
  assert len({p.key for p in many}) == 20
  for point in many:
    assert 1e-4 <= point.bindings['a'] <= 1e-1
    assert point.bindings['b'] in (1, 2, 3)
  other = designs.Random(num_runs=5, seed=2).points(values)
  assert [p.key for p in other] != [p.key for p in few]


def test_rungs_get_fewer_and_longer():
  method = designs.SuccessiveHalving(first_steps=10, last_steps=100, factor=3)
  assert [(r.steps, r.num_runs) for r in method.rungs(20)] == [
      (10, 20), (30, 6), (90, 2), (100, 1)
  ]  # fmt: skip


@pytest.mark.parametrize(
    'value',
    ['it\'s "so"', '@a.b()', '%MACRO', 1e-7, None, True, {'a': ['@x', (1,)]}],
)
def test_a_value_is_gin_text_that_gin_reads_as_that_value(value):
  (binding,) = reader.parse_text(
      f'x.y = {points_lib.gin_text(value)}\n', name='t'
  )
  text = repr(binding.value)
  if isinstance(value, str) and value[0] in '@%':
    assert value.strip('@%()') in text and 'name' in text
  elif not isinstance(value, dict):
    assert binding.value == value


@pytest.mark.parametrize(
    ('changed', 'told'),
    [
        ({'values': {}}, 'nothing differs'),
        ({'values': {'x': []}}, "x is to take []"),
        ({'values': {'x': 3}}, 'x is to take 3'),
        ({'values': {'x y': [1]}}, "'x y' is no name"),
        ({'values': {'MODEL_DIR': ['a', 'b']}}, 'MODEL_DIR is bound'),
        ({'values': {'x': [1, 1.0]}}, 'are the same'),
        ({'values': {'x': [float('nan')]}}, 'is not finite'),
        ({'values': {'x': [len]}}, 'builtin_function'),
        ({'bindings': {'x': 3}}, 'in values and in bindings'),
        ({'values': {'x': {'uniform': [0, 1]}}}, 'in a grid'),
        ({'goal': 'lowest'}, "goal is 'lowest'"),
        (
            {'values': {'x': list(range(200)), 'y': list(range(200))}},
            '40,000 runs',
        ),
        (
            {'method': designs.Random(num_runs=3)},
            '3 different runs are asked for, and only 2',
        ),
        (
            {
                'method': designs.Random(num_runs=1),
                'values': {'x': {'log_uniform': [0, 1]}},
            },
            'low above 0',
        ),
        (
            {
                'method': designs.SuccessiveHalving(
                    first=designs.Grid(), first_steps=1, last_steps=2
                ),
                'bindings': {'TRAIN_STEPS': 5},
            },
            'SuccessiveHalving sets it',
        ),
    ],
)
def test_what_is_no_sweep_is_refused_in_three_parts(changed, told):
  with pytest.raises(points_lib.BadExperimentError) as error:
    _sweep(**changed)
  assert told in str(error.value)
  assert 'expected:' in str(error.value) and 'do:' in str(error.value)


@pytest.mark.parametrize(
    'make',
    [
        lambda: designs.Random(num_runs=0),
        lambda: designs.SuccessiveHalving(first_steps=0, last_steps=1),
        lambda: designs.SuccessiveHalving(first_steps=5, last_steps=1),
        lambda: designs.SuccessiveHalving(
            first_steps=5, last_steps=9, factor=1
        ),
    ],
)
def test_a_method_that_makes_no_runs_is_refused(make):
  with pytest.raises(points_lib.BadExperimentError):
    make()


def test_1_and_true_are_not_the_same_and_1_and_1_0_are():
  def key(value):
    return points_lib.Point(bindings={'x': value}).key

  assert key(1) == key(1.0) != key(True)
  assert key('1') != key(1)
  assert key((1, 2)) == key([1, 2])
