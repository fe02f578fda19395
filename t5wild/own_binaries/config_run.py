# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's `config_utils`: gin configures a binary; Fiddle does not, here."""

from collections.abc import Callable, Sequence
from typing import Any

from absl import app
from absl import flags

from t5wild import gin_utils

_FIDDLE_FLAGS = ('fdl_config', 'fdl_config_file', 'fdl_help')


def using_fdl() -> bool:
  """Whether a flag of Fiddle's is set."""
  return bool(_set_fiddle_flags())


def _set_fiddle_flags() -> list[str]:
  known = flags.FLAGS
  return [
      name for name in _FIDDLE_FLAGS if name in known and known[name].value
  ]


def config_with_fiddle(function: Callable[..., Any]) -> Any:
  """Refuses: runs are configured by gin.

  Raises:
    ValueError: Always.
  """
  name = getattr(function, '__name__', repr(function))
  raise ValueError(
      f'{name} is configured by the Fiddle flags {_set_fiddle_flags()}, '
      'expected gin: write what the Fiddle configuration sets as gin bindings '
      'and give --gin_file=FILE'
  )


def run_main(
    main: Callable[[Sequence[str]], Any],
    flags_parser: Callable[[Sequence[str]], Sequence[str]],
) -> None:
  """Runs `main` with the command line as `flags_parser` leaves it."""
  app.run(main, flags_parser=flags_parser)


def run(main: Callable[[Sequence[str]], Any]) -> None:
  """Runs `main` with `--gin.NAME=VALUE` flags understood."""
  gin_utils.run(main)
