# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's names are ours where t5 is absent, and an installed t5 keeps its own."""

import importlib
import os
import pathlib
import subprocess
import sys

import gin
import pytest

from t5wild.compat import t5_alias
from t5wild.compat import t5_finder


def _forget():
  for name in [n for n in sys.modules if n.partition('.')[0] == 't5']:
    del sys.modules[name]
  sys.meta_path[:] = [
      each
      for each in sys.meta_path
      if getattr(each, 'table', None) is not t5_alias.TABLE
  ]


@pytest.fixture
def t5_names(monkeypatch):
  """T5's names are ours, whatever is installed."""
  monkeypatch.setenv(t5_finder.HIDE_VARIABLE, '1')
  _forget()
  t5_finder.install()
  yield
  _forget()


@pytest.mark.parametrize('module', t5_alias.TABLE.modules())
def test_an_alias_is_the_very_object_at_its_place(module, t5_names):
  imported = importlib.import_module(module)
  for name, place in t5_alias.TABLE.aliases(module).items():
    source, _, attribute = place.partition(':')
    ours = getattr(importlib.import_module(source), attribute)
    assert getattr(imported, name) is ours
    assert name in dir(imported)


def test_every_spelling_of_an_import_works(t5_names):
  from t5.data import preprocessors
  from t5.data.glue_utils import get_glue_metric
  import t5.data.mixtures as mixtures
  import t5.evaluation.metrics as metrics

  t5 = sys.modules['t5']
  assert t5.data.preprocessors is preprocessors
  assert t5.data.get_glue_metric is get_glue_metric
  assert t5.data.mixtures is mixtures
  assert metrics.bleu.__module__ == 't5wild.tasks.t5.metrics'


def test_importing_tasks_registers_them(t5_names):
  import seqio

  importlib.import_module('t5.data.tasks')
  assert 'c4_v220_span_corruption' in seqio.TaskRegistry.names()


@pytest.mark.parametrize(
    ('module', 'reason'),
    [
        ('t5.models.hf_model', 'Mesh TensorFlow'),
        ('t5.data.preprocesors', "did you mean 't5.data.preprocessors'"),
    ],
)
def test_an_unknown_module_says_why_and_what_to_do(module, reason, t5_names):
  with pytest.raises(ModuleNotFoundError, match=reason) as raised:
    importlib.import_module(module)
  assert 'pip install t5' in str(raised.value)


def test_an_unknown_name_says_what_is_there(t5_names):
  preprocessors = importlib.import_module('t5.data.preprocessors')
  with pytest.raises(AttributeError, match="did you mean 'translate'"):
    _ = preprocessors.translat


@pytest.mark.parametrize('hide', [False, True])
def test_an_installed_t5_keeps_its_names_unless_it_is_hidden(tmp_path, hide):
  package = tmp_path / 't5' / 'data'
  package.mkdir(parents=True)
  (tmp_path / 't5' / '__init__.py').touch()
  (package / '__init__.py').write_text('whose = "theirs"\n')
  code = (
      'import t5wild.compat, t5.data\nprint(getattr(t5.data, "whose", "ours"))'
  )
  done = subprocess.run(
      [sys.executable, '-c', code],
      capture_output=True, text=True, check=False, cwd=tmp_path,
      env={**os.environ, t5_finder.HIDE_VARIABLE: str(int(hide))},
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout == ('ours\n' if hide else 'theirs\n')


def test_a_folder_that_is_called_t5_is_no_package(tmp_path):
  (tmp_path / 't5').mkdir()
  (tmp_path / 't5' / 'my.gin').touch()
  done = subprocess.run(
      [sys.executable, '-c',
       'import sys, t5wild.compat, t5.data; '
       'print(type(sys.modules["t5"]).__name__, "seqio" in sys.modules)'],
      capture_output=True, text=True, check=False, cwd=tmp_path,
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout == 'AliasModule False\n'


def test_without_compat_nothing_pretends_to_be_t5():
  code = (
      'import importlib.util, sys\n'
      'spec = importlib.util.find_spec("t5")\n'
      'print(spec is None or spec.origin is not None)'
  )
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert done.stdout == 'True\n', done.stderr


def test_gin_configures_what_python_code_calls(t5_names):
  from t5wild.tasks.t5 import defaults

  try:
    gin.parse_config(
        'from __gin__ import dynamic_registration\n'
        'from t5.data import utils as t5_utils\n'
        't5_utils.rate_unsupervised.value = 7\n'
    )
    assert defaults.rate_unsupervised(None) == 7
  finally:
    gin.clear_config()


def test_the_guide_names_every_module():
  guide = pathlib.Path(__file__).parents[2] / 'docs/migrating_from_t5x.md'
  text = guide.read_text(encoding='utf-8')
  modules = [m for m in t5_alias.TABLE.modules() if t5_alias.TABLE.aliases(m)]
  assert modules
  assert not [module for module in modules if f'`{module}`' not in text]
