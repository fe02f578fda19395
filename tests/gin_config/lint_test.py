# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What the lint refuses, with file and line, and what it leaves alone."""

import re

import pytest

from t5wild.gin_config import flags
from t5wild.gin_config import lint
from t5wild.gin_config import reader


def _lint(*paths, flag=(), skip_unknown=False):
  files = [reader.read_file(path) for path in paths]
  bindings = [
      statement
      for text in flag
      for statement in reader.read_text(flags.quoted(text)).statements
  ]
  return lint.lint(files, bindings, skip_unknown=skip_unknown)


def _only_error(report):
  assert len(report.errors) == 1, '\n\n'.join(report.errors)
  return report.errors[0]


def test_a_right_file_has_no_findings(toy, write):
  path = write('a.gin', """
      SIZE = 4
      toy.train.model = @toy.Model()
      toy.Model.size = %SIZE
  """)
  report = _lint(path)
  assert not report.errors
  assert not report.hints


@pytest.mark.parametrize(
    ('line', 'what', 'close'),
    [
        ('toy.Modle.size = 4', "'toy' has no 'Modle'", "'Model'"),
        ('tyo.Model.size = 4', "'tyo' is not imported", "'toy'"),
        ('toy.Model.sise = 4', "no parameter 'sise'", "'size'"),
        ('toy.Model.size = %SIZ', 'unknown macro %SIZ', "'SIZE'"),
        ('toy.Model.size = %gin.REQURED', '%gin.REQURED', "'gin.REQUIRED'"),
        ('trian/toy.Model.size = 4', "the scope 'trian'", "'train'"),
        ('import t5wild.gin_utlis', "import 't5wild.gin_utlis'", 'gin_utils'),
    ],
)
def test_a_misspelt_name_is_refused_with_line_and_close_name(
    toy, write, line, what, close
):
  path = write('a.gin', f"""
      SIZE = 4
      toy.train.model = @train/toy.Model()
      toy.train.steps = %SIZE
      {line}
  """)
  error = _only_error(_lint(path))
  assert error.startswith(f'{path}:7: {line}')
  assert what in error
  assert 'did you mean' in error and close in error
  assert 'expected: ' in error and 'do: ' in error


def test_a_misspelt_name_inside_a_value_is_refused(toy, write):
  path = write('a.gin', "toy.train.fn = {'a': [@toy.Modle()]}")
  assert "'toy' has no 'Modle'" in _only_error(_lint(path))


@pytest.mark.parametrize(
    'line',
    [
        "toy.Model.size = '4'",
        'toy.Model.size = 4.0',
        'toy.Model.size = True',
        'toy.Model.size = None',
        'toy.Model.size = @toy.Model',
        "toy.Model.rate = 'high'",
        "toy.DatasetConfig.shuffle = 'yes'",
        "toy.DatasetConfig.lengths = ['inputs']",
        "toy.DatasetConfig.lengths = {'inputs': '4'}",
        'toy.DatasetConfig.rates = 0.1',
        "toy.train.model = 'small'",
    ],
)
def test_a_wrong_type_is_refused(toy, write, line):
  path = write('a.gin', f'toy.train.steps = 1\n{line}')
  error = _only_error(_lint(path))
  assert error.startswith(f'{path}:4: {line}')
  assert re.search(r'is given .* of type ', error)


@pytest.mark.parametrize(
    'line',
    [
        'toy.Model.rate = 1',
        'toy.DatasetConfig.shuffle = 0',
        'toy.DatasetConfig.lengths = None',
        "toy.DatasetConfig.lengths = {'inputs': 4}",
        'toy.DatasetConfig.rates = [0.1, 1]',
        'toy.DatasetConfig.rates = (0.1, %RATE)',
        'toy.train.model = @toy.Model()',
        'toy.train.evaluation = 7',
        'toy.train.anything = 7',
    ],
)
def test_a_value_that_python_would_take_is_left_alone(toy, write, line):
  path = write('a.gin', f'RATE = 1.0\n{line}\ntoy.train.fn = %RATE')
  assert not _lint(path).errors


