# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs from a cache: killed, on other hosts, with other batches, without seqio.

Real processes and real kills.
"""

import signal
import subprocess
import sys

import numpy as np
import pytest

from t5wild import exit_codes
from tests import multiprocess
from tests.data import caches
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_RECIPE = runs.RECIPE.with_name('cached.gin')
_NUM_BATCHES = 6
# Reads this process's rows of some batches, from a position if there is one.
_READ = """
import json, pathlib, sys
import numpy as np
from t5wild.partitioning import distributed, partitioner
from tests.data import caches
root, folder, batch_size, count = sys.argv[1:]
folder = pathlib.Path(folder)
distributed.start()
import jax
layout = partitioner.PjitPartitioner(num_partitions=1).get_data_layout(
    int(batch_size)
)
cfg = caches.config(root, batch_size=int(batch_size))
reader = cfg.make_reader(
    data_layout=layout, feature_converter_cls=caches.ENCODER_DECODER
)
if (folder / 'state.json').exists():
  reader.load_state_dict(json.loads((folder / 'state.json').read_text()))
parts = caches.batches(reader, int(count))
np.savez(
    folder / f'host_{layout.shard_id}_of_{layout.num_shards}.npz',
    **{f'{name}_{i}': a for i, part in enumerate(parts)
       for name, a in part.items()},
)
distributed.meet('read', value=0)
if jax.process_index() == 0:
  (folder / 'state.json').write_text(json.dumps(reader.state_dict()))
"""


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('cache')
  caches.write(root, caches.texts(200))
  return root


@pytest.fixture(scope='module')
def undisturbed(cache, tmp_path_factory):
  folder = tmp_path_factory.mktemp('undisturbed') / 'run'
  assert _train(folder, cache, num_devices=4) == 0
  return folder


def _train(folder, cache, **changes) -> int:
  return runs.train(folder, recipe=_RECIPE, TEXT=cache, **changes)


def _read(cache, folder, *, num_processes: int, batch_size: int, count: int):
  """The next global batches, joined of what each process read."""
  multiprocess.run_processes(
      ['-c', _READ, str(cache), str(folder), str(batch_size), str(count)],
      num_processes=num_processes,
      devices_per_process=8 // num_processes,
  )
  hosts = [
      np.load(folder / f'host_{host}_of_{num_processes}.npz')
      for host in range(num_processes)
  ]
  return [
      {
          name.removesuffix(f'_{index}'): np.concatenate(
              [host[name] for host in hosts]
          )
          for name in hosts[0].files
          if name.endswith(f'_{index}')
      }
      for index in range(count)
  ]


@pytest.mark.multiprocess
@pytest.mark.parametrize('num_processes', [2, 4])
def test_real_processes_read_the_batches_of_one_and_go_on_from_its_position(
    num_processes, cache, tmp_path
):
  reader = caches.reader(caches.config(cache))
  expected = caches.joined(caches.batches(reader, 2 * _NUM_BATCHES))
  first = _read(
      cache, tmp_path, num_processes=num_processes, batch_size=24,
      count=_NUM_BATCHES,
  )  # fmt: skip
  # Half as many processes and another batch, from the position that was left.
  second = _read(
      cache, tmp_path, num_processes=num_processes // 2, batch_size=16,
      count=_NUM_BATCHES * 24 // 16,
  )  # fmt: skip
  caches.assert_equal(caches.joined([*first, *second]), expected)


@pytest.mark.parametrize('step', [3, 9])
def test_losses_after_kill_9_are_the_same_bits(
    step, undisturbed, cache, tmp_path
):
  folder = tmp_path / 'run'
  with (tmp_path / 'killed.log').open('wb') as log:
    process = runs.start(
        folder, log=log, num_devices=4, recipe=_RECIPE, TEXT=cache
    )
    runs.wait_for_step(folder, step, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
  assert _train(folder, cache, num_devices=4) == 0
  assert runs.losses(folder) == runs.losses(undisturbed)


@pytest.mark.multiprocess
def test_two_processes_go_on_in_microbatches_where_one_stopped(
    undisturbed, cache, tmp_path
):
  folder = tmp_path / 'run'
  assert _train(folder, cache, num_devices=4, TRAIN_STEPS=6) == 0
  multiprocess.run_processes(
      runs.arguments(
          folder, recipe=_RECIPE, TEXT=cache,
          trainer__Trainer__num_microbatches=2,  # 4 rows to each of 2 devices
      ),
      num_processes=2,
      devices_per_process=2,
      timeout=runs.TIMEOUT_SECONDS,
  )
  expected = runs.losses(undisturbed)
  assert runs.losses(folder) == pytest.approx(expected, rel=1e-5)
  (position,) = (folder / 'checkpoint_12' / 'dataset').glob('*.json')
  assert position.name == 'position.json'  # one for all processes


def test_a_run_trains_evaluates_and_resumes_without_tensorflow(
    cache, tmp_path
):
  program = (
      'import sys\n'
      "for name in ('seqio', 'tensorflow', 'tensorflow_datasets', 't5',"
      " 'tensorflow_text'):\n"
      '  sys.modules[name] = None\n'
      'from t5wild import train\n'
      "sys.exit(train.run(['t5wild train', *sys.argv[1:]]))\n"
  )
  for steps in (4, 6):
    done = subprocess.run(
        [
            sys.executable, '-c', program,
            *runs.arguments(
                tmp_path / 'run', recipe=_RECIPE, TEXT=cache, TRAIN_STEPS=steps
            )[2:],
        ],
        env=multiprocess.process_environment(devices_per_process=1),
        cwd=multiprocess.ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=runs.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == exit_codes.DONE.code, done.stderr
  assert sorted(runs.losses(tmp_path / 'run')) == [1, 2, 3, 4, 5, 6]
