# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What no run could do is refused when it is planned."""

import dataclasses

import pytest

from t5wild import training_plan

_GOOD = {
    field.name: None
    for field in dataclasses.fields(training_plan.TrainingPlan)
} | {'use_orbax': True}


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        ('get_dataset_fn', 'my_fn', "'my_fn': expected a function"),
        ('total_steps', -3, 'total_steps is -3, expected at least 0'),
        ('eval_period', 0, 'eval_period is 0, expected at least 1: set it'),
        ('stats_period', 0, 'stats_period is 0, expected at least 1: set it'),
        ('eval_steps', -1, 'eval_steps is -1, expected at least 0'),
        ('relative_steps', -5, 'relative_steps is -5.*TRAIN_STEPS_RELATIVE'),
        ('gc_period', -1, 'gc_period is -1, expected at least 0'),
        ('use_orbax', False, 'use_orbax = False'),
        ('actions', {'TRAINEVAL': []}, "did you mean 'TRAIN_EVAL'"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(name, value, message):
  training_plan.TrainingPlan(**_GOOD)
  with pytest.raises(ValueError, match=message):
    training_plan.TrainingPlan(**_GOOD | {name: value})
