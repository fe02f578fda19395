# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The command: what it writes, what it refuses, what a browser says to it."""

import base64
import json
import os
import re
import time

import pytest

from t5wild import cli
from t5wild import exit_codes
from t5wild.reports import html_document
from t5wild.reports import run_report
from tests.reports import chromium
from tests.reports import made_runs

_FAULTS = made_runs.Faults(
    spike_step=340, killed_steps=(620,), resumed_steps=(600,),
    slow_steps=(700, 800), nan_step=940, is_cut=True,
)  # fmt: skip


@pytest.fixture(scope='module')
def faulty_run(tmp_path_factory):
  path = tmp_path_factory.mktemp('runs') / 'faulty'
  made_runs.make_run(path, faults=_FAULTS, has_layers=True)
  with open(path / 'metrics.jsonl', 'a', encoding='utf-8') as file:
    file.write('{"step":1000,"sec')
  return str(path)


def _page(run, *flags):
  assert run_report.main([run, *flags]) == exit_codes.DONE.code
  with open(os.path.join(run, 'report.html'), encoding='utf-8') as file:
    return file.read()


def _data(page):
  return re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)


def test_the_command_is_one_of_t5wild(tmp_path, capsys):
  made_runs.make_run(tmp_path, num_steps=100)
  assert cli.main(['report', str(tmp_path)]) == exit_codes.DONE.code
  assert str(tmp_path / 'report.html') in capsys.readouterr().out


def test_the_page_tells_the_faults_and_holds_no_secret(faulty_run):
  page = _page(faulty_run, '--price_per_device_hour=2.5')
  for text in (
      'NaN from step 931-940 on', 'jumps to', 'from step 700 to 800',
      '20 updates were done twice', '1 line of metrics.jsonl left out',
      'steps done again', 'At 2.5 an hour for a device', 'no environment.json',
      'sample of step 1000', '&lt;b&gt; &amp; c', 'MODEL_DIR',
  ):  # fmt: skip
    assert text in page, text
  assert 'abcdefghijk' not in page
  assert '[hidden]' in page


def test_the_page_names_nothing_to_fetch(faulty_run):
  page = _page(faulty_run)
  own = re.sub(r'<script type="application/octet-stream".*?</script>', '', page)
  assert not re.findall(r'(?:src|href)=|@import|https?://|url\(', own)
  assert "default-src 'none'" in own


def test_a_page_of_100_000_steps_is_small_and_quick(tmp_path):
  made_runs.make_run(tmp_path, num_steps=100_000, period=20)
  start = time.process_time()
  page = _page(str(tmp_path))
  # Seconds of this process, whatever else the machine does.
  assert time.process_time() - start < 5
  assert len(_data(page)) < 500_000
  assert len(page) < 3_000_000


def test_a_spike_of_one_step_among_many_is_on_the_page(tmp_path):
  faults = made_runs.Faults(spike_step=51_240)
  made_runs.make_run(tmp_path, num_steps=100_000, period=20, faults=faults)
  data = json.loads(_data(_page(str(tmp_path))))
  (loss,) = [panel for panel in data['panels'] if panel['key'] == 'loss']
  line = loss['lines'][0]
  assert line['points'] == 5000
  assert len(line['x']) < 2500
  later = {x: y for x, y in zip(line['x'], line['y'], strict=True) if x > 9999}
  peak = max(later, key=later.get)
  assert peak == 51_240
  assert later[peak] > 2 * sorted(later.values())[-2]


def test_markdown_and_picture_stand_side_by_side(faulty_run, tmp_path):
  pytest.importorskip('matplotlib')
  output = str(tmp_path / 'out' / 'mine')
  flags = ['--format=md,png', f'--output={output}']
  assert run_report.main([faulty_run, *flags]) == exit_codes.DONE.code
  with open(f'{output}.png', 'rb') as picture:
    assert picture.read(8) == b'\x89PNG\r\n\x1a\n'
  with open(f'{output}.md', encoding='utf-8') as file:
    text = file.read()
  assert '![curves](mine.png)' in text
  assert 'NaN from step 931-940 on' in text
  assert 'abcdefghijk' not in text
  assert sorted(os.listdir(tmp_path / 'out')) == ['mine.md', 'mine.png']


