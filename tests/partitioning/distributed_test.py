# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of several processes, with real ones over gloo."""

import json
import socket

import jax
import numpy as np
import pytest

from t5wild.partitioning import distributed
from t5wild.partitioning import environments
from tests import multiprocess

# Two steps of a sharded least-squares fit; prints one JSON line.
_TRAIN = """
import json, sys
import numpy as np
from t5wild.partitioning import distributed
distributed.start(timeout_seconds=60)
import jax
import jax.numpy as jnp
from t5wild import partitioning

partitioner = partitioning.PjitPartitioner(**json.loads(sys.argv[1]))
spec = partitioner.data_partition_spec
layout = partitioner.get_data_layout(8)
random = np.random.default_rng(0)
batch = {'x': random.normal(size=(8, 4)), 'y': random.normal(size=(8, 2))}
batch = {k: v.astype(np.float32) for k, v in batch.items()}
rows = partitioner.host_rows(8)
device_batch = partitioner.global_batch({k: v[rows] for k, v in batch.items()})

class State:
  def __init__(self, w): self.w = w
  def state_dict(self): return {'target': {'w': self.w}}
  def restore_state(self, d): return State(d['target']['w'])
  def as_logical_axes(self): return State(('embed', 'mlp'))
jax.tree_util.register_pytree_node(
    State, lambda s: ((s.w,), None), lambda _, c: State(*c))

state = State(np.ones((4, 2), np.float32))
specs = partitioner.get_mesh_axes(state)
state = partitioner.move_params_to_devices(state, specs)

def step(state, batch, rate):
  loss = lambda w: jnp.mean((jnp.tanh(batch['x'] @ w) - batch['y']) ** 2)
  value, grad = jax.value_and_grad(loss)(state.w)
  return State(state.w - rate * grad), value

step = partitioner.partition(step, (specs, spec, None), (specs, None), (), (0,))
losses = []
for _ in range(5):
  state, loss = step(state, device_batch, jnp.float32(0.5))
  losses.append(float(loss))
distributed.barrier('done', 60)
print('RESULT ' + json.dumps({
    'losses': losses, 'rows': rows.tolist(), 'shard': layout.shard_id,
    'shards': layout.num_shards,
    'first': layout.is_first_host_in_replica_set,
    'devices': jax.device_count()}), flush=True)
"""


def results(outputs):
  lines = [
      line
      for output in outputs
      for line in output.stdout.splitlines()
      if 'RESULT ' in line
  ]
  assert len(lines) == len(outputs), outputs
  return [json.loads(line.split('RESULT ', 1)[1]) for line in lines]


def run_training(num_processes, devices, arguments, tmp_path):
  script = tmp_path / 'train.py'
  script.write_text(_TRAIN)
  return results(
      multiprocess.run_processes(
          [str(script), json.dumps(arguments)], num_processes, devices
      )
  )


@pytest.mark.multiprocess
def test_two_processes_train_as_one_does(tmp_path):
  arguments = {'num_partitions': 2, 'parameter_partitioning_dims': 2}
  (one,) = run_training(1, 4, arguments, tmp_path)
  two = run_training(2, 2, arguments, tmp_path)
  assert one['devices'] == two[0]['devices'] == 4
  for found in two:
    np.testing.assert_allclose(found['losses'], one['losses'], rtol=1e-6)
  assert [found['rows'] for found in two] == [[0, 1, 2, 3], [4, 5, 6, 7]]
  assert [found['shard'] for found in two] == [0, 1]


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.parametrize(
    'arguments, num_shards',
    [({}, 4), ({'num_partitions': 2}, 2), ({'mesh_shape': {'replica': 2}}, 4)],
)
def test_four_processes_train_as_one_does(arguments, num_shards, tmp_path):
  (one,) = run_training(1, 4, arguments, tmp_path)
  four = run_training(4, 1, arguments, tmp_path)
  for found in four:
    np.testing.assert_allclose(found['losses'], one['losses'], rtol=1e-6)
  assert {found['shards'] for found in four} == {num_shards}
  held = [row for found in four if found['first'] for row in found['rows']]
  assert held == list(range(8))


