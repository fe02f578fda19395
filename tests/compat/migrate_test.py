# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe runs unchanged if every binding is read; else it is told why."""

import sys
import textwrap

import pytest

from t5wild.compat import gin_files
from t5wild.compat import migrate
from t5wild.gin_config import reader

_HEAD = 'from __gin__ import dynamic_registration\n'
_GOOD = """
    import __main__ as train_script
    from t5x import models
    from t5x import utils
    include 't5x/examples/t5/t5_1_1/tiny.gin'
    include 't5x/configs/runs/pretrain.gin'
    MIXTURE_OR_TASK_NAME = 'my_task'
    train_script.train.eval_period = 3
    utils.SaveCheckpointConfig.keep = 2
    models.EncoderDecoderModel.predict_batch_with_aux.num_decodes = 4
"""


@pytest.fixture
def write(t5x_names, monkeypatch, tmp_path):
  """Writes a file of the recipe's folder; returns its path."""
  monkeypatch.setattr(reader, '_SOURCES', [gin_files.text_of])

  def write_file(name, text, *, head=_HEAD):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + textwrap.dedent(text))
    return str(path)

  return write_file


def _only(path):
  (report,) = migrate.check([path])
  return report


def test_a_recipe_in_t5x_words_runs_unchanged(write):
  report = _only(write('good.gin', _GOOD))
  assert report.faults == ()
  assert report.runs_unchanged


def test_what_flags_are_to_set_is_no_fault_and_is_told(write):
  report = _only(write('run.gin', "include 't5x/configs/runs/pretrain.gin'\n"))
  assert report.runs_unchanged
  assert any('%MODEL' in need for need in report.needs)


@pytest.mark.parametrize(
    ('line', 'place', 'message'),
    [
        ('utils.DatasetConfig.batchsize = 3', ':3:', "'batch_size'"),
        ('utils.DatasetConfi.batch_size = 3', ':3:', "'DatasetConfig'"),
        ('from t5x.contrib.moe import models', ':3:', 'mixtures of experts'),
        ('import not_installed.tasks', ':3:', 'not_installed is not installed'),
    ],
)
def test_what_is_missing_is_told_with_its_line(write, line, place, message):
  report = _only(write('bad.gin', f'from t5x import utils\n{line}\n'))
  assert not report.runs_unchanged
  assert place in report.faults[0]
  assert message in report.faults[0]


def test_code_beside_the_recipe_is_never_run(write, tmp_path):
  write('my_tasks.py', "raise RuntimeError('was run')\n", head='')
  report = _only(write('good.gin', _GOOD + '    import my_tasks\n'))
  assert report.runs_unchanged
  assert report.own_modules == ('my_tasks',)
  assert 'my_tasks' not in sys.modules


def test_a_binding_of_code_that_was_not_read_is_a_fault(write):
  write('my_models.py', 'class Model: pass\n', head='')
  report = _only(
      write('a.gin', 'import my_models\nmy_models.Model.size = 3\n')
  )
  assert not report.runs_unchanged


def test_a_parameter_that_only_kwargs_would_take_is_a_fault(write, monkeypatch):
  def passes_on(known=1, **kwargs):
    return known, kwargs

  monkeypatch.setitem(
      sys.modules, 't5wild.passing', type(sys)('t5wild.passing')
  )
  sys.modules['t5wild.passing'].passes_on = passes_on
  text = 'import t5wild.passing as p\np.passes_on.{} = 2\n'
  assert _only(write('a.gin', text.format('known'))).runs_unchanged
  report = _only(write('b.gin', text.format('other')))
  assert "declares no parameter 'other'" in report.faults[0]


def test_a_part_runs_as_the_part_of_files_that_do(write, tmp_path):
  part = write('parts/size.gin', 'network.T5Config.emb_dim = 4\n', head='')
  assert not _only(part).runs_unchanged
  whole = write('whole.gin', _GOOD + "    include 'parts/size.gin'\n")
  reports = {each.path: each for each in migrate.check([str(tmp_path)])}
  assert reports[part].runs_unchanged
  assert reports[part].includers == (whole,)


def test_text_that_is_no_gin_is_one_fault(write):
  report = _only(write('a.gin', 'a: b: c\n', head=''))
  assert len(report.faults) == 1
  assert 'this is no gin statement' in report.faults[0]
