# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which lines of other libraries a log shows."""

import logging

from absl import flags
from absl import logging as absl_logging
from absl.testing import flagsaver
import orbax.checkpoint as ocp
import pytest

from t5wild import foreign_logs


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
  with flagsaver.flagsaver():
    for name in ('verbosity', 'logtostderr', 'alsologtostderr'):
      flags.FLAGS[name].present = 0
    flags.FLAGS(['program', *arguments])
    foreign_logs.quiet()
    foreign_logs.quiet()
  assert len(handler.filters) == (not asks)
