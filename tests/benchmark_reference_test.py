# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's reference computes what t5wild computes, no more, no less."""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

_TOOLS = str(pathlib.Path(__file__).resolve().parents[1] / 'tools')
sys.path.insert(0, _TOOLS)
from benchmarks import command_line  # noqa: E402 (after the path is set)
from benchmarks import measure  # noqa: E402
from benchmarks import reference  # noqa: E402
from benchmarks import reference_step  # noqa: E402
from benchmarks import workload as workload_lib  # noqa: E402

sys.path.remove(_TOOLS)

# Kernels of at least 128 x 128, so that Adafactor factors some.
_WORKLOAD = workload_lib.Workload(
    emb_dim=128, mlp_dim=160, num_layers=1, num_heads=2, head_dim=64,
    vocab_size=48, batch_size=8, inputs=20, targets=12,
)


@pytest.fixture(scope='module')
def batch():
  """A batch with padding on both sides."""
  batch = dict(workload_lib.make_batch(_WORKLOAD))
  lengths = {'encoder_input_tokens': 15, 'decoder_target_tokens': 9}
  for name, real in lengths.items():
    batch[name] = batch[name].at[1, real:].set(0)
  batch['decoder_loss_weights'] = (
      batch['decoder_target_tokens'] > 0
  ).astype(jnp.int32)
  return batch


def _make_params(model, batch):
  """Parameters of the model's shapes: cheaper than compiling its init."""
  shapes = jax.eval_shape(
      lambda key: model.get_initial_variables(
          key, {name: x.shape for name, x in batch.items()}
      )['params'],
      jax.random.PRNGKey(0),
  )
  generator = np.random.default_rng(0)
  return jax.tree.map(
      lambda x: jnp.asarray(
          generator.normal(size=x.shape, scale=x.shape[0] ** -0.5), x.dtype
      ),
      shapes,
  )


def _assert_close(ours, theirs, tolerance):
  """Compares each tensor, relative to its largest value."""
  flat, _ = jax.tree_util.tree_flatten_with_path(ours)
  for (path, a), b in zip(flat, jax.tree.leaves(theirs), strict=True):
    error = np.max(np.abs(a - b)) / np.max(np.abs(a))
    assert error <= tolerance, (jax.tree_util.keystr(path), error)


@pytest.mark.parametrize(
    'seed', [pytest.param(None, marks=pytest.mark.slow), 11]
)
def test_loss_and_gradients_equal_those_of_the_model(batch, seed):
  key = None if seed is None else jax.random.PRNGKey(seed)
  model = workload_lib.make_model(_WORKLOAD)
  params = _make_params(model, batch)
  loss, gradients = jax.jit(
      jax.value_and_grad(lambda p: model.loss_fn(p, batch, key)[0])
  )(params)
  reference_loss, reference_gradients = jax.jit(
      jax.value_and_grad(
          lambda p: reference.loss_fn(
              p, batch, key, sizes=_WORKLOAD.reference_sizes
          )
      )
  )(params)
  assert reference_loss == pytest.approx(float(loss), rel=1e-5)
  _assert_close(gradients, reference_gradients, 1e-5)


@pytest.mark.slow
def test_the_whole_step_equals_the_trainers(batch):
  trainer = workload_lib.make_trainer(_WORKLOAD, compiled=False)
  runner = reference_step.Runner(
      trainer.train_state.params,
      batch,
      sizes=_WORKLOAD.reference_sizes,
      learning_rate=workload_lib.LEARNING_RATE,
      key=jax.random.PRNGKey(1),
  )
  for _ in range(2):
    workload_lib.run_step(trainer, batch)
    runner(batch)
  # Adafactor divides by root second moments: an element whose gradient is
  # nearly zero may get a visibly different direction, within the step's size.
  _assert_close(trainer.train_state.params, runner.state.params, 1e-4)


def test_runs_are_interleaved_and_alternate_who_goes_first():
  order = []
  times = measure.interleave(
      {'a': lambda: order.append('a'), 'b': lambda: order.append('b')},
      runs=3,
      warmup=1,
  )
  assert ''.join(order) == 'ba' + 'ab' + 'ba' + 'ab'
  assert len(times['a'].cpu) == len(times['b'].wall) == 3


def test_a_ratio_is_the_median_of_the_ratios_of_each_round():
  assert measure.ratio([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == 3.0


def test_every_command_has_its_file():
  folder = pathlib.Path(_TOOLS) / 'benchmarks'
  files = {f.stem.removeprefix('run_') for f in folder.glob('run_*.py')}
  assert files == set(command_line._COMMANDS)
