# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run watched as it goes on, in the terminal and on a page."""

import dataclasses
import http.client
import io
import math
import time

import numpy as np
import pytest
from rich import console as rich_console

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.reports import history as history_lib
from t5wild.reports import live_page
from t5wild.reports import record_columns
from t5wild.reports import sparkline
from t5wild.reports import terminal_view
from t5wild.reports import watch
from t5wild.vitals import heartbeats
from t5wild.vitals import records as records_lib
from tests.reports import made_runs


def _heartbeat(process, *, step, seconds, at):
  return heartbeats.Heartbeat(
      process=process, host=f'host-{process}', pid=7, attempt=1, count=3,
      seconds=at, first_step=0, step=step, phase='step', phase_seconds=0.1,
      median_step_seconds=seconds, supervisor=7,
  )  # fmt: skip


def test_a_sparkline_shows_the_worst_of_each_part():
  steps, values = np.arange(1000), np.zeros(1000)
  values[777] = 1.0
  line = sparkline.sparkline(steps, values, width=10)
  assert line == '▁▁▁▁▁▁▁█▁▁'
  lowest = sparkline.sparkline(steps, -values, width=10, worst='lowest')
  assert lowest == '███████▁██'


def test_a_sparkline_marks_what_is_not_finite():
  values = np.array([1.0, 2.0, math.nan, math.inf])
  line = sparkline.sparkline(np.arange(4), values, width=4)
  assert line == '▁█××'
  assert sparkline.sparkline(np.arange(0), np.zeros(0), width=4) == ''


def test_time_left_is_that_of_the_newest_process_alone(tmp_path):
  faults = made_runs.Faults(
      killed_steps=(500,), resumed_steps=(300,), is_cut=True
  )
  made_runs.make_run(tmp_path, num_steps=400, period=10, faults=faults)
  history = history_lib.read_history(str(tmp_path))
  # 600 steps of 0.53 s; nothing of the hour between the two.
  left = terminal_view.seconds_left(history, 1000)
  assert left == pytest.approx(600 * 0.53, rel=0.05)
  assert terminal_view.seconds_left(history, None) is None


def test_the_slowest_process_is_named_and_so_is_one_that_is_behind(tmp_path):
  made_runs.make_run(
      tmp_path, num_steps=400, period=10, faults=made_runs.Faults(is_cut=True)
  )
  (tmp_path / 'operative_config.gin').write_text('TRAIN_STEPS = 1000\n')
  run = run_dir_lib.RunDir(str(tmp_path))
  at = history_lib.read_history(run.path).last_seconds
  for process in range(4):
    slow = _heartbeat(process, step=390, seconds=0.9, at=at)
    usual = _heartbeat(process, step=400, seconds=0.5, at=at)
    heartbeats.write(run, slow if process == 2 else usual)
  now = dataclasses.replace(watch.Watcher(run.path).look(), seconds=at + 5)
  console = rich_console.Console(width=100, record=True, file=io.StringIO())
  console.print(terminal_view.view(now, width=100))
  shown = console.export_text()
  for text in (
      'running: step 400 of 1,000, last record 5 s ago, 5 min 1', ' left',
      '4 processes, in step',
      'slowest: process 2 on host-2, 0.9 s a step (median 0.5 s)',
      'process 2 on host-2 (pid 7) is behind',
  ):  # fmt: skip
    assert text in shown, text


def _shown(now, *, width=100):
  console = rich_console.Console(width=width, record=True, file=io.StringIO())
  console.print(terminal_view.view(now, width=width))
  return console.export_text()