def test_a_wrong_type_behind_macros_is_refused_where_it_was_written(toy, write):
  path = write('a.gin', """
      toy.Model.size = %SIZE
      SIZE = %OTHER
      OTHER = 'big'
  """)
  assert _only_error(_lint(path)).startswith(f"{path}:6: OTHER = 'big'")


def test_a_macro_of_a_wrong_type_is_one_error_however_many_read_it(toy, write):
  path = write('a.gin', """
      BATCH = 'eight'
      toy.train.model = @toy.Model()
      toy.train.data = @other/toy.DatasetConfig()
      toy.DatasetConfig.batch_size = %BATCH
      other/toy.DatasetConfig.batch_size = %BATCH
  """)
  assert "is given 'eight'" in _only_error(_lint(path))


def test_a_wrong_type_that_a_flag_overrides_is_left_alone(toy, write):
  path = write('a.gin', "toy.Model.size = '4'")
  assert not _lint(path, flag=['toy.Model.size = 4']).errors


def test_a_wrong_type_for_other_peoples_code_is_a_hint(toy, write):
  report = _lint(write('a.gin', "toy.theirs.size = '4'"))
  assert not report.errors
  assert len(report.hints) == 1


@pytest.mark.parametrize('name', ['SIZE', 'toy.Model.size', 'a/toy.Model.size'])
def test_a_second_binding_in_one_file_is_refused(toy, write, name):
  path = write('a.gin', f"""
      toy.train.model = @a/toy.Model()
      toy.train.steps = %SIZE
      SIZE = 4
      {name} = 4
      {name} = 5
  """.replace('SIZE = 4\n', '' if name == 'SIZE' else 'SIZE = 4\n', 1))
  error = _only_error(_lint(path))
  assert 'a second time' in error
  assert f'{name} = 5' in error.splitlines()[0]
  assert f'{name} = 4' in error


def test_a_binding_in_a_later_file_or_flag_overrides_silently(toy, write):
  first = write('a.gin', 'toy.Model.size = 4')
  second = write('b.gin', "include 'a.gin'\ntoy.Model.size = 5")
  assert not _lint(first, second, flag=['toy.Model.size = 6']).errors


def test_a_macro_declared_required_may_be_set_further_down(toy, write):
  path = write('a.gin', """
      SIZE = %gin.REQUIRED
      toy.Model.size = %SIZE
      SIZE = 4
  """)
  assert not _lint(path).errors


def test_all_missing_values_are_listed_at_once_with_an_example(toy, write):
  path = write('a.gin', """
      TRAIN_STEPS = %gin.REQUIRED
      MODEL_DIR = %gin.REQUIRED
      toy.train.steps = %TRAIN_STEPS
      toy.train.model_dir = %MODEL_DIR
      toy.strict.steps = %gin.REQUIRED
  """)
  error = _only_error(_lint(path))
  assert error.startswith('3 required values not set:')
  assert f'TRAIN_STEPS  ({path}:4)' in error
  assert (
      '--gin.TRAIN_STEPS=10000 --gin.MODEL_DIR=/path/to/my_run '
      '--gin.toy.strict.steps=VALUE'
  ) in error
  assert not _lint(
      path, flag=['TRAIN_STEPS=1', 'MODEL_DIR=x', 'toy.strict.steps=1']
  ).errors


def test_a_value_set_under_a_misspelt_name_is_told_where_it_is_missing(
    toy, write
):
  path = write('a.gin', '''
      TRAIN_STEPS = %gin.REQUIRED
      TRAIN_SETPS = 4
      OTHER = 4
      toy.train.steps = %TRAIN_STEPS
  ''')
  error = _only_error(_lint(path))
  assert (
      f"TRAIN_STEPS  ({path}:4); 'TRAIN_SETPS' is set: did you mean "
      "'TRAIN_STEPS'?"
  ) in error
  assert 'OTHER' not in error


def test_an_unread_macro_is_a_hint_in_other_peoples_files(toy, write):
  report = _lint(write('a.gin', 'toy.Model.size = 4\nUNREAD = 1'))
  assert not report.errors
  assert "nothing reads the macro 'UNREAD'" in report.hints[0]


def test_an_unread_macro_is_an_error_in_our_recipes(
    toy, write, tmp_path, monkeypatch
):
  path = write('a.gin', 'toy.Model.size = 4\nUNREAD = 1')
  monkeypatch.setattr(reader, 'gin_root', lambda: tmp_path)
  assert "nothing reads the macro 'UNREAD'" in _only_error(_lint(path))


