# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts that come and go, each a process: the batches are those of one host.

Over rates that change and documents that are left out, with other batches and
more or fewer hosts from one stop to the next. Of the reader alone, without a
coordinator: `cached_test` has whole runs.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests import multiprocess
from tests.data import caches

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]
_CHANGES = {
    'rates_from_step': {4: {'two': 1.0}, 9: {'one': 1.0, 'two': 3.0}},
    'exclude_from_step': {6: ['one:0:3', 'two:2:1']},
    'window_tokens': 2048,
}
# Reads one host's rows of some batches from a position, if there is one.
_READ = """
import json, pathlib, sys
import numpy as np
from tests.data import caches
root, folder, host, num_hosts, batch_size, count, changes = sys.argv[1:]
changes = json.loads(changes)
for name in ('rates_from_step', 'exclude_from_step'):
  changes[name] = {int(step): x for step, x in changes[name].items()}
folder = pathlib.Path(folder)
reader = caches.reader(
    caches.config(root, batch_size=int(batch_size), **changes),
    host=int(host), num_hosts=int(num_hosts),
)
if (folder / 'state.json').exists():
  reader.load_state_dict(json.loads((folder / 'state.json').read_text()))
batches = caches.batches(reader, int(count))
np.savez(folder / f'host_{host}.npz', **caches.joined(batches))
(folder / f'state_{host}.json').write_text(json.dumps(reader.state_dict()))
"""


@pytest.fixture(scope='module')
def two_tasks(tmp_path_factory):
  root = tmp_path_factory.mktemp('cache')
  caches.write(root, caches.texts(60, seed=3), task='one')
  caches.write(
      root,
      caches.texts(90, seed=4),
      task='two',
      rates={'one': 2.0, 'two': 1.0},
  )
  return root


def _read(root, folder, *, num_hosts: int, batch_size: int, count: int):
  """The next batches, of one process for each host: [batches, rows, length]."""
  processes = [
      subprocess.Popen(
          [
              sys.executable, '-c', _READ, str(root), str(folder), str(host),
              str(num_hosts), str(batch_size), str(count),
              json.dumps(_CHANGES),
          ],
          cwd=multiprocess.ROOT,
          env=multiprocess.process_environment(devices_per_process=1),
          stderr=subprocess.PIPE,
          text=True,
      )
      for host in range(num_hosts)
  ]  # fmt: skip
  for process in processes:
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
  states = {
      (folder / f'state_{host}.json').read_text() for host in range(num_hosts)
  }
  (state,) = states  # one position for all
  (folder / 'state.json').write_text(state)
  hosts = [np.load(folder / f'host_{host}.npz') for host in range(num_hosts)]
  share = batch_size // num_hosts
  return {
      name: np.concatenate(
          [
              host[name].reshape(count, share, *host[name].shape[1:])
              for host in hosts
          ],
          axis=1,
      )
      for name in hosts[0].files
  }


def test_hosts_that_come_and_go_read_the_batches_of_one(two_tasks, tmp_path):
  position = None
  for num_hosts, batch_size, count in (
      (8, 24, 5), (3, 12, 2), (4, 8, 3), (2, 24, 2), (1, 6, 2)
  ):  # fmt: skip
    cfg = caches.config(two_tasks, batch_size=batch_size, **_CHANGES)
    alone = caches.reader(cfg)
    if position is not None:
      alone.load_state_dict(position)
    expected = [next(alone) for _ in range(count)]
    position = alone.state_dict()
    found = _read(
        two_tasks, tmp_path, num_hosts=num_hosts, batch_size=batch_size,
        count=count,
    )  # fmt: skip
    for index, batch in enumerate(expected):
      caches.assert_equal(
          {name: array[index] for name, array in found.items()}, batch
      )
    assert json.loads((tmp_path / 'state.json').read_text()) == position
  assert position['step'] == 14
  assert len(position['ended']) == 2
