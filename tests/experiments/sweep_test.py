# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A sweep trains each of its runs once, whatever stopped it in between."""

import contextlib
import csv
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from t5wild.experiments import designs
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.experiments import results as results_lib
from t5wild.experiments import sweep as sweep_lib
from t5wild.experiments import sweep_page
from tests.reports import chromium

_PROGRAM = (sys.executable, '-m', 'tests.experiments.made_trainer')
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_METRIC = 'training_eval/made/loss'
_FOR_A_PROCESS = 20  # seconds, on a machine with other load


@pytest.fixture(autouse=True)
def where_the_stand_in_is_found(monkeypatch):
  monkeypatch.setenv('PYTHONPATH', str(_ROOT))


def _sweep(values=None, **changed):
  return sweep_lib.Sweep(**{
      'recipe': 'made.gin',
      'values': values or {'x': [3, 1, 2]},
      'metric': _METRIC,
      **changed,
  })


def _train(sweep, path, told=None):
  folder = folder_lib.Folder(str(path))
  folder.open_for(sweep.described('texts'))
  now = sweep_lib.train(
      sweep, folder,
      say=(told if told is not None else []).append,
      when_done=lambda now: None,
      program=_PROGRAM,
  )  # fmt: skip
  return folder, now


def _found(standing):
  return {
      r.point.bindings['x']: (r.status, r.value) for r in standing.results
  }


def _starts(folder, sweep):
  return [
      len(pathlib.Path(folder.run(p).run_dir.join('starts')).read_text().split(
          '\n')) - 1
      for p in sweep.points
  ]  # fmt: skip


def _wait_for(is_true):
  until = time.monotonic() + _FOR_A_PROCESS
  while not is_true():
    assert time.monotonic() < until
    time.sleep(0.02)


def test_each_run_is_trained_once_and_the_best_is_first(tmp_path):
  sweep = _sweep(num_parallel=2)
  folder, now = _train(sweep, tmp_path / 'a')
  ranked = results_lib.ranked(now.results, sweep.measure)
  assert [r.point.bindings['x'] for r in ranked] == [1, 2, 3]
  assert ranked[0].value == 1.1
  # Again: nothing is trained; with one more value, that alone.
  _train(sweep, tmp_path / 'a')
  assert _starts(folder, sweep) == [1, 1, 1]
  more = _sweep({'x': [3, 1, 2, 0]})
  _, now = _train(more, tmp_path / 'a')
  assert _starts(folder, more) == [1, 1, 1, 1]
  assert _found(now)[0] == ('done', 0.1)


def test_what_failed_or_diverged_is_shown_so_and_never_counted(tmp_path):
  sweep = _sweep({'x': ['boom', 5, 'nan']})
  told = []
  folder, now = _train(sweep, tmp_path / 'a', told)
  assert _found(now) == {
      'boom': ('failed', None), 5: ('done', 5.1), 'nan': ('diverged', None)
  }  # fmt: skip
  assert any(line.startswith('x=boom') and ': failed after' in line
             for line in told)  # fmt: skip
  (failed,) = [r for r in now.results if r.status == 'failed']
  assert 'something went wrong' in failed.why
  text = results_lib.as_csv(now.results, sweep.measure)
  rows = list(csv.DictReader(text.splitlines()))
  assert [(r['x'], r[_METRIC], r['status']) for r in rows] == [
      ('5', '5.1', 'done'), ('boom', '', 'failed'), ('nan', '', 'diverged')
  ]  # fmt: skip
  # What failed is tried again; what diverged would do so again.
  _train(sweep, tmp_path / 'a')
  assert _starts(folder, sweep) == [2, 1, 1]


def test_a_none_that_was_bound_is_told_from_a_result_that_is_not_there():
  point = points_lib.Point(bindings={'x': None})
  result = results_lib.Result(point=point, status='failed')
  measure = results_lib.Measure(metric='m')
  (row,) = csv.DictReader(results_lib.as_csv([result], measure).splitlines())
  assert (row['x'], row['m']) == ('None', '')