def test_without_plotly_the_page_says_what_to_install(
    faulty_run, monkeypatch, capsys
):
  monkeypatch.setattr(html_document, 'packed_library', lambda: None)
  page = _page(faulty_run)
  assert html_document.INSTALL in page
  assert 'NaN from step 931-940 on' in page
  assert html_document.INSTALL in capsys.readouterr().err


@pytest.mark.parametrize(
    ('flags', 'told'),
    [
        (['/no/such/run'], 'There is no run at'),
        (['gs://bucket/run'], 'in a bucket'),
        (['RUN', '--format=pdf'], "no format 'pdf'"),
        (['RUN', '--output=/proc/here/report'], 'cannot be written'),
    ],
)
def test_bad_input_is_answered_in_three_parts(faulty_run, capsys, flags, told):
  flags = [faulty_run if flag == 'RUN' else flag for flag in flags]
  assert run_report.main(flags) == exit_codes.BAD_CONFIG.code
  error = capsys.readouterr().err
  assert told in error
  assert 'expected:' in error and 'do:' in error


@pytest.mark.parametrize('price', ['-1', 'nan', 'inf', 'much'])
def test_a_price_that_is_none_is_refused(faulty_run, price):
  with pytest.raises(SystemExit) as end:
    run_report.main([faulty_run, f'--price_per_device_hour={price}'])
  assert end.value.code == exit_codes.BAD_CONFIG.code


@pytest.fixture(scope='module')
def browser():
  pytest.importorskip('plotly')
  if chromium.program() is None:
    pytest.skip('there is no Chromium on this machine')
  with chromium.started() as started:
    yield started


@pytest.mark.parametrize('is_dark', [False, True])
@pytest.mark.parametrize(('width', 'is_phone'), [(1280, False), (390, True)])
def test_a_browser_draws_every_chart_and_complains_of_nothing(
    faulty_run, browser, width, is_phone, is_dark
):
  _page(faulty_run)
  path = os.path.join(faulty_run, 'report.html')
  browser.open(
      path, width=width, height=844, is_dark=is_dark, is_phone=is_phone
  )
  charts = browser.value_of("document.querySelectorAll('.plot').length")
  assert charts >= 12
  browser.wait_for(
      "document.querySelectorAll('.plot .main-svg').length >= "
      f'{charts} && document.querySelectorAll(".plot svg .xaxislayer-above")'
      f'.length >= {charts}'
  )
  # Nothing is wider than the screen.
  assert browser.value_of('document.documentElement.scrollWidth') <= width
  theme = browser.value_of('document.documentElement.dataset.theme')
  assert theme == ('dark' if is_dark else 'light')
  assert not browser.complaints
  assert all(url.startswith(('file:', 'data:')) for url in browser.requests)


def test_smoothing_off_shows_the_curve_itself_and_log_scales_it(
    faulty_run, browser
):
  _page(faulty_run)
  path = os.path.join(faulty_run, 'report.html')
  browser.open(path, width=1280, height=844, is_dark=False, is_phone=False)
  traces = "document.getElementById('plot-loss').data"
  smoothed = browser.value_of(f'{traces}.length')
  browser.value_of(
      "const s = document.getElementById('smoothing'); s.value = 0;"
      "s.dispatchEvent(new Event('input'))"
  )
  browser.wait_for(f'{traces}.length < {smoothed}')
  assert browser.value_of(f'{traces}[0].opacity') == 1
  button = "document.querySelector('#plot-loss').parentElement"
  browser.value_of(f"{button}.querySelector('.log').click()")
  browser.wait_for(
      "document.getElementById('plot-loss').layout.yaxis.type === 'log'"
  )
  # A finding's button shows its place in all charts.
  browser.value_of("document.querySelector('button[data-step]').click()")
  browser.wait_for(
      "document.getElementById('plot-mfu').layout.xaxis.range[0] > 500"
  )
  assert not browser.complaints


