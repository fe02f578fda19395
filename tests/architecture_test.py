# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the floors of docs/architecture.md, by reading every import.

Imports inside functions count as much as those at the head of a file.
"""

import ast
from collections.abc import Iterator
import functools
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_MAX_FILE_LINES = 400
_MAX_FUNCTION_LINES = 80
_MAX_FACE_LINES = 20

# A room may import rooms on lower floors. Two rooms on one floor do not see
# each other.
_FLOORS = {
    'devices_seen': 0, 'exit_codes': 0, 'folder_lock': 0, 'foreign_logs': 0,
    'hardware': 0, 'reachability': 0, 'run_dir': 0,
    'huge_pages': 0.1, 'vocabulary_files': 0.1,
    'vitals': 0.5, 'planner.formulas': 0.5,
    'checkpoint_files': 0.7,
    'decoding': 1, 'losses': 1, 'metrics': 1, 'optimizers': 1,
    'compilation_cache': 1, 'compilation_entries': 0.9,
    'train_state': 1.5,
    'partitioning': 2,
    'checkpoints': 3, 'data': 3, 'inference': 3,
    'models': 4,
    'evaluator': 5, 'trainer': 5,
    'loss_probe': 5.5, 'training_plan': 5.5,
    'training_changes': 5.7,
    'training_checks': 5.8, 'training_claim': 5.8,
    'training_data': 5.7, 'training_end': 5.7, 'training_place': 5.5,
    'training_saves': 5.7,
    'training_description': 5.8,
    'training_evaluators': 5.8, 'training_past': 5.8, 'training_rewinds': 5.8,
    'inference_state': 5.7, 'run_config': 5.7, 'run_ends': 5.8,
    'assembly': 6, 'command_line': 6, 'evaluating': 6, 'inferring': 6,
    'own_binaries': 6,
    'burn_in': 7, 'cache': 7, 'convert': 7, 'eval': 7, 'infer': 7, 'planner': 7,
    'inspecting': 7, 'interactive': 7, 'samples': 7, 'tasks': 7, 'train': 7,
    'recipe_facts': 7,  # asked by experiments, in a process of its own
    'precompile': 7.5,  # for machines that are not here it asks the planner
    'quickstart': 8,  # fills in macros, then runs the training binary
}  # fmt: skip
# These stand apart: what each may import of ours, itself always included.
_APART = {
    'networks': frozenset(),
    'gin_config': frozenset({'reachability'}),
    'gin_utils': frozenset({'gin_config'}),
    'doctor': frozenset({'devices_seen', 'exit_codes', 'huge_pages'}),
    # It names the binaries as strings.
    'cli': frozenset({'exit_codes', 'huge_pages'}),
    # It names all else as strings.
    'compat': frozenset({'exit_codes', 'gin_config', 'vocabulary_files'}),
    'launch': frozenset({
        'vitals', 'planner.formulas', 'run_dir', 'exit_codes', 'hardware',
        'folder_lock',
        'checkpoint_files',  # which checkpoints a run may go on from
    }),
    'reports': frozenset({
        'vitals', 'planner.formulas', 'run_dir', 'exit_codes', 'hardware'
    }),
    'experiments': frozenset({
        'vitals', 'planner.formulas', 'run_dir', 'exit_codes', 'hardware',
        'gin_utils', 'reports',
    }),
}
# Rooms apart that a floor may import all the same.
_SEES_APART = {
    'assembly': frozenset({'gin_utils'}),
    'command_line': frozenset({'compat', 'gin_utils'}),
    'run_config': frozenset({'compat', 'gin_utils'}),
    'cache': frozenset({'gin_utils'}),
    'inspecting': frozenset({'gin_utils', 'reports'}),  # the pages' look
    'samples': frozenset({'gin_utils'}),
    'train': frozenset({'gin_utils'}),
    'eval': frozenset({'gin_utils'}),
    'infer': frozenset({'gin_utils'}),
    'inferring': frozenset({'gin_utils'}),
    'own_binaries': frozenset({'gin_utils'}),
    'precompile': frozenset({'gin_utils'}),
    'recipe_facts': frozenset({'compat', 'gin_utils'}),
    'planner': frozenset({'gin_utils', 'networks'}),
    'burn_in': frozenset({'gin_utils', 'networks'}),
    'quickstart': frozenset({'gin_utils', 'reports'}),
}
# The trainer is handed data and checkpoints, it does not fetch them.
_FORBIDDEN = {
    'trainer': frozenset({'data', 'checkpoints'}),
    'evaluator': frozenset({'data', 'checkpoints'}),
}
_WITHOUT_JAX = (
    'checkpoint_files', 'cli', 'compat', 'devices_seen', 'doctor', 'exit_codes',
    'experiments', 'foreign_logs', 'gin_config', 'gin_utils', 'hardware',
    'huge_pages', 'launch', 'planner.formulas', 'reachability', 'reports',
    'run_dir', 'vitals', 'vocabulary_files',
)  # fmt: skip
# These read live seqio tasks, and nothing else imports them at its head.
_NEED_SEQIO = ('t5wild.tasks',)


@functools.cache
def _modules() -> dict[str, pathlib.Path]:
  """Every module of ours by its full name."""
  found = {}
  for folder, name in (('t5wild', 't5wild'), ('tasks', 't5wild.tasks')):
    for path in (_ROOT / folder).rglob('*.py'):
      parts = path.relative_to(_ROOT / folder).with_suffix('').parts
      if parts[-1] == '__init__':
        parts = parts[:-1]
      found['.'.join([name, *parts])] = path
  return found


def _sources() -> list[pathlib.Path]:
  folders = ('t5wild', 'tasks', 'tests', 'tools')
  return [
      _ROOT / 'setup.py',
      *(path for f in folders for path in (_ROOT / f).rglob('*.py')),
  ]


def _named(path: pathlib.Path) -> str:
  return str(path.relative_to(_ROOT))


@functools.cache
def _tree(path: pathlib.Path) -> ast.Module:
  return ast.parse(path.read_text(encoding='utf-8'), str(path))


def _imports(name: str) -> Iterator[str]:
  """Modules of ours that module `name` imports, lazily or not."""
  modules = _modules()
  for node in ast.walk(_tree(modules[name])):
    if isinstance(node, ast.Import):
      yield from (a.name for a in node.names if a.name in modules)
    elif isinstance(node, ast.ImportFrom) and node.module in modules:
      for alias in node.names:
        full = f'{node.module}.{alias.name}'
        yield full if full in modules else node.module


def _room(name: str) -> str:
  """The room of a module; `planner.formulas` is one of its own."""
  parts = name.split('.')[1:]
  if parts[:2] == ['planner', 'formulas']:
    return 'planner.formulas'
  return parts[0] if parts else 't5wild'


def _may_import(room: str, other: str) -> bool:
  if other in (room, 't5wild'):
    return True
  if room in _APART:
    return other in _APART[room]
  if other in _APART:
    return other in _SEES_APART.get(room, ())
  if other in _FORBIDDEN.get(room, ()):
    return False
  return _FLOORS[room] > _FLOORS[other]


def _is_face(name: str) -> bool:
  return name != 't5wild' and _modules()[name].name == '__init__.py'


def test_every_room_has_its_floor():
  rooms = {_room(name) for name in _modules()} - {'t5wild'}
  assert rooms <= _FLOORS.keys() | _APART.keys()


def test_arrows_run_down_only():
  wrong = [
      f'{name} imports {other}'
      for name in _modules()
      for other in _imports(name)
      # A face shows its own room.
      if not _may_import(_room(name), _room(other))
  ]
  assert not wrong, '\n'.join(wrong)


def test_inside_the_package_files_are_imported_and_faces_are_not():
  wrong = [
      f'{name} imports the face {other}'
      for name in _modules()
      for other in _imports(name)
      if _is_face(other) and other != name
  ]
  assert not wrong, '\n'.join(wrong)


def test_imports_make_no_circle():
  done: set[str] = set()

  def visit(name: str, path: tuple[str, ...]) -> None:
    assert name not in path, ' -> '.join([*path[path.index(name):], name])
    if name not in done:
      for other in set(_imports(name)) - {name, 't5wild'}:
        visit(other, (*path, name))
      done.add(name)

  for name in _modules():
    visit(name, ())


def test_binaries_are_imported_by_nobody_but_the_quickstart():
  binaries = {
      'cache', 'cli', 'eval', 'infer', 'precompile', 'quickstart', 'train'
  }
  wrong = [
      f'{name} imports {other}'
      for name in _modules()
      for other in _imports(name)
      if _room(other) in binaries
      and _room(name) not in (_room(other), 'quickstart')
  ]
  assert not wrong, '\n'.join(wrong)


def test_faces_only_show_names():
  for name, path in _modules().items():
    if not _is_face(name):
      continue
    lines = path.read_text(encoding='utf-8').splitlines()
    code = [line for line in lines if line.strip() and line[0] != '#']
    assert len(code) <= _MAX_FACE_LINES, name
    wrong = [
        node for node in _tree(path).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.For, ast.With))
    ]
    assert not wrong, name


def test_files_are_short():
  lengths = {
      _named(path): len(path.read_text(encoding='utf-8').splitlines())
      for path in _sources()
  }
  assert not {n: k for n, k in lengths.items() if k > _MAX_FILE_LINES}


def test_functions_are_short():
  too_long = [
      f'{_named(path)}:{node.lineno} {node.name}'
      for path in _sources()
      for node in ast.walk(_tree(path))
      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
      and node.end_lineno - node.lineno + 1 > _MAX_FUNCTION_LINES
  ]
  assert not too_long, '\n'.join(too_long)


def test_every_file_names_its_licence():
  heads = {
      _named(path): path.read_text(encoding='utf-8')[:300]
      for path in _sources()
  }
  line = 'SPDX-License-Identifier: Apache-2.0'
  missing = [n for n, head in heads.items() if head and line not in head]
  assert not missing, '\n'.join(missing)


def test_no_file_is_a_cupboard():
  wrong = [
      name for name in _modules()
      if name.rsplit('.', 1)[-1] in ('utils', 'helpers', 'common', 'misc')
  ]
  assert not wrong


def test_gin_is_no_package():
  assert not list((_ROOT / 'gin').rglob('__init__.py'))


def _import_all(names: list[str], *, blocked: tuple[str, ...]) -> None:
  """Imports `names` in a fresh process where `blocked` cannot be imported."""
  code = f"""
