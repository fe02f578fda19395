# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Trainers against T5X's training run, and what the loop relies on."""

from flax import traverse_util
import jax
import numpy as np
import pytest

from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.trainer import trainer as trainer_lib
from tests.trainer import mean_model


def _number(metrics, name):
  metric = metrics[name]
  if hasattr(metric, 'replace_steps'):
    metric = metric.replace_steps(1)
  return float(np.asarray(metric.compute()).reshape(()))


def test_five_steps_with_dropout_equal_t5x(t5x_run, make_run):
  model = make_run.model(config_changes=t5x_run.config_changes)
  batches = t5x_run.train_batches
  trainer = make_run.trainer(model, batches[0], params=t5x_run.initial_params)
  trainer.compile_train(batches[0])
  trace = []
  for step, batch in enumerate(batches):
    metrics = trainer.train_step(batch)
    trace.append([
        _number(metrics, name) for name in ('loss', 'learning_rate', 'accuracy')
    ])
    if step == 0:
      _assert_state_equal(
          trainer.train_state.state_dict(), t5x_run.state_after_step1
      )
  expected = t5x_run.outputs['train_trace_loss_lr_acc'][:5]
  np.testing.assert_allclose(trace, expected, rtol=1e-5)
  assert int(trainer.train_state.step) == 5


def _assert_state_equal(state_dict, expected):
  flat = traverse_util.flatten_dict(state_dict, sep='/')
  assert flat.keys() == expected.keys()
  for path, value in expected.items():
    largest = np.max(np.abs(value)) or 1.0
    difference = np.max(np.abs(np.asarray(flat[path]) - value))
    assert difference < 1e-5 * largest, path


_batch = mean_model.make_batch


@pytest.fixture
def trainer(make_run, tmp_path):
  with make_run.trainer(
      mean_model.Mean(),
      _batch(),
      learning_rate_fn=lambda step: 0.5,
      eval_names=('task',),
      summary_dir=str(tmp_path),
      rng=jax.random.PRNGKey(3),
  ) as one:
    yield one


def test_step_key_is_the_run_key_folded_with_the_step(trainer):
  for step in range(2):
    metrics = trainer.train_step(_batch())
    expected = jax.random.normal(
        jax.random.fold_in(jax.random.PRNGKey(3), step), ()
    )
    np.testing.assert_allclose(_number(metrics, 'noise'), expected, rtol=1e-6)


def test_state_before_a_step_gives_up_its_memory(trainer):
  trainer.compile_train(_batch())
  before = trainer.train_state.params['w']
  trainer.train_step(_batch())
  assert before.is_deleted()
  np.testing.assert_allclose(trainer.train_state.params['w'], 1 - 0.5 * 8)


def test_evaluation_merges_batches_and_leaves_the_state(trainer):
  trainer.compile_eval({'task': _batch(), 'other': _batch(2.0)})
  metrics, number = trainer.eval_batches('task', [_batch(), _batch(2.0)])
  assert number == 2
  assert float(metrics['loss'].compute()) == 8 * 4 * 2 * (1.0 + 2.0)
  assert trainer.eval_batches('task', []) == (None, 0)
  assert int(trainer.train_state.step) == 0


def test_evaluation_compiles_once_for_each_shape(trainer):
  trainer.compile_eval({'a': _batch(), 'b': _batch(), 'c': _batch(size=4)})
  steps = trainer._compiled_eval_steps
  assert steps['a'] is steps['b']
  assert steps['a'] is not steps['c']


def test_train_and_eval_report_as_in_t5x(trainer, tmp_path):
  values = trainer.train(iter([_batch(), _batch()]), 2).result()
  assert values['loss'] == 64.0 + (64.0 - 8 * 4 * 2 * 0.5 * 8)
  assert values['learning_rate'] == 0.5
  assert int(trainer.train_state.step) == 2
  summary = trainer.eval({'task': iter([{'x': np.zeros((8, 4), np.float32)}])})
  assert summary['task']['loss'] == 0.0
  trainer.close()
  assert list((tmp_path / 'train').iterdir())
  assert list((tmp_path / 'training_eval' / 'task').iterdir())


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ({'num_microbatches': -1}, 'num_microbatches is -1'),
        ({'microbatch_semantics': 'mine'}, "microbatch_semantics is 'mine'"),
    ],
)
def test_senseless_arguments_are_refused_when_built(
    make_run, arguments, words
):
  with pytest.raises(ValueError, match=words):
    make_run.trainer(mean_model.Mean(), _batch(), **arguments)


def test_batches_that_do_not_fill_the_mesh_are_refused(make_run):
  trainer = make_run.trainer(
      mean_model.Mean(),
      _batch(),
      partitioner=partitioner_lib.PjitPartitioner(num_partitions=1),
      num_microbatches=2,
  )
  with pytest.raises(ValueError, match='8 is not divisible by.*2 x 8'):
    trainer.compile_train(_batch())


class _Halved(trainer_lib.Trainer):
  """A user's trainer, as written for T5X."""

  @property
  def _partitioned_train_step(self):
    def train_step(train_state, batch):
      halves = jax.tree.map(lambda p: 0.5 * p, train_state.params)
      return train_state.replace_params(halves), {}

    return self._partitioner.partition(
        train_step,
        in_axis_resources=(
            self._train_state_axes,
            self._partitioner.data_partition_spec,
        ),
        out_axis_resources=(self._train_state_axes, None),
        donate_argnums=(0,),
    )


def test_subclasses_may_replace_the_step(trainer):
  halved = _Halved(
      model=mean_model.Mean(),
      train_state=trainer.train_state,
      partitioner=trainer._partitioner,
      eval_names=(),
      summary_dir=None,
      train_state_axes=trainer._train_state_axes,
      rng=jax.random.PRNGKey(0),
      learning_rate_fn=lambda step: 0.1,
      num_microbatches=None,
  )
  halved.train_step(_batch())
  np.testing.assert_allclose(halved.train_state.params['w'], 0.5)


_MESHES = {
    'data': {'num_partitions': 1},
    'model': {'num_partitions': 4},
    'fully_sharded': {'num_partitions': 1, 'parameter_partitioning_dims': 2},
}


@pytest.mark.slow
@pytest.mark.parametrize('mesh', sorted(_MESHES))
def test_accumulated_steps_agree_on_all_meshes(make_run, mesh):
  def losses(partitioner, num_microbatches):
    model = make_run.model(
        config_changes=make_run.small,
        loss_normalizing_factor='NUM_REAL_TARGET_TOKENS',
    )
    batches = [make_run.batch(16, seed=seed) for seed in range(3)]
    trainer = make_run.trainer(
        model,
        batches[0],
        partitioner=partitioner,
        num_microbatches=num_microbatches,
        microbatch_semantics='global',
    )
    trainer.compile_train(batches[0])
    feed = (partitioner.global_batch(b) if partitioner else b for b in batches)
    return [
        _number(trainer.train_step(batch), 'cross_ent_loss') for batch in feed
    ]

  partitioner = partitioner_lib.PjitPartitioner(**_MESHES[mesh])
  np.testing.assert_allclose(
      losses(partitioner, 2), losses(None, None), rtol=1e-5
  )
