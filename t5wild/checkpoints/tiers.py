# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Stores of a run's checkpoints besides MODEL_DIR, as a recipe names them."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class FastTier:
  """A near store, such as a RAM disk, that is saved to often.

  All processes must see it: the memory of one host serves a run on that host.

  Attributes:
    directory: Of this run alone.
    period: Steps between checkpoints.
    keep: Number of newest checkpoints that stay.
  """

  directory: str
  period: int
  keep: int = 2

  is_fast = True

  def __post_init__(self):
    """Refuses what could only fail later."""
    _check('FastTier', self.directory, period=self.period, keep=self.keep)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mirror:
  """A far store, such as a bucket of another provider, that gets copies.

  Attributes:
    directory: Of this run alone.
    period: Steps between checkpoints that are copied: the first of MODEL_DIR
      that is as far from the last copy. None: all, as fast as it goes.
    keep: Number of newest copies that stay, or None for all.
  """

  directory: str
  period: int | None = None
  keep: int | None = None

  is_fast = False

  def __post_init__(self):
    """Refuses what could only fail later."""
    _check('Mirror', self.directory, period=self.period, keep=self.keep)


def _check(kind: str, directory: str, **counts: int | None) -> None:
  if not directory:
    raise ValueError(
        f'checkpoints.{kind}.directory is {directory!r}, expected a folder or '
        'a bucket path of this run alone: bind it'
    )
  for name, count in counts.items():
    if count is not None and count < 1:
      raise ValueError(
          f'checkpoints.{kind}.{name} is {count!r}, expected at least 1: mend '
          'the binding'
      )
