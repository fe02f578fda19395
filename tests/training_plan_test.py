# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What no run could do is refused when it is planned."""

import dataclasses
import types

import pytest

from t5wild import training_plan
from t5wild.checkpoints import configs
from t5wild.vitals import answers
from t5wild.vitals.services import prometheus_sink

_GOOD = {
    field.name: None
    for field in dataclasses.fields(training_plan.TrainingPlan)
} | {'use_orbax': True, 'model_dir': 'run'}


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        ('get_dataset_fn', 'my_fn', "'my_fn': expected a function"),
        ('total_steps', -3, 'total_steps is -3, expected at least 0'),
        ('eval_period', -1, 'eval_period is -1, expected at least 0: set it'),
        ('stats_period', -1, 'stats_period is -1, expected at least 0: set it'),
        ('eval_steps', -1, 'eval_steps is -1, expected at least 0'),
        ('relative_steps', -5, 'relative_steps is -5.*TRAIN_STEPS_RELATIVE'),
        ('gc_period', -1, 'gc_period is -1, expected at least 0'),
        ('use_orbax', False, 'use_orbax = False'),
        ('sinks', [print], r'holds <built-in function print>\n  expected:'),
        ('sinks', [prometheus_sink.PrometheusSink], 'parentheses'),
        ('sinks', print, r'expected: a list of services'),
        ('actions', {'TRAINEVAL': []}, "did you mean 'TRAIN_EVAL'"),
        ('model_dir', __file__, "MODEL_DIR is '.*is no folder. Expected a fo"),
        ('model_dir', '/tmp/lr[0.1]', r'which Orbax takes for a pattern'),
    ],
)
def test_a_plan_that_cannot_work_is_refused(name, value, message):
  training_plan.TrainingPlan(**_GOOD)
  with pytest.raises(ValueError, match=message):
    training_plan.TrainingPlan(**_GOOD | {name: value})


@pytest.mark.parametrize('name', ['config.gin', 'metrics.jsonl'])
def test_a_folder_where_a_file_of_the_run_belongs_is_refused(tmp_path, name):
  plan = _GOOD | {'model_dir': str(tmp_path)}
  training_plan.TrainingPlan(**plan)
  (tmp_path / name).mkdir()
  with pytest.raises(ValueError, match=f'{name} is a folder.*Mend it'):
    training_plan.TrainingPlan(**plan)
  training_plan.TrainingPlan(**plan | {'dry_run': True})


@pytest.mark.parametrize('name', ['eval_period', 'stats_period'])
def test_a_period_of_0_is_none_as_in_t5x(name):
  plan = training_plan.TrainingPlan(**_GOOD | {name: 0})
  assert getattr(plan, name) is None


@pytest.mark.parametrize(
    ('best_metric', 'actions', 'expected'),
    [
        (None, None, False),
        ('training_eval/task/accuracy', None, False),
        ('inference_eval/task/bleu', None, True),
        (None, {'INFER_EVAL': [types.SimpleNamespace(run=print)]}, True),
        (None, {'TRAIN_EVAL': [types.SimpleNamespace(run=print)]}, False),
    ],
)
def test_metrics_of_decoding_are_awaited_only_where_they_decide(
    best_metric, actions, expected
):
  save = configs.SaveCheckpointConfig(
      keep_best=1 if best_metric else None, best_metric=best_metric
  )
  plan = training_plan.TrainingPlan(
      **_GOOD
      | {
          'actions': actions,
          'checkpoint_cfg': configs.CheckpointConfig(save=save),
      }
  )
  assert plan.decides_by_inference_metrics is expected


@pytest.mark.parametrize(
    ('total', 'relative', 'begins', 'ends', 'has_more'),
    [(8, None, 3, 8, True), (8, None, 8, 8, False), (2, 5, 8, 13, True)],
)
def test_a_run_ends_at_its_total_or_so_many_steps_on(
    total, relative, begins, ends, has_more
):
  plan = training_plan.TrainingPlan(
      **_GOOD | {'total_steps': total, 'relative_steps': relative}
  )
  assert plan.last_step(begins) == ends
  assert plan.trains_after(begins) is has_more


def test_a_checkpoint_past_the_end_is_refused_and_nothing_compiles():
  plan = training_plan.TrainingPlan(**_GOOD | {'total_steps': 8})
  assert not plan.trains_after(9)
  with pytest.raises(ValueError, match='total_steps is 8.*has 9 steps'):
    plan.last_step(9)


@pytest.mark.parametrize(
    ('save', 'told'),
    [
        (None, 'saves nothing'),
        (
            configs.SaveCheckpointConfig(save_dataset=False),
            'saves no position of the data',
        ),
    ],
)
def test_a_rewind_of_a_run_with_nothing_to_go_back_to_is_refused(save, told):
  changes = {
      'answers': answers.Answers(loss_spike='rewind'),
      'checkpoint_cfg': configs.CheckpointConfig(save=save),
  }
  with pytest.raises(ValueError, match=rf'(?s){told}, expected.*save_dataset'):
    training_plan.TrainingPlan(**_GOOD | changes)
  stops = {'answers': answers.Answers(loss_spike='stop')}
  training_plan.TrainingPlan(**_GOOD | changes | stops)


def test_answers_that_are_none_are_refused():
  with pytest.raises(ValueError, match='expected an Answers.*parentheses'):
    training_plan.TrainingPlan(**_GOOD | {'answers': answers.Answers})