def test_places_go_to_one_run_each_at_a_time(tmp_path):
  places = [{'PLACE': 'left'}, {'PLACE': 'right'}]
  sweep = _sweep({'x': [1, 2, 3, 4]}, num_parallel=2, environments=places)
  folder, _ = _train(sweep, tmp_path / 'a')
  seen = {
      pathlib.Path(folder.run(p).run_dir.join('starts')).read_text().strip()
      for p in sweep.points
  }
  assert seen == {'left', 'right'}


def test_a_killed_sweep_goes_on_and_waits_for_what_it_left_behind(tmp_path):
  code = f"""
from tests.experiments import sweep_test
sweep = sweep_test._sweep({{'x': [1, 'sleep', 2]}})
sweep_test._train(sweep, {str(tmp_path / 'a')!r})
"""
  first = subprocess.Popen([sys.executable, '-c', code], cwd=_ROOT)
  sweep = _sweep({'x': [1, 'sleep', 2]})
  folder = folder_lib.Folder(str(tmp_path / 'a'))
  asleep = folder.run(sweep.points[1])
  _wait_for(lambda: os.path.exists(asleep.run_dir.join('starts')))
  first.send_signal(signal.SIGKILL)
  first.wait()
  # Its run lives on, and nobody trains beside it.
  assert _found(sweep_lib.standing(sweep, folder)) == {
      1: ('done', 1.1), 'sleep': ('running', None), 2: ('missing', None)
  }  # fmt: skip
  told = []
  with _in_thread(lambda: _train(sweep, tmp_path / 'a', told)) as thread:
    _wait_for(lambda: any('waiting for it' in line for line in told))
    pathlib.Path(asleep.run_dir.join('awake')).touch()
    _kill_whoever_holds(asleep)
    thread.join(_FOR_A_PROCESS)
  assert _found(sweep_lib.standing(sweep, folder)) == {
      1: ('done', 1.1), 'sleep': ('done', 0.1), 2: ('done', 2.1)
  }  # fmt: skip
  assert _starts(folder, sweep) == [1, 2, 1]


@contextlib.contextmanager
def _in_thread(work):
  import threading

  thread = threading.Thread(target=work)
  thread.start()
  try:
    yield thread
  finally:
    thread.join(_FOR_A_PROCESS)
    assert not thread.is_alive()


def _kill_whoever_holds(run):
  for entry in pathlib.Path('/proc').iterdir():
    with contextlib.suppress(OSError):
      line = (entry / 'cmdline').read_bytes().decode()
      if 'made_trainer' in line and run.run_dir.path in line:
        os.kill(int(entry.name), signal.SIGKILL)


def test_a_run_that_was_killed_is_shown_so_and_goes_on(tmp_path):
  sweep = _sweep({'x': ['sleep']})
  folder = folder_lib.Folder(str(tmp_path / 'a'))
  run = folder.run(sweep.points[0])
  with _in_thread(lambda: _train(sweep, tmp_path / 'a')):
    _wait_for(lambda: os.path.exists(run.run_dir.join('starts')))
    _kill_whoever_holds(run)
  now = sweep_lib.standing(sweep, folder)
  assert _found(now) == {'sleep': ('killed', None)}
  assert 'SIGKILL' in now.results[0].why
  pathlib.Path(run.run_dir.join('awake')).touch()
  assert _found(_train(sweep, tmp_path / 'a')[1]) == {'sleep': ('done', 0.1)}


