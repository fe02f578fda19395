# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A task's metrics of what a model predicts: of all examples, on every mesh."""

import functools
import json
import types

from jax.sharding import PartitionSpec
import numpy as np
import pytest
import seqio

from t5wild import data
from t5wild import evaluator as evaluator_lib
from t5wild import partitioning
from t5wild.models import base
from tests.end_to_end import copy_task

STATE = types.SimpleNamespace(
    step=7, params={'scale': np.float32(1)}, flax_mutables={}
)
AXES = types.SimpleNamespace(
    params={'scale': PartitionSpec()}, flax_mutables={}
)


class _Copies(base.BaseModel):
  """Predicts the inputs, which are right, and scores their number."""

  FEATURE_CONVERTER_CLS = seqio.EncDecFeatureConverter

  def __init__(self):
    super().__init__(optimizer_def=None)

  def loss_fn(self, params, batch, dropout_rng, flax_mutables=None):
    """Not used."""

  def get_initial_variables(self, rng, input_shapes, *unused):
    """Not used."""

  def predict_batch_with_aux(self, params, batch, rng=None):
    return batch['encoder_input_tokens'], {'scores': self.score_batch(
        params, batch
    )}

  def score_batch(self, params, batch, return_intermediates=False):
    return params['scale'] * (batch['decoder_target_tokens'] != 0).sum(axis=-1)


def _config(task=None, **fields):
  return data.DatasetConfig(**{
      'mixture_or_task_name': task or copy_task.copy_task(),
      'task_feature_lengths': None,
      'split': 'validation',
      'batch_size': 8,
      'shuffle': False,
      'seed': 42,
      **fields,
  })


def _make(cfg=None, *, mesh=None, cls=None, log_dir=None):
  return evaluator_lib.InferenceEvaluator(
      cfg or _config(),
      cls,
      _Copies(),
      partitioning.PjitPartitioner(mesh_shape=mesh or {'data': 8}),
      log_dir=log_dir,
  )


@pytest.mark.parametrize(
    'mesh', [{'data': 1, 'model': 8}, {'data': 8}, {'data': 4, 'model': 2}],
    ids=str,
)
def test_metrics_are_those_of_all_examples_on_every_mesh(mesh):
  evaluator = _make(mesh=mesh)
  lengths = [len(text) + 1 for text in copy_task.texts('validation')]
  for _ in range(2):
    assert evaluator.evaluate(STATE, AXES) == {
        't5wild_copy': {
            'character_accuracy': 1.0,
            'num_predictions': 11,
            'mean_score': pytest.approx(np.mean(lengths)),
            'num_scores': 11,
        }
    }
  evaluator.close()


def test_without_lengths_they_are_the_longest_there_are():
  longest = max(map(len, copy_task.texts('validation'))) + 1
  shapes = _make().model_feature_shapes
  assert shapes['encoder_input_tokens'] == (longest,)
  fields = {'task_feature_lengths': {'inputs': 20, 'targets': 10}}
  assert _make(_config(**fields)).model_feature_shapes == {
      'encoder_input_tokens': (20,), 'decoder_target_tokens': (10,),
      'decoder_input_tokens': (10,), 'decoder_loss_weights': (10,),
  }  # fmt: skip


def test_targets_and_predictions_are_left_as_json_lines(tmp_path):
  evaluator = _make(log_dir=str(tmp_path))
  assert not any(tmp_path.iterdir())  # a dry run writes nothing
  evaluator.evaluate(STATE, AXES)
  folder = tmp_path / 'inference_eval'
  lines = (folder / 't5wild_copy-000007.jsonl').read_text().splitlines()
  texts = copy_task.texts('validation')
  assert [json.loads(line)['target'] for line in lines] == texts
  assert [json.loads(line)['prediction'] for line in lines] == texts


def test_a_task_needs_no_registration_and_none_is_left_behind():
  names = set(seqio.TaskRegistry.names())
  _make()
  assert set(seqio.TaskRegistry.names()) == names


def test_an_evaluator_class_gets_the_arguments_of_seqio(tmp_path):
  cls = functools.partial(
      seqio.Evaluator, num_examples=3, logger_cls=(seqio.JSONLogger,)
  )
  evaluator = _make(cls=cls, log_dir=str(tmp_path))
  metrics = evaluator.evaluate(STATE, AXES)['t5wild_copy']
  assert metrics['num_predictions'] == 3


@pytest.mark.parametrize(
    ('task', 'fields', 'message'),
    [
        (copy_task.make_task('x', metric_fns=[]), {}, 'x: no metric_fns'),
        (None, {'split': 'test'}, r"no split 'test', its splits: \['train'"),
        (None, {'batch_size': 6}, 'Expected a multiple of 8'),
    ],
)
def test_what_cannot_be_evaluated_is_refused(task, fields, message):
  with pytest.raises(ValueError, match=message):
    _make(_config(task, **fields))


def test_a_task_without_metrics_is_told_from_a_split_that_is_not_there():
  task = copy_task.make_task('x', metric_fns=[])
  with pytest.raises(evaluator_lib.NoMetricsError):
    _make(_config(task))
  with pytest.raises(ValueError, match='no split') as raised:
    _make(_config(task, split='test'))
  assert not isinstance(raised.value, evaluator_lib.NoMetricsError)


def test_a_metric_that_fails_names_its_task():
  def broken(targets, predictions):
    raise RuntimeError(f'{len(targets)} targets are odd')

  evaluator = _make(_config(copy_task.make_task('odd', metric_fns=[broken])))
  with pytest.raises(ValueError, match='task odd: 11 targets are odd'):
    evaluator.evaluate(STATE, AXES)


def test_a_metric_whose_package_is_missing_is_refused_before_any_step():
  def score(targets, predictions):
    return {'score': len(targets)}

  score.needs = {'no_such_module': 'no-such-package'}
  task = copy_task.make_task('scored', metric_fns=[score])
  with pytest.raises(ValueError, match='pip install no-such-package'):
    _make(_config(task))


def test_a_log_that_cannot_be_written_does_not_end_the_run(tmp_path, caplog):
  (tmp_path / 'inference_eval').write_text('a file where a folder should be')
  evaluator = _make(log_dir=str(tmp_path))
  assert evaluator.evaluate(STATE, AXES) == {}
  assert 'were not written' in caplog.text
  (tmp_path / 'inference_eval').unlink()
  (tmp_path / 'inference_eval').mkdir()
  assert 't5wild_copy' in evaluator.evaluate(STATE, AXES)