def test_the_process_of_a_finished_run_is_finished(tmp_path):
  made_runs.make_run(tmp_path, num_steps=400, period=10)
  run = run_dir_lib.RunDir(str(tmp_path))
  ended = history_lib.read_history(run.path).ended
  sign = _heartbeat(0, step=400, seconds=0.5, at=ended + 1)
  heartbeats.write(run, dataclasses.replace(sign, phase='other'))
  shown = _shown(watch.Watcher(run.path).look())
  assert '1 process, finished' in shown and 'in other' not in shown
  # Extended: the next process gives signs and has no record yet.
  heartbeats.write(run, dataclasses.replace(sign, seconds=ended + 90))
  assert '1 process, in step' in _shown(watch.Watcher(run.path).look())


def test_between_records_the_step_is_that_of_the_signs_of_life(tmp_path):
  run = run_dir_lib.RunDir(str(tmp_path))
  for name, value in (('compile', 12.0), ('init_or_restore', 3.0)):
    record = records_lib.Record(
        0, 1000.0, 0, f'train/timing/{name}_seconds', value, 'seconds'
    )
    with open(run.metrics_jsonl, 'a', encoding='utf-8') as file:
      file.write(records_lib.to_line(record))
  (tmp_path / 'operative_config.gin').write_text('TRAIN_STEPS = 60\n')
  heartbeats.write(run, _heartbeat(0, step=17, seconds=0.5, at=1009.0))
  look = watch.Watcher(run.path).look()
  assert 'running: step 17 of 60' in _shown(
      dataclasses.replace(look, seconds=1010.0)
  )
  bare = dataclasses.replace(look, history=None, texts=None)
  assert 'nothing is recorded yet; step 17' in _shown(bare)
  # A report can be made of it, too.
  assert contents_lib.read_contents(run.path).clock.shape[1] == 1


@pytest.mark.parametrize(
    ('label', 'room', 'shown'),
    [
        ('loss', 20, 'loss'),
        ('inference_eval/special_memory/accuracy', 20, 'inference_…/accuracy'),
        ('a/nonpadding_tokens_per_second', 10, '…er_second'),
        ('no_parts_at_all', 6, '…t_all'),
        ('ab/cd', 4, '…/cd'),
    ],
)
def test_a_label_too_long_loses_its_middle_and_keeps_the_metric(
    label, room, shown
):
  assert terminal_view._clipped(label, room) == shown
  assert len(shown) <= room


def test_shown_once_it_tells_progress_curves_and_findings(
    tmp_path, capsys, monkeypatch
):
  monkeypatch.setenv('COLUMNS', '120')
  made_runs.make_run(tmp_path, faults=made_runs.Faults(nan_step=700))
  assert watch.main([str(tmp_path), '--once']) == exit_codes.DONE.code
  shown = capsys.readouterr().out
  for text in (
      'finished: step 1,000 of 1,000', 'train/loss', 'NaN', '×××',
      'NaN from step 691-700 on', 'last events', 'ended in order',
  ):  # fmt: skip
    assert text in shown, text
  assert max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize('width', ['20', '40', '300'])
def test_it_fits_terminals_of_any_width(tmp_path, capsys, monkeypatch, width):
  monkeypatch.setenv('COLUMNS', width)
  made_runs.make_run(tmp_path)
  watch.main([str(tmp_path), '--once'])
  lines = capsys.readouterr().out.splitlines()
  assert max(map(len, lines)) <= int(width)


def test_it_follows_a_run_and_ends_with_it(tmp_path, capsys, monkeypatch):
  monkeypatch.setenv('FORCE_COLOR', '1')  # as a terminal
  whole = made_runs.make_run(tmp_path / 'whole')
  lines = (tmp_path / 'whole' / 'metrics.jsonl').read_text().splitlines(True)
  run = tmp_path / 'run'
  run.mkdir()
  (run / 'operative_config.gin').write_text('TRAIN_STEPS = 1000\n')
  parts = [lines[:100], lines[100:300], lines[300:]]

  def pass_time(seconds):
    assert seconds == 0.5
    with open(run / 'metrics.jsonl', 'a', encoding='utf-8') as file:
      file.writelines(parts.pop(0))

  monkeypatch.setattr(time, 'sleep', pass_time)
  assert watch.main([str(run), '--period=0.5']) == exit_codes.DONE.code
  assert not parts
  shown = capsys.readouterr().out
  assert shown.index('nothing is recorded yet') < shown.index('finished: step')
  del whole


