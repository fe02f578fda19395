# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The supervisor leaves places out, knows progress, heeds SLURM's time."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from t5wild import exit_codes
from t5wild.checkpoint_files import health
from t5wild.launch import supervise
from t5wild.vitals import records

_QUICK = ['--first_delay_seconds=0', '--grace_seconds=0.2']


@pytest.fixture(autouse=True)
def own_ledger(tmp_path, monkeypatch):
  monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))


def _supervise(tmp_path, script, *flags) -> int:
  return supervise.main([
      *_QUICK, *flags, f'--run_dir={tmp_path / "run"}', '--', 'bash', '-c',
      script,
  ])  # fmt: skip


def _events(tmp_path) -> list[str]:
  found = records.read_records(tmp_path / 'run' / 'events.jsonl')
  return [record.name.removeprefix('supervisor/') for record in found]


# Of three attempts the process in place 1 is killed; the fourth ends well.
_IN_PLACE = """
fold=${{T5WILD_SUPERVISED##*fold}}
attempt=${{T5WILD_SUPERVISED#*attempt}}
attempt=${{attempt%%,*}}; attempt=${{attempt//[^0-9]}}
echo "$attempt: $T5WILD_PLACE ${{fold//[^0-9]/}}" >> {folder}/seats
test "$T5WILD_PLACE" = 1 && kill -9 $$
test "$attempt" = 4 || sleep 9
"""


def test_a_place_lost_for_good_is_taken_over_by_a_spare(tmp_path, capsys):
  script = _IN_PLACE.format(folder=tmp_path)
  assert _supervise(tmp_path, script, '--processes=2', '--spares=1') == 0
  assert _events(tmp_path).count('exit/killed') == 3
  assert 'left_out' in _events(tmp_path)
  assert 'place 1 is left out; spare 2 takes it' in capsys.readouterr().err
  seats = (tmp_path / 'seats').read_text().split('\n')
  assert sorted(seats[-3:]) == ['', '4: 0 1', '4: 2 1']


def test_without_spares_a_lost_place_leaves_fewer_that_do_its_part(
    tmp_path, capsys
):
  script = _IN_PLACE.format(folder=tmp_path)
  assert _supervise(tmp_path, script, '--processes=2') == 0
  assert '1 of 2 places go on' in capsys.readouterr().err
  seats = (tmp_path / 'seats').read_text().split('\n')
  assert seats[-2:] == ['4: 0 2', '']


def test_with_no_place_left_out_a_lost_one_is_a_crash_loop(tmp_path, capsys):
  script = _IN_PLACE.format(folder=tmp_path)
  flags = ['--processes=2', '--leave_out_after=9']
  assert _supervise(tmp_path, script, *flags) == 128 + signal.SIGKILL
  assert 'CRASH LOOP' in capsys.readouterr().err


def test_before_slurms_time_is_up_the_run_is_stopped_in_good_order(
    tmp_path, monkeypatch, capsys
):
  monkeypatch.setenv('SLURM_JOB_END_TIME', str(int(time.time()) + 3))
  script = 'trap "exit 75" TERM; sleep 30 & wait'
  began = time.monotonic()
  assert _supervise(tmp_path, script, '--stop_seconds=1') == 75
  assert time.monotonic() - began < 5
  assert 'wall time is nearly up' in capsys.readouterr().err


@pytest.mark.parametrize('is_told', [True, False])
def test_a_job_that_does_not_know_its_end_has_saved_nothing_when_it_comes(
    is_told, tmp_path, monkeypatch
):
  """SLURM ends a job by killing all that is left of it."""
  end = time.time() + 6
  if is_told:
    monkeypatch.setenv('SLURM_JOB_END_TIME', str(int(end)))
  saved = tmp_path / 'saved'
  job = subprocess.Popen(
      [
          sys.executable, '-m', 't5wild.cli', 'supervise', *_QUICK,
          '--stop_seconds=1', f'--run_dir={tmp_path / "run"}', '--', 'bash',
          '-c', f'echo $$ > {tmp_path}/pid; trap "touch {saved}; exit 75" TERM;'
          ' sleep 60 & wait',
      ],
      stderr=subprocess.DEVNULL,
  )  # fmt: skip
  while time.time() < end and job.poll() is None:
    time.sleep(0.05)
  job.kill()
  with contextlib.suppress(ProcessLookupError):
    os.killpg(int((tmp_path / 'pid').read_text()), signal.SIGKILL)
  job.wait()
  assert saved.exists() == is_told


@pytest.mark.parametrize('end', ['soon', '', '12'])
def test_an_end_of_slurm_that_tells_nothing_stops_nothing(
    tmp_path, monkeypatch, end
):
  monkeypatch.setenv('SLURM_JOB_END_TIME', end)
  assert _supervise(tmp_path, 'true') == 0


def test_restarts_that_are_not_allowed_leave_no_place_out(tmp_path):
  script = _IN_PLACE.format(folder=tmp_path)
  flags = ['--processes=2', '--max_restarts=1']
  assert _supervise(tmp_path, script, *flags) == 128 + signal.SIGKILL
  assert _events(tmp_path).count('attempt') == 2
  assert 'left_out' not in _events(tmp_path)


@pytest.mark.parametrize(
    ('flags', 'named'),
    [
        (['--processes=2', '--spares=-1'], '--spares is -1'),
        (['--spares=1'], '--spares is 1 of 1'),
        (['--processes=2', '--leave_out=2'], '--leave_out names [2]'),
        (['--processes=2', '--leave_out_after=1'], '--leave_out_after is 1'),
    ],
)
def test_places_that_cannot_be_are_refused(tmp_path, capsys, flags, named,
                                           monkeypatch):  # fmt: skip
  monkeypatch.setenv('JAX_PLATFORMS', 'cpu')
  monkeypatch.setenv('XLA_FLAGS', '')
  assert _supervise(tmp_path, 'true', *flags) == exit_codes.BAD_CONFIG.code
  told = capsys.readouterr().err
  assert named in told and 'expected' in told


def test_checkpoints_that_nobody_goes_on_from_hide_no_progress(tmp_path):
  run = tmp_path / 'run'
  for step in (50, 60):
    (run / f'checkpoint_{step}' / 'state').mkdir(parents=True)
  book = health.Book(str(run), is_writer=True)
  book.quarantine([50, 60], reason='a spike followed')
  (run / 'checkpoint_90').mkdir()  # emptied
  script = (
      f'cd {run}; n=$(ls | grep -c checkpoint_4); [ $n = 4 ] && exit 0; '
      'mkdir -p checkpoint_4$n/state; echo $n; exit 79'
  )
  given = ['--max_without_progress=2', '--crash_loop=9']
  code = _supervise(tmp_path, script, *given)
  assert code == 0
