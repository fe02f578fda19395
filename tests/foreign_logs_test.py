# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which lines of other libraries a log shows."""

import logging
import os
import signal
import subprocess
import sys

from absl import flags
from absl import logging as absl_logging
from absl.testing import flagsaver
import orbax.checkpoint as ocp
import pytest

from t5wild import foreign_logs

_TENSORFLOW = """
import os, sys, types
config = types.SimpleNamespace(list_physical_devices=lambda kind: [])
os.write(2, b'WARNING: All log messages before absl::InitializeLog() is')
os.write(2, b' called\\nI0000 00:00 no cuda\\nE0000 broken\\n')
print('mine', file=sys.stderr, flush=True)
print(os.environ['TF_CPP_MIN_LOG_LEVEL'])
"""
_IMPORT = """
import importlib.util, os, sys
from absl import flags
spec = importlib.util.spec_from_file_location('foreign_logs', {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
flags.FLAGS(['program'])
module.quiet()
assert importlib.util.find_spec('tensorflow')  # who only asks
import tensorflow
assert tensorflow.sys is sys
print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'))
os.write(2, b'I0000 later\\n')
"""


def _record(path, level):
  return logging.LogRecord('absl', level, path, 1, 'x', (), None)


@pytest.mark.parametrize(
    ('path', 'level', 'told'),
    [
        (ocp.__file__, logging.INFO, False),
        (ocp.__file__, logging.WARNING, True),
        ('/v/site-packages/jax/_src/xla_bridge.py', logging.INFO, False),
        ('/v/site-packages/jax/_src/xla_bridge.py', logging.ERROR, True),
        ('/v/site-packages/tensorboardX/x2num.py', logging.WARNING, False),
        ('/v/site-packages/tensorboardX/x2num.py', logging.ERROR, True),
        ('/v/site-packages/t5wild/assembly.py', logging.INFO, True),
        ('/v/site-packages/somebody/tasks.py', logging.INFO, True),
        ('/home/me/jax/mine.py', logging.INFO, True),
    ],
)
def test_only_what_known_libraries_tell_of_themselves_is_left_out(
    path, level, told
):
  assert foreign_logs.is_told(_record(path, level)) is told


@pytest.mark.parametrize(
    ('arguments', 'asks'),
    [
        ([], False),
        (['--verbosity=-1'], False),
        (['--verbosity=0'], True),
        (['--verbosity=1'], True),
        (['--logtostderr'], True),
    ],
)
def test_who_asks_for_more_of_the_log_gets_all_of_it(
    arguments, asks, monkeypatch
):
  handler = absl_logging.get_absl_handler().python_handler
  monkeypatch.setattr(handler, 'filters', [])
  monkeypatch.setattr(sys, 'meta_path', list(sys.meta_path))
  monkeypatch.delitem(sys.modules, 'tensorflow', raising=False)
  with flagsaver.flagsaver():
    for name in ('verbosity', 'logtostderr', 'alsologtostderr'):
      flags.FLAGS[name].present = 0
    flags.FLAGS(['program', *arguments])
    foreign_logs.quiet()
    foreign_logs.quiet()
    finders = [
        finder for finder in sys.meta_path
        if isinstance(finder, foreign_logs._TensorflowFinder)
    ]  # fmt: skip
  assert len(handler.filters) == (not asks)
  assert len(finders) == (not asks)


@pytest.mark.parametrize('level', [None, '0', '1', '2'])
def test_importing_tensorflow_tells_errors_only_and_leaves_no_trace(
    level, tmp_path
):
  (tmp_path / 'tensorflow.py').write_text(_TENSORFLOW)
  environment = {**os.environ, 'PYTHONPATH': str(tmp_path)}
  environment.pop('TF_CPP_MIN_LOG_LEVEL', None)
  if level is not None:
    environment['TF_CPP_MIN_LOG_LEVEL'] = level
  code = _IMPORT.format(file=foreign_logs.__file__)
  done = subprocess.run(
      [sys.executable, '-c', code],
      env=environment, capture_output=True, text=True, check=True,
  )  # fmt: skip
  at_import, after = done.stdout.split()
  assert at_import == ('3' if level in (None, '1') else level)
  assert after == str(level)
  assert done.stderr.splitlines() == ['E0000 broken', 'mine', 'I0000 later']


def test_what_a_crash_in_the_import_tells_comes_through(tmp_path):
  (tmp_path / 'tensorflow.py').write_text(
      "import os\nos.write(2, b'F0000 check failed\\n')\nos.abort()\n"
  )
  code = _IMPORT.format(file=foreign_logs.__file__)
  done = subprocess.run(
      [sys.executable, '-c', code],
      env={**os.environ, 'PYTHONPATH': str(tmp_path)},
      capture_output=True, text=True, check=False,
  )  # fmt: skip
  assert done.returncode == -signal.SIGABRT
  assert 'F0000 check failed' in done.stderr
