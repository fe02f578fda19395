# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's names in Python are found through imports and scopes, without a run."""

import textwrap

import pytest

from t5wild.compat import python_code


def _find(text):
  return python_code.find('theirs.py', textwrap.dedent(text))


def _lines(faults):
  return [each.line for each in faults]


@pytest.mark.parametrize(
    'text',
    [
        'from t5x import utils\nutils.DatasetConfig',
        'from t5x import utils as u\nu.DatasetConfig',
        'import t5x.utils\nt5x.utils.DatasetConfig',
        'import t5x.utils as u\nclass A(u.DatasetConfig): pass',
        'from t5x.utils import DatasetConfig',
        'def f():\n  return utils.DatasetConfig\nfrom t5x import utils',
        'def f():\n  from t5x import utils\n  return utils.DatasetConfig',
    ],
)
def test_a_name_is_found_by_whatever_way_it_is_imported(text):
  found = _find(text)
  assert not found.faults
  (name,) = found.names
  assert name.t5x == 't5x.utils.DatasetConfig'
  assert name.t5wild == 't5wild.data.DatasetConfig'


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('from t5x import utils\nutils.Datasetconfig', "'DatasetConfig'"),
        ('\nfrom t5x.contrib.moe import models', 'mixtures of experts'),
        ('\nfrom t5x import export_lib', 'exports to TensorFlow'),
        ('\nimport t5x.modls', "'t5x.models'"),
        ('from t5x import models\nclass A(models.Modl): x = 1', "'Modl'"),
    ],
)
def test_a_name_that_is_not_there_is_told_with_its_line(text, message):
  (fault,) = _find(text).faults
  assert fault.line == 2
  assert fault.text in text
  assert message in fault.what


def test_a_name_used_twice_is_told_at_both_lines():
  text = """\
  from t5x import utils
  utils.nothing
  def f(a=utils.nothing): return a.nothing
  """
  assert _lines(_find(text).faults) == [2, 3]


@pytest.mark.parametrize(
    'text',
    [
        'def f(models):\n  return models.x',
        'def f():\n  models = 1\n  return models.x',
        'f = lambda models: models.x',
        'a = [models.x for models in []]',
    ],
)
def test_what_a_function_calls_by_the_same_name_is_not_of_t5x(text):
  assert not _find(f'from t5x import models\n{text}').faults


def test_relative_imports_and_names_alike_are_not_of_t5x():
  found = _find('from .t5x import utils\nimport t5xtra\nutils.nothing')
  assert not found.is_of_t5x
  assert not found.faults


def test_a_star_import_brings_all_names():
  found = _find('from t5x.utils import *\nDatasetConfig(batch_size=3)')
  assert [each.keywords for each in found.calls] == [('batch_size',)]


@pytest.mark.parametrize('text', ['def (', 'a = \0', '(' * 5000])
def test_text_that_is_no_python_is_refused(text):
  with pytest.raises(SyntaxError):
    python_code.find('theirs.py', text)