@pytest.mark.multiprocess
def test_processes_meet_and_a_late_one_is_named():
  outputs = multiprocess.run_processes(
      """
import time
from t5wild.partitioning import distributed
distributed.start(timeout_seconds=60)
distributed.start()  # a second start does nothing
index = distributed.process_index()
for _ in range(3):
  distributed.barrier('again', 60)
values = distributed.meet('seeds', value={'seed': index * 10},
                          timeout_seconds=60)
assert values == [{'seed': 0}, {'seed': 10}], values
if index == 0:
  begin = time.monotonic()
  try:
    distributed.barrier('before saving step 7', 2)
  except distributed.BarrierTimeoutError as error:
    print(error)
  print('waited', time.monotonic() - begin < 30)
import jax
import numpy as np
assert jax.process_count() == 2
sent = distributed.broadcast_one_to_all({'a': np.int32(5 + index)})
assert sent['a'] == 5, sent
""",
      2,
  )
  said = outputs[0].stdout
  assert "'before saving step 7'" in said
  assert 'missing: processes [1] of 2' in said
  assert 'waited True' in said


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    'index, reason',
    [(0, 'not all the others came'), (1, 'nobody answers at')],
)
def test_a_start_without_the_others_ends_in_time_and_says_why(index, reason):
  (output,) = multiprocess.run_processes(
      f"""
import time
from t5wild.partitioning import distributed
begin = time.monotonic()
try:
  distributed.start(process_count=2, process_index={index}, timeout_seconds=2)
except RuntimeError as error:
  print(error)
print('waited', time.monotonic() - begin < 20)
""",
      1,
      timeout=60,
  )
  assert reason in output.stdout
  assert '--initialization_timeout' in output.stdout
  assert 'waited True' in output.stdout


def test_one_process_needs_nobody():
  assert distributed.start(environment={}) is None
  distributed.barrier('alone', 0.1)
  assert distributed.meet('alone', value={'a': [1]}) == [{'a': [1]}]
  assert distributed.broadcast_one_to_all(np.int32(3)) == 3
  assert not jax.distributed.is_initialized()


def test_a_run_that_must_have_several_processes_says_what_is_missing():
  with pytest.raises(ValueError, match='--multiprocess_gpu') as caught:
    distributed.start(multiprocess_gpu=True, environment={})
  assert 'srun' in str(caught.value)
  with pytest.raises(ValueError, match='--coordinator_address=... --proc'):
    distributed.start(process_count=2, environment={})
  with pytest.raises(ValueError, match=r'Expected an index in \[0, 2\)'):
    distributed.start(
        coordinator_address='a:1',
        process_count=2,
        process_index=2,
        environment={},
    )


def test_flags_complete_and_override_what_the_launcher_says():
  environment = {
      'JOB_COMPLETION_INDEX': '1',
      'JAX_PROCESS_COUNT': '2',
  }
  with pytest.raises(ValueError, match='no coordinator_address'):
    distributed.start(environment=environment)
  # A count of one needs no coordinator.
  assert distributed.start(process_count=1, environment=environment) is None


@pytest.mark.multiprocess
def test_the_launcher_shows_what_a_failing_process_printed():
  with pytest.raises(AssertionError, match='process 1: exit status 3'):
    multiprocess.run_processes(
        "import os, sys; print('here'); sys.exit(3 * (os.environ["
        "'JAX_PROCESS_INDEX'] == '1'))",
        2,
    )


@pytest.mark.multiprocess
def test_the_launcher_kills_what_does_not_end():
  outputs = multiprocess.run_processes(
      'import time; time.sleep(600)', 2, timeout=1, check=False
  )
  assert [output.returncode for output in outputs] == [-9, -9]


@pytest.mark.parametrize('address', ['127.0.0.1', '0.0.0.0'])
def test_a_port_that_another_program_holds_is_refused_with_its_number(address):
  with socket.socket() as squatter:
    squatter.bind((address, 0))
    squatter.listen()
    port = squatter.getsockname()[1]
    processes = environments.Processes(
        source='flags', coordinator_address=f'localhost:{port}',
        process_count=2, process_index=0,
    )  # fmt: skip
    with pytest.raises(RuntimeError, match=f'port {port}.*taken'):
      distributed._check_port(processes)
  # Of one that was closed a moment ago the system still keeps a trace.
  distributed._check_port(processes)


def test_only_process_0_needs_the_port():
  with socket.socket() as squatter:
    squatter.bind(('127.0.0.1', 0))
    squatter.listen()
    distributed._check_port(
        environments.Processes(
            source='flags', process_count=2, process_index=1,
            coordinator_address=f'localhost:{squatter.getsockname()[1]}',
        )
    )  # fmt: skip
