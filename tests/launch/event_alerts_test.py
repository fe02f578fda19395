# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a run puts on record while it goes on reaches a person, once."""

import json

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import run_events as checkpoint_events
from t5wild.launch import event_alerts
from t5wild.launch import supervise
from t5wild.vitals import records


def _line(name, text='why') -> str:
  return records.to_line(records.Record(7, 1.0, 0, name, 1.0, '', text))


@pytest.fixture
def told(tmp_path):
  """The events file, what reads it, and what was told."""
  path = tmp_path / 'events.jsonl'
  path.write_text(_line('vitals/stop', 'of a run before'))
  found = []
  alerts = event_alerts.EventAlerts(
      run_dir_lib.RunDir(str(tmp_path)), lambda *one: found.append(one)
  )
  return path, alerts, found


def test_new_events_are_told_once_and_old_and_everyday_ones_never(told):
  path, alerts, found = told
  alerts.look()
  with path.open('a') as file:
    file.write(_line('checkpoint/mirrored') + _line('supervisor/attempt'))
    file.write(_line('checkpoint/save_abandoned', 'the disk stalls'))
  alerts.look()
  alerts.look()
  assert found == [('checkpoint/save_abandoned', 'step 7: the disk stalls')]


def test_a_line_that_is_half_written_is_told_when_it_is_whole(told):
  path, alerts, found = told
  line = _line('checkpoint/damaged', 'a flipped bit')
  with path.open('a') as file:
    file.write(line[:20])
    file.flush()
    alerts.look()
    assert not found
    file.write(line[20:])
  alerts.look()
  assert found == [('checkpoint/damaged', 'step 7: a flipped bit')]


@pytest.mark.parametrize(
    'name', ['damaged', 'save_failed', 'save_abandoned', 'quarantined']
)
def test_what_befalls_a_checkpoint_is_an_alert(name, told, tmp_path):
  _, alerts, found = told
  checkpoint_events.add(str(tmp_path), name, step=3, text='what')
  alerts.look()
  assert found == [(f'checkpoint/{name}', 'step 3: what')]


def test_a_supervisor_sends_them_where_alerts_go(tmp_path, monkeypatch):
  monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
  run, alerts = tmp_path / 'run', tmp_path / 'alerts'
  line = _line('checkpoint/damaged', 'array x of step 7').strip()
  assert not supervise.main([
      f'--run_dir={run}', f'--alert_file={alerts}', '--', 'bash', '-c',
      f"echo '{line}' >> {run}/events.jsonl",
  ])  # fmt: skip
  first, last = map(json.loads, alerts.open())
  assert first['kind'] == 'checkpoint/damaged'
  assert first['text'] == 'step 7: array x of step 7'
  assert last['kind'] == 'done'
