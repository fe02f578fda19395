# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps what other libraries tell of themselves out of a run's log.

Their warnings and errors stay. Who asks for more of the log gets all of it.
"""

import logging
import pathlib

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
  if not are_asked_for():
    handler.addFilter(is_told)
