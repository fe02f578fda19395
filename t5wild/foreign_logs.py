# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps what other libraries tell of themselves out of a run's log.

Their warnings and errors stay. Who asks for more of the log gets all of it.
"""

from collections.abc import Iterator
import contextlib
import importlib.abc
import importlib.util
import logging
import os
import pathlib
import shutil
import subprocess
import sys

from absl import flags
from absl import logging as absl_logging

# Package to the least level that is told. Most log by absl's one logger, so
# that only the file of a line says whose it is.
_LEAST_LEVELS = {
    **dict.fromkeys(
        ('flax', 'grain', 'jax', 'orbax', 'seqio', 't5', 'tensorflow',
         'tensorflow_datasets'),
        logging.WARNING,
    ),
    # That a number is not finite is told by those who watch it.
    'tensorboardX': logging.ERROR,
}  # fmt: skip
_ASKING = ('logtostderr', 'alsologtostderr')
_TENSORFLOW_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
_SET_BY_JAX = '1'
_FATAL_ONLY = '3'
_INFORMATION = '^(I[0-9]{4} |WARNING: All log messages before absl::Init)'


def is_told(record: logging.LogRecord) -> bool:
  """Whether a line is ours, the user's, or serious enough."""
  parts = pathlib.PurePath(record.pathname).parts
  if 'site-packages' not in parts:
    return True
  place = parts.index('site-packages') + 1
  least = _LEAST_LEVELS.get(''.join(parts[place : place + 1]), logging.NOTSET)
  return record.levelno >= least


def are_asked_for() -> bool:
  """Whether the command line asks for more than the default log."""
  values = flags.FLAGS
  return any(
      name in values and values[name].present for name in _ASKING
  ) or (values['verbosity'].present and values.verbosity >= absl_logging.INFO)


def quiet() -> None:
  """Leaves other libraries' lines out of the log, once flags are parsed."""
  handler = absl_logging.get_absl_handler().python_handler
  handler.removeFilter(is_told)
  sys.meta_path[:] = [
      finder for finder in sys.meta_path
      if not isinstance(finder, _TensorflowFinder)
  ]  # fmt: skip
  if are_asked_for():
    return
  handler.addFilter(is_told)
  if 'tensorflow' not in sys.modules:
    sys.meta_path.insert(0, _TensorflowFinder())


class _TensorflowFinder(importlib.abc.MetaPathFinder):
  """Makes the import of TensorFlow, whoever needs it first, a quiet one."""

  def __init__(self):
    """Waits for the import; being asked where TensorFlow is, is none yet."""
    self._is_asking = False

  def find_spec(self, fullname, path, target=None):
    """Returns the spec that the others find, its execution a quiet one."""
    del path, target
    if fullname != 'tensorflow' or self._is_asking:
      return None
    self._is_asking = True
    try:
      spec = importlib.util.find_spec(fullname)
    finally:
      self._is_asking = False
    if spec is not None and spec.loader is not None:
      run = spec.loader.exec_module

      def run_quietly(module):
        with _tensorflow_level(), _without_information():
          run(module)
          # As the data's code does later: the first look tells of no CUDA.
          module.config.list_physical_devices('GPU')

      spec.loader.exec_module = run_quietly
    return spec


@contextlib.contextmanager
def _tensorflow_level() -> Iterator[None]:
  """TensorFlow's own level within; XLA reads its own elsewhere.

  A level that the user has set stays.
  """
  before = os.environ.get(_TENSORFLOW_LEVEL)
  if before not in (None, _SET_BY_JAX):
    yield
    return
  os.environ[_TENSORFLOW_LEVEL] = _FATAL_ONLY
  try:
    yield
  finally:
    if before is None:
      del os.environ[_TENSORFLOW_LEVEL]
    else:
      os.environ[_TENSORFLOW_LEVEL] = before


@contextlib.contextmanager
def _without_information() -> Iterator[None]:
  """Lines of information written to standard error within are left out.

  TensorFlow's libraries write some while they are loaded, before they read any
  level. Another process reads along: what is told of a crash must come through.
  """
  grep = shutil.which('grep')
  if grep is None:
    yield
    return
  own = os.dup(2)
  try:
    with subprocess.Popen(
        [grep, '-v', '--line-buffered', '-a', '-E', _INFORMATION],
        stdin=subprocess.PIPE, stdout=own, start_new_session=True,
    ) as reader:  # fmt: skip
      os.dup2(reader.stdin.fileno(), 2)
      try:
        yield
      finally:
        os.dup2(own, 2)
  finally:
    os.close(own)