def test_bad_records_have_no_height_and_a_part_in_view_fills_the_height(
    faulty_run, browser
):
  _page(faulty_run)
  path = os.path.join(faulty_run, 'report.html')
  browser.open(path, width=1280, height=844, is_dark=False, is_phone=False)

  def of(script):
    return json.loads(browser.value_of(f'JSON.stringify({script})'))

  loss = "document.getElementById('plot-loss')"
  traces = of(
      f'{loss}.data.map(t => ({{name: t.name, text: t.text, y: t.y, x: t.x, '
      'yaxis: t.yaxis, mode: t.mode, told: t.hoverinfo !== "skip"}))'
  )
  (crosses,) = [t for t in traces if t['name'].startswith('NaN')]
  assert crosses['yaxis'] == 'y2'
  # Pointing at a bad record tells that, and no neighbour's value.
  (told,) = [t for t in traces if t['told'] and 940 in t['x']]
  assert told['text'][told['x'].index(940)] == 'NaN'
  whole = of(f'{loss}.layout.yaxis.range')
  browser.value_of('setRange([850, 900], null)')
  browser.wait_for(f'{loss}.layout.xaxis.range[0] === 850')
  part = of(f'{loss}.layout.yaxis.range')
  assert part[1] - part[0] < 0.2 * (whole[1] - whole[0])
  browser.value_of(
      "(document.getElementById('axis').value = 'time', document."
      "getElementById('axis').dispatchEvent(new Event('change')))"
  )
  browser.wait_for(f'{loss}.layout.xaxis.title.text.startsWith("minutes")')
  first, last = of(f'{loss}.layout.xaxis.range')
  places = of(
      "document.getElementById('plot-timeline').data.flatMap(t => t.x)"
  )
  assert len(places) == len(of('data.events'))
  assert first <= min(places) and max(places) <= last
  assert not browser.complaints


def test_paper_is_white_and_the_screen_is_as_before(faulty_run, browser):
  _page(faulty_run)
  path = os.path.join(faulty_run, 'report.html')
  browser.open(path, width=1280, height=844, is_dark=True, is_phone=False)
  theme = 'document.documentElement.dataset.theme'
  browser.value_of(
      "addEventListener('beforeprint', () => { window.printed = "
      f"[{theme}, document.querySelector('details.printed').open]; }})"
  )
  pdf = base64.b64decode(browser.call('Page.printToPDF')['data'])
  assert pdf[:5] == b'%PDF-' and len(pdf) > 50_000
  assert browser.value_of('window.printed') == ['light', True]
  assert browser.value_of(theme) == 'dark'
  assert not browser.complaints


def test_axes_suit_what_is_constant_and_reach_to_the_planned_end(
    faulty_run, browser
):
  _page(faulty_run)
  path = os.path.join(faulty_run, 'report.html')
  browser.open(path, width=1280, height=844, is_dark=False, is_phone=False)

  def of(script):
    return browser.value_of(f'JSON.stringify({script})')

  rates = '{lines: [{y: [0.01, 0.009999999776]}]}'
  assert json.loads(of(f'rangeOfConstant({rates}, false)'))['range'] == [
      0, pytest.approx(0.015)
  ]  # fmt: skip
  assert of('rangeOfConstant({lines: [{y: [1, 2]}]}, false)') == '{}'
  # Of a run that broke off half-way, and of one that has only begun.
  for planned, last in ((2000, 2000), (9000, 1000)):
    script = f'(data.total_steps = {planned}, wholeRange())'
    assert last <= json.loads(of(script))[1] < 1.05 * last
  lines = json.loads(of("document.getElementById('plot-mfu').layout.shapes"))
  steps = [each['step'] for each in json.loads(of('data.findings'))]
  assert {each['x0'] for each in lines} >= set(steps[:2])
