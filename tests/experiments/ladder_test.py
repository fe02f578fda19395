# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A ladder trains its runs once, and tells of the larger run what they say."""

import csv
import json
import os
import pathlib
import sys

import pytest

from t5wild.experiments import findings
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import ladder as ladder_lib
from t5wild.experiments import ladder_page
from t5wild.experiments import ladder_picture
from t5wild.experiments import points as points_lib
from t5wild.experiments import recipes
from t5wild.experiments import scaling_fit
from tests.reports import chromium

_PROGRAM = (sys.executable, '-m', 'tests.experiments.made_trainer')
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_TOKENS_PER_STEP = 100


@pytest.fixture(autouse=True)
def a_made_recipe(monkeypatch):
  """Costs without JAX: `x` of 100 / parameters, so that the loss is a law."""
  monkeypatch.setenv('PYTHONPATH', str(_ROOT))

  def costs(recipe, bindings):
    parameters = round(100 / bindings['x'])
    return {
        'num_parameters': parameters,
        'tokens_per_step': _TOKENS_PER_STEP,
        'flops_per_step': 6.0 * parameters * _TOKENS_PER_STEP,
    }

  monkeypatch.setattr(recipes, 'costs', costs)


def _ladder(**changed):
  return ladder_lib.Ladder(**{
      'recipe': 'made.gin',
      'sizes': {f's{x}': {'x': x} for x in (0.5, 0.25, 0.125)},
      'tokens': [1000, 2000, 4000],
      'target': ladder_lib.Target(size={'x': 0.0625}, tokens=8000),
      'metric': 'training_eval/made/loss',
      'steps_names': ['TRAIN_STEPS'],
      'trains_target': True,
      **changed,
  })


def _climb(ladder, path):
  folder = folder_lib.Folder(str(path))
  folder.open_for(ladder.described('texts'))
  rungs = ladder_lib.plan(ladder, folder, lambda line: None)
  ladder_lib.train(
      ladder, folder, rungs, say=lambda line: None, program=_PROGRAM
  )
  return folder, ladder_lib.with_results(ladder, folder, rungs)


@pytest.fixture(scope='module')
def climbed(tmp_path_factory):
  return tmp_path_factory.mktemp('ladder') / 'a'


def test_the_law_of_the_runs_foretells_the_larger_one(climbed):
  # The stand-in's loss is x + 1 / steps = 100 / N + 100 / D.
  ladder = _ladder()
  folder, rungs = _climb(ladder, climbed)
  found = findings.find(rungs, metric=ladder.metric)
  assert found.law.exponents['a'].value == pytest.approx(1, abs=0.02)
  assert found.law.exponents['b'].value == pytest.approx(1, abs=0.02)
  assert found.target.tokens == 8000 and found.target.num_steps == 80
  assert found.predicted.value == pytest.approx(0.0625 + 1 / 80, rel=0.02)
  # Whether within is chance: losses without noise leave a point of a range.
  assert any('It came to 0.075' in line for line in found.lines)
  told = json.loads(findings.as_json(found))
  assert told['target']['measured'] == 0.075
  rows = list(csv.DictReader(findings.as_csv(rungs).splitlines()))
  assert len(rows) == 10 and rows[-1]['size'] == 'target'
  # Again: nothing is trained, nothing is asked.
  _climb(ladder, climbed)
  for rung in rungs:
    starts = pathlib.Path(folder.run(rung.point).run_dir.join('starts'))
    assert len(starts.read_text().splitlines()) == 1


def _let_nan_be_a_size(monkeypatch):
  costs = recipes.costs
  monkeypatch.setattr(
      recipes,
      'costs',
      lambda recipe, b: costs(recipe, {'x': 0.3} if b['x'] == 'nan' else b),
  )


def test_a_run_without_a_loss_is_left_out_and_said(tmp_path, monkeypatch):
  ladder = _ladder(sizes={
      **{f's{x}': {'x': x} for x in (0.5, 0.25, 0.125)}, 'bad': {'x': 'nan'}
  })  # fmt: skip
  _let_nan_be_a_size(monkeypatch)
  _, rungs = _climb(ladder, tmp_path / 'a')
  found = findings.find(rungs, metric=ladder.metric)
  assert len(found.runs) == 9 and len(found.lost) == 3
  assert 'diverged' in found.lines[0]


def test_too_few_losses_are_refused(tmp_path, monkeypatch):
  ladder = _ladder(sizes={'a': {'x': 'nan'}, 'b': {'x': 0.25}, 'c': {'x': 0.5}})
  _let_nan_be_a_size(monkeypatch)
  _, rungs = _climb(ladder, tmp_path / 'a')
  with pytest.raises(scaling_fit.CannotFitError, match='6 results'):
    findings.find(rungs, metric=ladder.metric)


@pytest.mark.slow
@pytest.mark.skipif(not chromium.program(), reason='needs a Chromium')
def test_a_browser_draws_the_page_and_complains_of_nothing(climbed):
  ladder = _ladder()
  _, rungs = _climb(ladder, climbed)
  found = findings.find(rungs, metric=ladder.metric)
  page = climbed / 'ladder.html'
  page.write_text(ladder_page.html(found))
  ladder_picture.draw(found, climbed / 'ladder.png')
  assert (climbed / 'ladder.png').read_bytes()[:4] == b'\x89PNG'
  shots = os.environ.get('T5WILD_SCREENSHOTS')
  with chromium.started() as browser:
    for is_phone, is_dark in ((False, False), (True, True)):
      width = 390 if is_phone else 1280
      browser.open(
          str(page), width=width, height=900, is_dark=is_dark,
          is_phone=is_phone,
      )  # fmt: skip
      drawn = "document.querySelectorAll('.plot .main-svg').length"
      assert browser.value_of(drawn) >= 3
      # A phone's innerWidth grows with what is too wide.
      wide = browser.value_of('document.documentElement.scrollWidth')
      assert wide <= width
      if shots:
        name = f'ladder_{is_phone}_{is_dark}.png'
        pathlib.Path(shots, name).write_bytes(browser.screenshot())
    assert not browser.complaints
    assert all(url.startswith(('file:', 'blob:')) for url in browser.requests)


@pytest.mark.parametrize(
    ('changed', 'told'),
    [
        ({'sizes': {'a': {'x': 1}}}, 'There are 1 sizes'),
        ({'tokens': [1000, 2000]}, 'There are 3 sizes and 2 numbers'),
        ({'tokens': [1000, 2000, -5]}, 'tokens are'),
        ({'tokens': [1000, 1000, 5000]}, 'tokens are'),
        ({'target': {'x': 1}}, 'target is'),
        ({'bindings': {'x': 1}}, 'binds x, which all runs do'),
        (
            {'sizes': {'a': {}, 'b': {'x': 1}, 'c': {'x': 2}}},
            "The size 'a' is {}",
        ),
    ],
)
def test_what_is_no_ladder_is_refused_in_three_parts(changed, told):
  with pytest.raises(points_lib.BadExperimentError) as error:
    _ladder(**changed)
  assert told in str(error.value)
  assert 'expected:' in str(error.value) and 'do:' in str(error.value)


def test_sizes_that_are_one_run_are_refused(tmp_path):
  ladder = _ladder(sizes={'a': {'x': 1}, 'b': {'x': 1.0}, 'c': {'x': 2}})
  with pytest.raises(points_lib.BadExperimentError, match="'a' and 'b'"):
    _climb(ladder, tmp_path / 'a')