def test_ctrl_c_is_how_one_stops_to_watch(tmp_path, monkeypatch):
  monkeypatch.setenv('FORCE_COLOR', '1')
  made_runs.make_run(tmp_path, faults=made_runs.Faults(is_cut=True))
  (tmp_path / 'operative_config.gin').write_text('TRAIN_STEPS = 5000\n')

  def press(seconds):
    raise KeyboardInterrupt

  monkeypatch.setattr(time, 'sleep', press)
  assert watch.main([str(tmp_path)]) == exit_codes.DONE.code


def test_no_run_and_a_port_in_use_are_answered_in_three_parts(tmp_path, capsys):
  assert watch.main(['/no/such/run']) == exit_codes.BAD_CONFIG.code
  assert 'There is no run at' in capsys.readouterr().err
  page = live_page.LivePage(lambda: 'x', port=0)
  try:
    port = page.url.rsplit(':', 1)[1].strip('/')
    made_runs.make_run(tmp_path)
    flags = [str(tmp_path), f'--serve={port}']
    assert watch.main(flags) == exit_codes.BAD_CONFIG.code
  finally:
    page.close()
  error = capsys.readouterr().err
  assert f'port {port}: another program uses it' in error
  assert 'expected:' in error and 'do:' in error


@pytest.fixture
def served():
  pages = []

  def make():
    pages.append(len(pages))
    if len(pages) == 2:
      raise history_lib.NoRunError('There is no run')
    return f'<p>page {len(pages)}</p>'

  page = live_page.LivePage(make, port=0)
  yield page
  page.close()


def _get(page, path='/', *, host=None):
  address = page.url.split('/')[2]
  connection = http.client.HTTPConnection(address, timeout=10)
  connection.request('GET', path, headers={'Host': host or address})
  answer = connection.getresponse()
  body = answer.read().decode()
  connection.close()
  return answer.status, body


def test_the_page_is_served_to_this_machine_by_its_own_name_only(served):
  assert served.url.startswith('http://127.0.0.1:')
  assert _get(served) == (200, '<p>page 1</p>')
  assert _get(served, host='localhost:1234')[0] == 200
  assert _get(served, host='evil.example')[0] == 403
  assert _get(served, '/etc/passwd')[0] == 404


def test_the_page_is_made_anew_after_a_while_and_errors_are_told(
    served, monkeypatch
):
  _get(served)
  assert _get(served) == (200, '<p>page 1</p>')
  monkeypatch.setattr(live_page, '_LEAST_SECONDS', 0.0)
  assert _get(served) == (503, 'There is no run\n')
  assert _get(served) == (200, '<p>page 3</p>')


@pytest.mark.parametrize('flag', ['--period=0', '--period=nan', '--serve=x'])
def test_flags_that_make_no_sense_are_refused(tmp_path, flag):
  with pytest.raises(SystemExit) as end:
    watch.main([str(tmp_path), flag])
  assert end.value.code == exit_codes.BAD_CONFIG.code


def test_only_what_is_new_is_read(tmp_path, monkeypatch):
  made_runs.make_run(tmp_path)
  watcher = watch.Watcher(str(tmp_path))
  watcher.look()
  read = []
  original = record_columns._cut_up
  monkeypatch.setattr(
      record_columns, '_cut_up',
      lambda block, *, host: read.append(len(block)) or original(
          block, host=host
      ),
  )  # fmt: skip
  line = records_lib.to_line(records_lib.Record(1010, 9e9, 0, 'x', 1.0))
  with open(tmp_path / 'metrics.jsonl', 'a', encoding='utf-8') as file:
    file.write(line)
  assert 'x' in watcher.look().history.columns
  assert read == [len(line)]
