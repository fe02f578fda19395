# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's names are our objects, once asked for, and never by surprise."""

import importlib
import subprocess
import sys

from absl import logging
import pytest

from t5wild import losses
from t5wild.compat import finder
from t5wild.compat import t5x_alias


def _run(code: str, *, cwd=None) -> str:
  done = subprocess.run(
      [sys.executable, '-c', code],
      capture_output=True, text=True, check=False, cwd=cwd,
  )
  assert done.returncode == 0, done.stderr
  return done.stdout


@pytest.mark.parametrize(
    'module', [m for m, names in t5x_alias.TABLE.names.items() if names]
)
def test_an_alias_is_the_very_object_at_its_new_place(module, t5x_names):
  imported = importlib.import_module(module)
  for name, place in t5x_alias.TABLE.aliases(module).items():
    source, _, attribute = place.partition(':')
    ours = getattr(importlib.import_module(source), attribute)
    assert getattr(imported, name) is ours
    assert name in dir(imported)


def test_every_spelling_of_an_import_works(t5x_names):
  code = """
import t5x.examples.t5.network
from t5x import utils
from t5x.models import EncoderDecoderModel
import t5x.partitioning as p
found = (
    t5x.examples.t5.network.T5Config, utils.DatasetConfig, EncoderDecoderModel,
    p.PjitPartitioner,
)
"""
  found = {}
  exec(code, found)
  assert [each.__name__ for each in found['found']] == [
      'T5Config', 'DatasetConfig', 'EncoderDecoderModel', 'PjitPartitioner'
  ]


def test_without_compat_nothing_pretends_to_be_t5x(no_names):
  with pytest.raises(ModuleNotFoundError, match="No module named 't5x'"):
    importlib.import_module('t5x')


def test_importing_compat_is_enough():
  assert _run("""
import t5wild.compat
from t5x import losses
from t5wild import losses as ours
print(losses.cross_entropy_with_logits is ours.cross_entropy_with_logits)
""") == 'True\n'


def test_installing_imports_neither_jax_nor_flax():
  assert _run("""
import sys
import t5wild.compat
import t5x.utils
print(sorted({'jax', 'flax', 'seqio'} & set(sys.modules)))
""") == '[]\n'


@pytest.mark.parametrize(
    ('module', 'name', 'close'),
    [
        ('t5x.utils', 'DatasetConfi', "did you mean 'DatasetConfig'"),
        ('t5x.partitioning', 'TpuMesh', 'migrating_from_t5x'),
    ],
)
def test_an_unknown_name_says_what_is_there_and_what_to_do(
    module, name, close, t5x_names
):
  with pytest.raises(AttributeError, match=close) as raised:
    getattr(importlib.import_module(module), name)
  assert name in str(raised.value)
  assert 'expected: one of' in str(raised.value)


@pytest.mark.parametrize(
    ('module', 'reason'),
    [
        ('t5x.contrib.moe.models', 'mixtures of experts'),
        ('t5x.train_stat', "did you mean 't5x.train_state'"),
    ],
)
def test_an_unknown_module_says_why(module, reason, t5x_names):
  with pytest.raises(ModuleNotFoundError, match=reason):
    importlib.import_module(module)


def test_a_module_that_did_something_imports_what_does_it_here(
    t5x_names, monkeypatch
):
  monkeypatch.setitem(t5x_alias.TABLE.imported, 't5x.utils', 'this')
  monkeypatch.delitem(sys.modules, 'this', raising=False)
  importlib.import_module('t5x.utils')
  assert 'this' in sys.modules


def test_each_name_is_hinted_at_once_with_the_new_one(t5x_names, monkeypatch):
  hints = []
  monkeypatch.setattr(logging, 'info', lambda *args: hints.append(args))
  from t5x import utils

  for _ in range(2):
    assert utils.DatasetConfig
  assert hints == [
      ('%s is now %s', 't5x.utils.DatasetConfig', 't5wild.data.DatasetConfig')
  ]


def test_code_that_asks_for_silence_is_given_no_hints(t5x_names, monkeypatch):
  hints = []
  monkeypatch.setattr(logging, 'info', lambda *args: hints.append(args))
  with finder.silence():
    from t5x import utils

    assert utils.DatasetConfig
  assert hints == []


@pytest.fixture
def installed_t5x(tmp_path):
  """A working directory with a t5x of somebody else."""
  package = tmp_path / 't5x'
  package.mkdir()
  (package / '__init__.py').write_text('IS_THEIRS = True\n')
  (package / 'utils.py').write_text('DatasetConfig = "theirs"\n')
  (package / 'my_tasks.py').write_text('NAME = "a task"\n')
  return tmp_path


def test_an_installed_t5x_stays_what_it_is(installed_t5x):
  assert _run(
      """
import t5wild.compat
from t5x import utils
print(utils.DatasetConfig)
""",
      cwd=installed_t5x,
  ) == 'theirs\n'


def test_a_hidden_t5x_keeps_the_modules_that_only_it_has(installed_t5x):
  out = _run(
      """
import os
os.environ['T5WILD_HIDE_T5X'] = '1'
import t5wild.compat
from t5x import my_tasks
from t5x import utils
print(utils.DatasetConfig.__module__, my_tasks.NAME)
""",
      cwd=installed_t5x,
  )
  assert out == 't5wild.data.datasets a task\n'


def test_hiding_a_t5x_that_is_imported_already_is_refused(installed_t5x):
  out = _run(
      """
import os
import t5x
os.environ['T5WILD_HIDE_T5X'] = '1'
try:
  import t5wild.compat
except ImportError as error:
  print('import t5wild.compat before it' in str(error))
""",
      cwd=installed_t5x,
  )
  assert out == 'True\n'


def test_a_folder_that_is_only_called_t5x_hides_nothing(tmp_path):
  (tmp_path / 't5x' / 'configs').mkdir(parents=True)
  assert _run(
      """
import t5wild.compat
from t5x import utils
print(utils.DatasetConfig.__name__)
""",
      cwd=tmp_path,
  ) == 'DatasetConfig\n'


def test_a_star_import_brings_the_public_names(t5x_names):
  names = {}
  exec('from t5x.losses import *', names)
  ours = losses.cross_entropy_with_logits
  assert names['cross_entropy_with_logits'] is ours
  assert '_sum_weights_per_segment' not in names
