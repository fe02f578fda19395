# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The whole configuration of every gin file of ours, held against a golden.

A diff of `tests/golden/` shows what a change does to every recipe. When it is
the one that was meant, write the goldens anew and commit them with the change:

  UPDATE_GOLDEN=1 pytest tests/gin_files_test.py
"""

import difflib
import os
import pathlib
import sys

import gin
import pytest

from t5wild import eval as evaluation
from t5wild import gin_utils
from t5wild import infer
from t5wild import precompile
from t5wild import train
from t5wild.compat import install
from t5wild.gin_config import lint
from t5wild.gin_config import operative
from t5wild.gin_config import reader
from tests import gin_registry

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_GOLDEN = _ROOT / 'tests' / 'golden'
_UPDATE = bool(os.environ.get('UPDATE_GOLDEN'))
_TINY = 'models/t5_1_1/tiny.gin'
_PRETRAIN = 'runs/pretrain.gin'
_SOURCE = 'sources/files.gin'
_T5X_TINY = 't5x/contrib/gpu/t5/t5_1_1/tiny.gin'
_T5X_PRETRAIN = 't5x/configs/runs/pretrain.gin'
# What a file needs around it to be a run, by its innermost folder here.
_AROUND = {
    'data': ((_TINY, _PRETRAIN), ()),
    'models': ((), (_PRETRAIN,)),
    'objectives': ((_TINY, _PRETRAIN), ()),
    'optimizers': ((_TINY, _PRETRAIN), ()),
    'recipes': ((), ()),
    'runs': ((_TINY,), ()),
    'sweeps': ((), ()),
    'ladders': ((), ()),
    'sources': (
        (_TINY, _PRETRAIN, 'objectives/span_corruption.gin', _SOURCE), ()
    ),
    't5x/configs': ((_TINY,), ()),
    't5x/contrib/gpu/t5/configs': ((_T5X_TINY,), ()),
    't5x/contrib/gpu/t5/t5_1_1': (
        (_T5X_TINY, _T5X_PRETRAIN), ()
    ),
    't5x/examples/scalable_t5/umt5': (
        ('t5x/examples/scalable_t5/mt5/small.gin', _T5X_PRETRAIN),
        (
            't5x/examples/scalable_t5/umt5/architectures/encoder_decoder.gin',
            't5x/examples/scalable_t5/umt5/vocab.gin',
        ),
    ),
    't5x/examples/scalable_t5/umt5/runs': (
        ('t5x/examples/scalable_t5/mt5/small.gin',), ()
    ),
    'topologies': ((_TINY, _PRETRAIN), ()),
}  # fmt: skip
# Stand-ins for what a user must set.
_PLACEHOLDERS = {
    'BATCH_SIZE': '128',
    'CACHE_DIR': "'/placeholder/cache'",
    'CHECKPOINT_PATH': "'/placeholder/checkpoint_1000'",
    'DROPOUT_RATE': '0.0',
    'EVAL_OUTPUT_DIR': "'/placeholder/evaluation'",
    'FILES': "'/placeholder/*.jsonl'",
    'FEATURE_LENGTHS': "{'inputs': 512, 'targets': 114}",
    'HF_DATASET': "'/placeholder/data_set'",
    'INFER_OUTPUT_DIR': "'/placeholder/outputs'",
    'INITIAL_CHECKPOINT_PATH': "'/placeholder/checkpoint_1000'",
    'MIXTURE_OR_TASK_MODULE': "'placeholder.tasks'",
    'MIXTURE_OR_TASK_NAME': "'placeholder_task'",
    'MODEL_DIR': "'/placeholder/model_dir'",
    'SEQIO_CACHE': "'/placeholder/cached_tasks/placeholder_task'",
    'TASK_FEATURE_LENGTHS': "{'inputs': 512, 'targets': 114}",
    'TF_EXAMPLE_FILE_PATHS': "['/placeholder/examples.tfrecord']",
    'TF_EXAMPLE_FILE_TYPE': "'tfrecord'",
    'TFDS_NAME': "'placeholder/a:1.0.0'",
    'TRAIN_EVAL_MIXTURE_OR_TASK_NAME': "'placeholder_task'",
    'TRAIN_STEPS': '10000',
}
_FILES = sorted(
    path.relative_to(_ROOT / 'gin').as_posix()
    for path in (_ROOT / 'gin').rglob('*.gin')
)


@pytest.fixture(autouse=True)
def fresh_gin(monkeypatch):
  """gin as in a new process: what gin files registered before is forgotten."""
  gin_registry.forget()
  install.install()  # files in gin/t5x have T5X's names
  for function in (
      train.train, evaluation.evaluate, infer.infer, precompile.precompile,
      infer.create_task_from_tfexample_file,
  ):  # fmt: skip
    monkeypatch.setattr(
        sys.modules['__main__'], function.__name__, function, raising=False
    )
  # Other people's defaults change with their versions, and are not ours to pin.
  defaults = operative._defaults
  monkeypatch.setattr(
      operative,
      '_defaults',
      lambda found: defaults(found) if _is_ours(found.wrapped) else (),
  )
  yield
  gin.clear_config()


def _is_ours(wrapped) -> bool:
  return wrapped.__module__.split('.')[0] == 't5wild'


def _files_for(path: str) -> list[str]:
  folders = [each for each in _AROUND if path.startswith(f'{each}/')]
  before, after = _AROUND[max(folders, key=len)]
  return [
      *(each for each in before if each != path), path,
      *(each for each in after if each != path),
  ]  # fmt: skip


def _missing(files: list[str]) -> list[str]:
  """Bindings for the macros that are required and not set."""
  report = lint.lint([reader.read_file(path) for path in files])
  required = reader.Macro('gin.REQUIRED')
  last = {
      seen.binding.macro_name: seen.binding.value
      for seen in report.seen
      if seen.binding.is_macro
  }
  return [
      f'{name}={_PLACEHOLDERS[name]}'
      for name, value in last.items()
      if value == required
  ]


def _operative_config(path: str) -> str:
  files = _files_for(path)
  gin_utils.parse_gin_flags([], files, _missing(files))
  return gin_utils.operative_config_str()


def test_there_are_gin_files():
  assert _PRETRAIN in _FILES


@pytest.mark.parametrize('path', _FILES)
def test_a_gin_file_gives_no_hints_and_the_golden_configuration(
    path, monkeypatch
):
  hints = []
  monkeypatch.setattr(
      gin_utils.logging, 'warning', lambda *args: hints.append(args)
  )
  text = _operative_config(path)
  assert hints == []
  golden = _GOLDEN / path
  if _UPDATE:
    golden.parent.mkdir(parents=True, exist_ok=True)
    golden.write_text(text, encoding='utf-8')
  assert golden.exists(), f'no golden for {path}; UPDATE_GOLDEN=1 makes it'
  diff = difflib.unified_diff(
      golden.read_text(encoding='utf-8').splitlines(),
      text.splitlines(),
      'golden', 'now', lineterm='', n=0,
  )
  changed = '\n'.join(diff)
  assert not changed, f'{changed}\nmeant so? UPDATE_GOLDEN=1 pytest {__file__}'


def test_no_golden_is_left_of_a_file_that_is_gone():
  goldens = {
      path.relative_to(_GOLDEN).as_posix() for path in _GOLDEN.rglob('*.gin')
  }
  assert goldens <= set(_FILES)


def test_a_run_file_lists_what_it_needs_at_once():
  with pytest.raises(gin_utils.GinError) as raised:
    gin_utils.parse_gin_flags([], [_TINY, _PRETRAIN], [])
  for name in (
      'DROPOUT_RATE', 'MIXTURE_OR_TASK_NAME', 'MODEL_DIR',
      'TASK_FEATURE_LENGTHS', 'TRAIN_STEPS',
  ):
    assert f'--gin.{name}=' in str(raised.value)


@pytest.mark.parametrize(
    'path',
    [p for p in _FILES if p.startswith('models/') and 'base' not in p],
)
def test_a_size_file_holds_only_what_differs(path):
  text = (_ROOT / 'gin' / path).read_text(encoding='utf-8')
  lines = [
      line for line in text.splitlines()
      if line.strip() and not line.startswith(('#', 'from ', 'import '))
  ]
  assert len(lines) <= 8


@pytest.mark.parametrize(
    'path', [path for path in _FILES if path.startswith('recipes/')]
)
def test_a_recipe_tells_what_it_trains_what_to_expect_and_its_command(path):
  text = (_ROOT / 'gin' / path).read_text(encoding='utf-8')
  head = text[: text.index('from __gin__')]
  for part in ('Trains:', 'On:', 'Expect:', 'Run:', f'--gin_file={path}'):
    assert part in head
  documented = (_ROOT / 'docs' / 'recipes.md').read_text(encoding='utf-8')
  assert f'`{pathlib.PurePath(path).stem}`' in documented