def test_halving_lets_the_best_go_on_and_a_second_start_repeats_nothing(
    tmp_path,
):
  method = designs.SuccessiveHalving(
      first=designs.Grid(), first_steps=10, last_steps=40, factor=2
  )
  sweep = _sweep({'x': [4, 'nan', 1, 2, 3]}, method=method)
  folder, now = _train(sweep, tmp_path / 'a')
  rungs = {r.point.bindings['x']: (r.rung, r.step) for r in now.results}
  assert rungs == {
      4: (0, 10), 'nan': (0, None), 3: (0, 10), 2: (1, 20), 1: (2, 40)
  }  # fmt: skip
  ranked = results_lib.ranked(now.results, sweep.measure)
  assert ranked[0].value == 1 + 1 / 40
  _train(sweep, tmp_path / 'a')
  assert _starts(folder, sweep) == [1, 1, 3, 2, 1]
  # Killed in its last rung, the best is still done with those before it.
  best = folder.run(ranked[0].point)
  best.forget_end()
  _train(sweep, tmp_path / 'a')
  assert _starts(folder, sweep) == [1, 1, 3, 2, 1]
  os.remove(best.run_dir.join('reached.json'))
  best.write_end(folder_lib.End(code=0, steps=20, seconds=1.0))
  best.forget_end()
  _, now = _train(sweep, tmp_path / 'a')
  assert _starts(folder, sweep) == [1, 1, 4, 2, 1]
  assert results_lib.ranked(now.results, sweep.measure)[0].value == 1 + 1 / 40


def test_an_unknown_metric_stops_the_sweep_with_those_there_are(tmp_path):
  sweep = _sweep(metric='training_eval/made/los')
  with pytest.raises(points_lib.BadExperimentError) as error:
    _train(sweep, tmp_path / 'a')
  assert f"did you mean '{_METRIC}'" in str(error.value)
  assert 'train/timing/mfu' in str(error.value)
  # Mended, it trains none of them again.
  mended = _sweep()
  folder, _ = _train(mended, tmp_path / 'a')
  assert max(_starts(folder, mended)) == 1


def test_a_folder_of_other_runs_is_refused_with_both_sides(tmp_path):
  _train(_sweep(), tmp_path / 'a')
  for changed in ({'bindings': {'y': 2}}, {'recipe': 'other.gin'}):
    with pytest.raises(points_lib.BadExperimentError) as error:
      _train(_sweep(**changed), tmp_path / 'a')
    assert '--output' in str(error.value)
    assert str(next(iter(changed.values()))).strip("{}'y: ") in str(error.value)
  (tmp_path / 'mine').mkdir()
  (tmp_path / 'mine' / 'thesis.tex').touch()
  with pytest.raises(points_lib.BadExperimentError, match='no folder of an'):
    _train(_sweep(), tmp_path / 'mine')


@pytest.mark.slow
@pytest.mark.skipif(not chromium.program(), reason='needs a Chromium')
def test_a_browser_draws_the_page_and_complains_of_nothing(tmp_path):
  values = {'x': [1, 2, 30], 'kind': ['a' * 90, '</script><b>', None]}
  sweep = _sweep(values)
  folder, now = _train(sweep, tmp_path / 'a')
  page = tmp_path / 'sweep.html'
  page.write_text(sweep_page.html(sweep, folder, now.results))
  with chromium.started() as browser:
    for is_phone, is_dark in ((False, False), (True, True)):
      width = 390 if is_phone else 1280
      browser.open(
          str(page), width=width, height=900, is_dark=is_dark,
          is_phone=is_phone,
      )  # fmt: skip
      drawn = browser.value_of(
          "[...document.querySelectorAll('.plot')]"
          ".filter(p => p.querySelector('svg')).length"
      )
      assert drawn == 4  # parallel, two slices, curves
      # A phone's innerWidth grows with what is too wide.
      wide = browser.value_of('document.documentElement.scrollWidth')
      assert wide <= width
      shots = os.environ.get('T5WILD_SCREENSHOTS')
      if shots:
        name = f'sweep_{is_phone}_{is_dark}.png'
        pathlib.Path(shots, name).write_bytes(browser.screenshot())
    assert not browser.complaints
    assert all(url.startswith(('file:', 'blob:')) for url in browser.requests)
