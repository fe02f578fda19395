# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run goes on from its own checkpoints, not from those of another run."""

import contextlib
import json
import shutil

import pytest

from t5wild.checkpoint_files import command
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from tests.checkpoints import two_kernels


def _events(run):
  path = run / 'events.jsonl'
  lines = path.read_text().splitlines() if path.exists() else []
  return [(e['name'], e['step'], e['text']) for e in map(json.loads, lines)]


@pytest.fixture(scope='module')
def two_runs(tmp_path_factory):
  """Runs of one model with an id each, and what they began with."""
  folder = tmp_path_factory.mktemp('two_runs')
  model = two_kernels.Model(width=64)
  for name, seed in (('ours', 5), ('theirs', 6)):
    run_ids.establish(str(folder / name), source=None)
    model.save(folder / name, seed=seed, at=(1, 2))
  return folder, model


@pytest.fixture
def ours(two_runs, tmp_path):
  shutil.copytree(two_runs[0] / 'ours', tmp_path / 'ours')
  return tmp_path / 'ours'


def _replace(run, two_runs, step):
  """Copies the other run's checkpoint of a step over the run's own."""
  shutil.rmtree(run / f'checkpoint_{step}')
  theirs = two_runs[0] / 'theirs' / f'checkpoint_{step}'
  shutil.copytree(theirs, run / f'checkpoint_{step}')


def test_a_checkpoint_of_another_run_is_passed_over_for_ones_own(
    ours, two_runs
):
  _, model = two_runs
  _replace(ours, two_runs, 2)
  assert model.initialize(ours).step == 1
  names = [(name, step) for name, step, _ in _events(ours)]
  assert names == [('checkpoint/foreign', 2), ('checkpoint/fell_back', 1)]
  assert 'it was saved by another run (id ' in _events(ours)[0][2]
  # The run goes on, and saves the step anew in its place.
  model.save(ours, at=(2,))
  assert model.initialize(ours).step == 2


def test_a_run_with_nothing_but_another_ones_ends_until_one_is_adopted(
    ours, two_runs
):
  for step in (1, 2):
    _replace(ours, two_runs, step)
  for _ in range(2):
    with pytest.raises(steps.NotACheckpointError, match='checkpoints adopt'):
      two_runs[1].initialize(ours)
  assert command.main(['adopt', str(ours), '--step', '2']) == 0
  assert two_runs[1].initialize(ours).step == 2


def test_a_run_goes_on_where_it_was_copied_to_or_has_lost_its_id(
    ours, two_runs
):
  model = two_runs[1]
  assert model.initialize(ours).step == 2  # it is a copy
  run_id = run_ids.of_directory(str(ours))
  (ours / run_ids.FILE).unlink()
  source = model.initialize(ours).source
  assert run_ids.establish(str(ours), source=source) == run_id
  assert not _events(ours)


def test_a_checkpoint_without_an_id_is_anybodys(ours, two_runs):
  _replace(ours, two_runs, 2)
  (ours / 'checkpoint_2' / 'integrity' / run_ids.IN_CHECKPOINT).unlink()
  assert two_runs[1].initialize(ours).step == 2


def test_a_damaged_id_of_a_checkpoint_is_a_damage(ours, two_runs):
  file = ours / 'checkpoint_2' / 'integrity' / run_ids.IN_CHECKPOINT
  file.write_text('{')
  assert two_runs[1].initialize(ours).step == 1
  assert _events(ours)[0][:2] == ('checkpoint/damaged', 2)


def test_a_run_does_not_rewind_to_a_checkpoint_of_another(ours, two_runs):
  model = two_runs[1]
  opened = manager_lib.CheckpointManager(
      ours, config=configs.SaveCheckpointConfig()
  )
  _replace(ours, two_runs, 2)
  with contextlib.closing(opened), pytest.raises(run_ids.ForeignError):
    opened.restore(2, abstract_state={}, shardings={})
  assert model.initialize(ours).step == 1
