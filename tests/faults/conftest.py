# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One undisturbed run, shared by all that is held against it."""

import pytest

from tests.faults import supervised


@pytest.fixture(scope='session')
def undisturbed(tmp_path_factory):
  """Losses of a run that nothing befell; it fills the compilation cache."""
  folder = tmp_path_factory.mktemp('undisturbed') / 'run'
  run = supervised.SupervisedRun(folder)
  try:
    assert run.wait() == 0, run.log.read_text()
  finally:
    run.close()
  assert run.exits() == ['done']
  losses = supervised.losses(folder)
  assert list(losses) == list(range(1, supervised.NUM_STEPS + 1))
  return losses


@pytest.fixture
def start(tmp_path):
  """Starts a supervised run; ends it whatever the test does."""
  runs = []

  def begin(**arguments):
    name = f'run_{len(runs)}'
    runs.append(supervised.SupervisedRun(tmp_path / name, **arguments))
    return runs[-1]

  yield begin
  for run in runs:
    run.close()