def test_a_flag_that_is_nearly_a_macro_is_refused(toy, write):
  path = write('a.gin', 'BATCH_SIZE = 4\ntoy.train.steps = %BATCH_SIZE')
  error = _only_error(_lint(path, flag=['BATCH_SZIE = 8']))
  assert "did you mean 'BATCH_SIZE'" in error
  assert not _lint(path, flag=['USE_CACHED_TASKS = False']).errors


def test_a_file_without_imports_may_name_what_its_include_named(toy, write):
  write('base.gin', """
      import t5wild_toy as network
      network.Model.size = 4
  """)
  small = write('small.gin', """
      include 'base.gin'
      network.Model.size = 2
      Model.rate = 1.0
  """, head=False)
  assert not _lint(small).errors
  wrong = write('wrong.gin', """
      include 'base.gin'
      network.Modle.size = 2
      network.Model.sise = 2
  """, head=False)
  assert len(_lint(wrong).errors) == 2


def test_a_scope_that_python_enters_can_be_declared(toy, write, monkeypatch):
  monkeypatch.setattr(lint, '_SCOPES_ENTERED_BY_PYTHON', set())
  path = write('a.gin', """
      toy.train.model = @stage1/toy.Model()
      stage2/toy.Model.size = 4
  """)
  assert 'stage2' in _only_error(_lint(path))
  lint.declare_scopes('stage2')
  assert not _lint(path).errors


def test_lines_of_one_unentered_scope_are_told_once(toy, write):
  path = write('a.gin', """
      toy.train.model = @stage1/toy.Model()
      elsewhere/toy.Model.size = 4
      elsewhere/toy.Model.rate = 0.5
      nowhere/toy.Model.size = 4
      elsewhere/toy.train.steps = 4
  """)
  report = _lint(path)
  assert not report.errors
  elsewhere, nowhere = report.hints
  assert "'elsewhere'" in elsewhere and 'as 2 more lines' in elsewhere
  assert 'a.gin:5' in elsewhere and 'a.gin:6' in elsewhere
  assert "'nowhere'" in nowhere and 'more lines' not in nowhere


def test_unknown_names_are_hints_when_they_may_be_skipped(toy, write):
  path = write('a.gin', 'toy.Modle.size = 4\nimport nowhere.at_all')
  assert not _lint(path, skip_unknown=True).errors
  assert len(_lint(path, skip_unknown=['toy.Modle']).errors) == 0
  assert len(_lint(path, skip_unknown=['toy.Other']).errors) == 1


def test_every_error_is_raised_in_one_message(toy, write):
  path = write('a.gin', 'toy.Modle.size = 4\ntoy.Model.sise = 4')
  with pytest.raises(reader.GinError, match='has 2 errors') as raised:
    _lint(path).raise_errors()
  assert 'Modle' in str(raised.value) and 'sise' in str(raised.value)


@pytest.mark.parametrize(
    ('code', 'raised'),
    [
        ('\n1 / 0', 'ZeroDivisionError: division by zero, at '),
        ('\nimport sys; sys.exit(7)', 'SystemExit: 7, at '),
        ('\ndef f(:', 'SyntaxError: invalid syntax '),
    ],
)
def test_a_module_whose_code_fails_is_one_error_with_the_place(
    toy, write, monkeypatch, tmp_path, code, raised
):
  name = f'their_tasks_{abs(hash(code))}'
  (tmp_path / f'{name}.py').write_text(code, encoding='utf-8')
  monkeypatch.syspath_prepend(str(tmp_path))
  error = _only_error(_lint(write('a.gin', f'import {name}\n')))
  assert f'a.gin:3: import {name}' in error
  assert f'its code raises {raised}' in error
  assert f'{name}.py' in error


def test_a_class_that_is_not_called_is_no_object_of_it(toy, write):
  error = _only_error(_lint(write('a.gin', 'toy.train.model = @toy.Model\n')))
  assert 'such as @toy.Model()' in error
  assert not _lint(write('b.gin', 'toy.train.fn = @toy.Model\n')).errors
