# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild run SCRIPT.py ARGS`: runs a T5X user's own binary with our objects.

The script is run as Python runs it, with T5X's names there; the same as
`import t5wild.compat` in its first line.
"""

from collections.abc import Sequence
import importlib.util
import os
import runpy
import sys

from t5wild import exit_codes
from t5wild import vocabulary_files
from t5wild.compat import alias_modules
from t5wild.compat import install

_USAGE = """usage: t5wild run [--vocab_dir DIR] SCRIPT.py [arguments]
       t5wild run [--vocab_dir DIR] -m MODULE [arguments]

Runs a script or module that imports t5x, with T5X's names for t5wild's objects.
SentencePiece models are looked for in DIR, by the ends of their paths. The
arguments are the script's own."""
_VOCAB_DIR = '--vocab_dir'


def main(argv: Sequence[str]) -> int | None:
  """Runs the script that `argv` names; returns an exit code on bad input."""
  arguments = list(argv)
  if arguments and arguments[0] in ('-h', '--help'):
    print(_USAGE)  # noqa: T201 -- the product
    return exit_codes.DONE.code
  problem = _take_vocab_dir(arguments)
  is_module = arguments[:1] == ['-m']
  if is_module:
    del arguments[0]
  problem = problem or _problem(arguments, is_module=is_module)
  if problem:
    print(f'{problem}\n{_USAGE}', file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.BAD_CONFIG.code
  install.install()
  sys.argv = arguments
  try:
    _run(arguments[0], is_module=is_module)
  except ImportError as error:
    advice = alias_modules.advice(error)
    if advice:
      error.add_note(advice)  # Python prints it below the traceback.
    raise
  return exit_codes.DONE.code


def _run(name: str, *, is_module: bool) -> None:
  """Runs what Python runs for `python -m NAME` or `python NAME`."""
  if is_module:
    sys.path.insert(0, os.getcwd())
    runpy.run_module(name, run_name='__main__', alter_sys=True)
  else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    runpy.run_path(name, run_name='__main__')


def _take_vocab_dir(arguments: list[str]) -> str | None:
  """Takes a folder of vocabularies off the front; returns what is wrong."""
  first, equals, folder = (arguments[:1] or [''])[0].partition('=')
  if first != _VOCAB_DIR:
    return None
  del arguments[0]
  if not equals:
    folder = arguments.pop(0) if arguments else ''
  try:
    vocabulary_files.set_folder(folder)
  except ValueError as error:
    return str(error)
  return None


def _problem(arguments: Sequence[str], *, is_module: bool) -> str | None:
  """What is wrong with the command line, or None."""
  if not arguments:
    return 'There is nothing to run. Expected a script: name it.'
  name = arguments[0]
  if is_module:
    sys.path.insert(0, os.getcwd())
    try:
      found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # also '..', '' and 'a..b'
      found = False
    finally:
      sys.path.pop(0)
    if not found:
      return (
          f'There is no module {name!r}. Expected one that Python can import: '
          'correct the name, or put its folder on PYTHONPATH.'
      )
  elif not os.path.isfile(name):
    return (
        f'There is no script {name!r}. Expected a Python file: correct the '
        'path, or give a module by -m.'
    )
  return None
