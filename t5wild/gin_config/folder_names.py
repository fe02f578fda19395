# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Names the folders that were searched, each once, for a message."""

from collections.abc import Sequence
import os


def describe(folders: Sequence[str]) -> str:
  """The folders by their real places; '' is the working directory.

  A folder and those above it, in this order, are told together: a search up to
  the root would fill lines.
  """
  chains = []
  for folder in dict.fromkeys(_chained(folders)):
    if chains and folder == os.path.dirname(chains[-1][-1]):
      chains[-1].append(folder)
    else:
      chains.append([folder])
  return ', '.join(_name(chain) for chain in chains)


def _chained(folders: Sequence[str]) -> list[str]:
  """Absolute folders, of which one above its forerunner is there alone."""
  places = [os.path.abspath(folder) for folder in folders]
  again = {
      above
      for below, above in zip(places, places[1:], strict=False)
      if above == os.path.dirname(below)
  }
  return [
      place
      for i, place in enumerate(places)
      if place not in again or (i and os.path.dirname(places[i - 1]) == place)
  ]


def _name(chain: Sequence[str]) -> str:
  first, number = repr(chain[0]), len(chain) - 1
  if not number:
    return first
  if chain[-1] == os.path.dirname(chain[-1]):
    return f'{first} and the folders above it'
  return f'{first} and the {number if number > 1 else "folder"} above it'
