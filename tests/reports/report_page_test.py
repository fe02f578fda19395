# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a reader needs of the page within a minute is there, and in words."""

import dataclasses
import importlib.resources
import json
import re

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.reports import events
from t5wild.reports import html_page
from t5wild.reports import money_table
from t5wild.reports import page_data
from t5wild.reports import panels
from t5wild.reports import time_spent
from t5wild.vitals import records as records_lib
from tests.reports import made_runs


@pytest.fixture(scope='module')
def contents(tmp_path_factory):
  path = tmp_path_factory.mktemp('runs') / 'mine'
  faults = made_runs.Faults(
      nan_step=800, killed_steps=(450,), resumed_steps=(400,)
  )
  made_runs.make_run(path, faults=faults)
  run = run_dir_lib.RunDir(str(path))
  with open(run.events_jsonl, 'w', encoding='utf-8') as file:
    for name, text in (
        ('vitals/loss_spike', 'the loss leapt up at step 300'),
        ('vitals/slow_steps', 'a step takes <b> 9 s'),
    ):
      record = records_lib.Record(
          300, made_runs.BEGAN + 160, 0, name, 1.0, '', text
      )
      file.write(records_lib.to_line(record))
  return contents_lib.read_contents(run.path)


@pytest.fixture(scope='module')
def page(contents):
  return html_page.page(contents)


def _data(page):
  text = re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)
  return json.loads(text)


def test_what_stands_out_comes_before_numbers_and_charts(page):
  places = [
      page.index(f'{each}')
      for each in ('class="findings"', 'class="facts"', 'id="curves"',
                   'id="events"')
  ]  # fmt: skip
  assert places == sorted(places)


def test_every_event_is_a_row_of_the_table_in_words(page, contents):
  table = page[page.index('<section id="events">') :]
  table = table[: table.index('</section>')]
  assert table.count('<tr><td class="number">') >= len(contents.events)
  assert 'steps became slow: a step takes &lt;b&gt; 9 s' in table
  # Not `the loss leapt up: the loss leapt up`.
  assert table.count('the loss leapt up') == 1
  assert re.search(r'NaN or infinite</td><td>The training loss and', table)


def test_every_kind_of_event_has_one_colour_in_either_theme():
  folder = importlib.resources.files('t5wild.reports') / 'page'
  css = (folder / 'report.css').read_text(encoding='utf-8')
  script = (folder / 'report.js').read_text(encoding='utf-8')
  for kind in events.KINDS:
    assert css.count(f'--event-{kind}: #') == 2, kind
    assert f'{kind}: \'' in script, kind


def test_the_script_is_told_the_planned_end_and_each_findings_step(page):
  data = _data(page)
  assert data['total_steps'] == 1000
  assert (800, 'bad') in [(f['step'], f['level']) for f in data['findings']]
  (restart,) = [each for each in data['events'] if each['kind'] == 'restart']
  assert restart['step'] == 450


def test_events_of_a_short_run_keep_their_milliseconds(page, contents):
  data = _data(page)
  told = [each['seconds'] for each in data['events']]
  meant = [each.seconds - contents.first_seconds for each in contents.events]
  assert told == pytest.approx(meant, abs=1e-3)


@pytest.mark.parametrize(
    ('seconds', 'unit'),
    [(0, 'seconds'), (8.1, 'seconds'), (367, 'minutes'), (36_000, 'hours')],
)
def test_time_is_told_in_a_unit_that_suits_its_length(seconds, unit):
  assert page_data.unit_of(seconds)['unit'] == unit


def test_a_finding_stands_at_its_moment_though_its_step_was_passed_twice(
    page, contents
):
  (told,) = [f for f in _data(page)['findings'] if f['label'] == 'restart']
  (restart,) = [each for each in contents.events if each.kind == 'restart']
  moment = restart.seconds - contents.first_seconds
  assert told['seconds'] == pytest.approx(moment, abs=1e-3)
  (event,) = [e for e in _data(page)['events'] if e['kind'] == 'restart']
  assert (event['from'], event['step']) == (400, 450)


def test_show_names_the_chart_that_a_finding_is_about(page):
  shown = re.findall(r'data-step="(\d+)".*? data-chart="(\w+)"', page)
  assert ('800', 'loss') in shown and ('400', 'timeline') in shown
  for _, chart in shown:
    assert f'id="plot-{chart}"' in page


def test_tiles_say_which_record_and_never_show_nan_as_a_number(contents):
  loss = contents.facts['loss, last records']
  assert re.fullmatch(r'[\d.]+ to step 790, then NaN', loss)
  assert contents.facts['held-out loss, last record']


def test_goodput_is_explained_where_it_stands(page):
  assert 'goodput: time in steps that count' in page
  assert 'title="share of the wall time' in page


def test_the_configuration_is_folded(page):
  assert '<details class="printed"><summary>set' in page


def test_a_chart_says_that_it_is_being_drawn(page):
  assert ".plot:empty::before { content: 'drawing …'" in page


def _spent(**seconds):
  return time_spent.TimeSpent(seconds=seconds, is_estimate=False)


def test_no_two_kinds_of_time_read_alike_and_short_ones_are_seconds(contents):
  def rows(**seconds):
    spent = _spent(**seconds)
    made = dataclasses.replace(contents, time_spent=spent)
    return money_table.rows(made)

  both = rows(step=7200.0, init=0.25, restore=90.0)
  assert [row.time for row in both] == ['2 h 0 min', '0.25 s', '1 min 30 s']
  assert not any('first state or' in row.label for row in both)
  assert rows(restore=3.0)[0].label == 'first state or restore'


@pytest.mark.parametrize(
    ('settings', 'words'),
    [
        ({}, 'no evaluation was reached (eval_period)'),
        ({'train_script.train.eval_period': 'None'}, 'eval_period is None'),
        ({'train_script.train.eval_period': '5000'}, 'eval_period is 5000'),
        (
            {'train_script.train.eval_period': '%EVAL', 'EVAL': 'None'},
            'eval_period is None',
        ),
    ],
)
def test_what_is_absent_is_told_by_the_configuration(settings, words):
  (kind,) = [each for each in panels.KINDS if each.key == 'held_out']
  told = kind.why_absent(settings)
  assert words in told
  assert ('was reached' in told) == ('None' not in words)
