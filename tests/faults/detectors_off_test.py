# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Two faults that nothing else shows: they pass in silence, detector off.

Two processes that share arrays, without a trainer around them.
"""

import json

import pytest

from t5wild.vitals import stragglers
from tests import multiprocess

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

_SCRIPT = """
import json, time
from t5wild.partitioning import distributed
distributed.start()
import jax
import numpy as np
from t5wild.trainer import agreement, program_agreement

index = jax.process_index()
mesh = jax.sharding.Mesh(np.array(jax.devices()), ('data',))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data'))
all_of_it = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
x = jax.make_array_from_callback(
    (2,), rows, lambda at: np.array([2.0, 3.0], np.float32)[at]
)


def total(power):
  return jax.jit(lambda x: (x ** power).sum(), out_shardings=all_of_it)


told = {}
odd = total(2 + index)  # another program on each process
try:
  program_agreement.Compared(odd, name='the sum').lower(x)
except agreement.DisagreementError as error:
  told['compared'] = str(error)
told['not_compared'] = float(odd.lower(x).compile()(x))

alike = total(2).lower(x).compile()
float(alike(x))
busy, step = [], []
for _ in range(8):
  start = time.perf_counter()
  time.sleep(0.08 * index)  # process 1 is slow
  busy.append(time.perf_counter() - start)
  float(alike(x))
  step.append(time.perf_counter() - start)
told['busy'], told['step'] = sorted(busy)[4], sorted(step)[4]
distributed.barrier('all have told', 60)
print('TOLD ' + json.dumps(told))
"""


@pytest.fixture(scope='module')
def told():
  """What each of the two processes found."""
  found = []
  for output in multiprocess.run_processes(_SCRIPT, 2, timeout=300):
    (line,) = [
        row for row in output.stdout.splitlines() if row.startswith('TOLD ')
    ]
    found.append(json.loads(line.removeprefix('TOLD ')))
  return found


def test_programs_that_are_not_compared_give_a_wrong_number_in_silence(told):
  for one in told:
    assert 'Processes [1] lowered another program' in one['compared']
  # The sum of squares is 13, that of cubes 35; this is a sum of both.
  assert {one['not_compared'] for one in told} == {2.0**2 + 3.0**3}


def test_without_the_time_that_each_is_busy_nobody_can_tell_who_is_slow(told):
  def named(kind):
    judge = stragglers.Stragglers()
    times = {f'process {i}': one[kind] for i, one in enumerate(told)}
    found = [judge.add(times) for _ in range(stragglers.PATIENCE)]
    return [one.rank for one in found[-1]]

  assert named('busy') == ['process 1']
  # All wait for the slowest: their steps take the same time.
  assert named('step') == []
