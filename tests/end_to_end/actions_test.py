# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What actions end, on one process and two, killed and resumed."""

import pathlib
import shutil
import signal

import pytest

from t5wild import exit_codes
from t5wild.vitals import records
from tests import multiprocess
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

_NAN = runs.RECIPE.with_name('nan_actions.gin')
_STOPPING = runs.RECIPE.with_name('stopping.gin')
# Values at steps 0, 2, 4 and 6 are alike: the fourth ends the run.
_ENDS_AT = 6


def _evaluated(folder) -> list[int]:
  """Steps of all evaluations by decoding, in the order they were made."""
  name = 'inference_eval/t5wild_copy/character_accuracy'
  path = folder / 'metrics.jsonl'
  return [r.step for r in records.read_records(path) if r.name == name]


def _checkpoints(folder) -> list[str]:
  return sorted(path.name for path in folder.glob('checkpoint_*[0-9]'))


def _train_on_two(folder, recipe, **bindings) -> list[multiprocess.Output]:
  return multiprocess.run_processes(
      runs.arguments(folder, recipe=recipe, **bindings),
      num_processes=2,
      devices_per_process=1,
      timeout=runs.TIMEOUT_SECONDS,
      check=False,
  )


def test_a_nan_ends_the_run_says_where_and_spares_the_good_checkpoint(tmp_path):
  folder = tmp_path / 'run'
  period = {'checkpoints__SaveCheckpointConfig__period': 100}
  code = runs.train(folder, recipe=_NAN, **period)
  assert code == exit_codes.NON_FINITE.code
  log = folder.with_suffix('.log').read_text()
  assert 'train/loss is nan at step 3 (TerminateOnNanAction' in log
  assert 'checkpoint_0 is the newest with finite parameters' in log
  assert _checkpoints(folder) == ['checkpoint_0']
  # No supervisor was there to put it on record.
  (stop,) = [
      event
      for event in records.read_records(folder / 'events.jsonl')
      if event.name == 'vitals/stop'
  ]
  assert 'train/loss is nan at step 3' in stop.text


def test_two_processes_end_together_and_keep_what_is_finite(tmp_path):
  folder = tmp_path / 'run'
  outputs = _train_on_two(folder, _NAN)
  for output in outputs:
    assert output.returncode == exit_codes.NON_FINITE.code, output.stderr
    assert 'parameters are not finite after step 2' in output.stderr
  # keep = 1: a save of the NaN would have removed it.
  assert _checkpoints(folder) == ['checkpoint_1']


@pytest.fixture(scope='module')
def stopped_early(tmp_path_factory):
  folder = tmp_path_factory.mktemp('stopped') / 'run'
  assert runs.train(folder, recipe=_STOPPING) == exit_codes.DONE.code
  return folder


def test_a_metric_of_decoding_ends_the_run_and_its_state_is_saved(
    stopped_early,
):
  assert _evaluated(stopped_early) == [0, 2, 4, _ENDS_AT]
  assert max(runs.losses(stopped_early)) == _ENDS_AT
  assert f'checkpoint_{_ENDS_AT}' in _checkpoints(stopped_early)


def test_a_run_that_was_stopped_early_stays_so_when_started_again(
    stopped_early,
):
  before = _evaluated(stopped_early)
  assert runs.train(stopped_early, recipe=_STOPPING) == exit_codes.DONE.code
  assert _evaluated(stopped_early) == before
  assert max(runs.losses(stopped_early)) == _ENDS_AT
  log = pathlib.Path(stopped_early).with_suffix('.log').read_text()
  assert f'this run was stopped after step {_ENDS_AT}' in log


def test_killed_it_ends_where_it_would_have_and_evaluates_nothing_twice(
    stopped_early, tmp_path
):
  folder = tmp_path / 'run'
  with (tmp_path / 'killed.log').open('wb') as log:
    process = runs.start(folder, log=log, recipe=_STOPPING)
    runs.wait_for_step(folder, 5, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
  assert _checkpoints(folder)
  assert runs.train(folder, recipe=_STOPPING) == exit_codes.DONE.code
  assert runs.losses(folder) == runs.losses(stopped_early)
  assert sorted(set(_evaluated(folder))) == _evaluated(stopped_early)
  assert _evaluated(folder).count(0) == 1


def test_killed_before_an_evaluation_was_written_it_makes_up_for_it(
    stopped_early, tmp_path
):
  folder = tmp_path / 'run'
  shutil.copytree(stopped_early, folder)
  path = folder / 'metrics.jsonl'
  kept = [
      record
      for record in records.read_records(path)
      if record.step < _ENDS_AT or '_eval/' not in record.name
  ]
  path.write_text(''.join(map(records.to_line, kept)))
  assert runs.train(folder, recipe=_STOPPING) == exit_codes.DONE.code
  assert _evaluated(folder) == _evaluated(stopped_early)
  # And it ends the run as it would have: nothing was trained.
  assert runs.losses(folder) == runs.losses(stopped_early)


def test_two_processes_stop_early_at_the_same_step(tmp_path):
  folder = tmp_path / 'run'
  outputs = _train_on_two(folder, _STOPPING)
  for output in outputs:
    assert output.returncode == exit_codes.DONE.code, output.stderr
    assert f'Stopping after step {_ENDS_AT}' in output.stderr
  assert _evaluated(folder) == [0, 2, 4, _ENDS_AT]


def test_a_metric_that_is_not_there_is_refused_with_those_that_are(tmp_path):
  folder = tmp_path / 'run'
  code = runs.train(
      folder,
      recipe=_NAN,
      trainer__TerminateOnNanAction__metric='los',
      TRAIN_STEPS=2,
  )
  assert code == exit_codes.BAD_CONFIG.code
  log = folder.with_suffix('.log').read_text()
  assert "did you mean 'loss'?" in log