import importlib, importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
  def find_spec(self, name, path=None, target=None):
    if name.split('.')[0] in {blocked!r}:
      raise ModuleNotFoundError(f'{{name}} is absent here', name=name)
sys.meta_path.insert(0, Block())
failed = []
for name in {names!r}:
  try:
    importlib.import_module(name)
  except ImportError as error:
    failed.append(f'{{name}}: {{error}}')
sys.exit('\\n'.join(failed) or 0)
"""
  done = subprocess.run(
      [sys.executable, '-c', code],
      capture_output=True, text=True, check=False, cwd=_ROOT,
  )
  assert done.returncode == 0, done.stderr


def test_the_outer_wing_imports_without_jax():
  names = [name for name in _modules() if _room(name) in _WITHOUT_JAX]
  assert names
  _import_all(
      names, blocked=('jax', 'jaxlib', 'flax', 'optax', 'tensorflow', 'seqio')
  )


def test_all_but_live_tasks_imports_without_seqio_and_tensorflow():
  names = [
      name for name in _modules() if not name.startswith(_NEED_SEQIO)
  ]
  _import_all(
      names,
      blocked=(
          'seqio', 'tensorflow', 'tensorflow_datasets', 'tensorflow_text', 't5'
      ),
  )


@pytest.mark.parametrize(
    ('room', 'other', 'expected'),
    [
        ('trainer', 'models', True), ('trainer', 'data', False),
        ('trainer', 'checkpoints', False), ('models', 'networks', False),
        ('data', 'checkpoints', False), ('data', 'partitioning', True),
        ('vitals', 'losses', False), ('trainer', 'vitals', True),
        ('trainer', 'reports', False), ('networks', 'losses', False),
        ('partitioning', 'train_state', True), ('assembly', 'data', True),
        ('train_state', 'partitioning', False), ('reports', 'vitals', True),
    ],
)  # fmt: skip
def test_the_rule_itself(room, other, expected):
  assert _may_import(room, other) is expected
