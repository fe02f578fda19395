# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which example stands where: shuffling and mixing as functions of the index.

No buffer and no state: position 10,000,000 is found as fast as position 0.
Whole numbers only, so the order is the same with any version of numpy.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import hashlib
import math

import numpy as np

_ROUNDS = 6
# Positions of a mixture after which its pattern of sources repeats.
_PERIOD_BITS = 18
_PERIOD = 1 << _PERIOD_BITS


def make_key(*parts: int | str) -> int:
  """A 64-bit key of numbers and names, the same on every machine."""
  text = '\0'.join(f'{type(part).__name__}:{part}' for part in parts)
  digest = hashlib.sha256(text.encode('utf-8')).digest()
  return int.from_bytes(digest[:8], 'little')


def permute(positions: np.ndarray, *, size: int, key: int) -> np.ndarray:
  """The number that stands at each position of a shuffled range(size).

  A Feistel network over the smallest even number of bits that holds `size`;
  what falls outside the range is sent through again until it falls inside,
  which keeps the map one to one.

  Args:
    positions: int64 [positions], each from 0 to below size.
    size: how many there are.
    key: 64 bits; another key is another order.

  Returns:
    int64 [positions], different for different positions.
  """
  return _within(_feistel, positions, size=size, key=key)


def positions_of(numbers: np.ndarray, *, size: int, key: int) -> np.ndarray:
  """The position at which each number stands: `permute` the other way."""
  return _within(_feistel_back, numbers, size=size, key=key)


def _within(
    network: Callable[..., np.ndarray],
    numbers: np.ndarray,
    *,
    size: int,
    key: int,
) -> np.ndarray:
  """Sends numbers through a network until they come out below `size`."""
  half = max(1, ((size - 1).bit_length() + 1) // 2)
  keys = [make_key(key, number) for number in range(_ROUNDS)]
  found = network(numbers.astype(np.uint64), half=half, keys=keys)
  outside = np.flatnonzero(found >= size)
  while outside.size:
    found[outside] = network(found[outside], half=half, keys=keys)
    outside = outside[found[outside] >= size]
  return found.astype(np.int64)


def _feistel(
    numbers: np.ndarray, *, half: int, keys: Sequence[int]
) -> np.ndarray:
  """One to one on numbers of 2 * half bits."""
  mask = np.uint64((1 << half) - 1)
  shift = np.uint64(half)
  left, right = numbers >> shift, numbers & mask
  for key in keys:
    left, right = right, left ^ (_mix(right, key=key) & mask)
  return (left << shift) | right


def _feistel_back(
    numbers: np.ndarray, *, half: int, keys: Sequence[int]
) -> np.ndarray:
  """The numbers that `_feistel` takes to these."""
  mask = np.uint64((1 << half) - 1)
  shift = np.uint64(half)
  left, right = numbers >> shift, numbers & mask
  for key in reversed(keys):
    left, right = right ^ (_mix(left, key=key) & mask), left
  return (left << shift) | right


def _mix(words: np.ndarray, *, key: int) -> np.ndarray:
  """Scatters 64-bit words (the finalizer of splitmix64)."""
  words = words + np.uint64(key)  # wraps around, as arrays do
  words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return words ^ (words >> np.uint64(31))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Places:
  """Where each of some positions of a mixture reads.

  Attributes:
    sources: int64 [positions], numbers of the sources.
    counts: int64 [positions], how many of that source come before.
  """

  sources: np.ndarray
  counts: np.ndarray


class Interleave:
  """Mixes sources by their rates, evenly at every scale.

  Position i belongs to the source in whose share of [0, 1) the mirrored bits of
  i fall (van der Corput's sequence), so that any stretch of the mixture has
  each source nearly in proportion. A rate is kept to a 262144th, and none
  above 0 is lost.
  """

  def __init__(self, rates: Sequence[float]):
    """Takes one rate for each source, in proportion to which it is read.

    Raises:
      ValueError: for rates by which nothing can be mixed.
    """
    check_rates(dict(enumerate(rates)))
    self._shares = _whole_shares(rates)

  @functools.cached_property
  def _pattern(self) -> np.ndarray:
    """The source of each position of a period: int16 [period]."""
    numbers = np.arange(_PERIOD, dtype=np.uint32)
    mirrored = np.zeros_like(numbers)
    for bit in range(_PERIOD_BITS):
      mirrored |= ((numbers >> bit) & 1) << (_PERIOD_BITS - 1 - bit)
    bounds = np.cumsum(self._shares)
    return np.searchsorted(bounds, mirrored, side='right').astype(np.int16)

  def places(self, start: int, *, count: int) -> Places:
    """The sources of `count` positions from `start` on."""
    if len(self._shares) == 1:
      return Places(
          sources=np.zeros(count, np.int64),
          counts=np.arange(start, start + count),
      )
    positions = np.arange(start, start + count) % _PERIOD
    sources = self._pattern[positions].astype(np.int64)
    before = self.counts_before(start)
    counts = np.empty(count, np.int64)
    for source, first in enumerate(before):
      of_it = np.flatnonzero(sources == source)
      counts[of_it] = first + np.arange(of_it.size)
    return Places(sources=sources, counts=counts)

  def counts_before(self, position: int) -> list[int]:
    """How many of each source come before a position."""
    if len(self._shares) == 1:
      return [position]
    periods, rest = divmod(position, _PERIOD)
    part = np.bincount(self._pattern[:rest], minlength=len(self._shares))
    return [
        periods * share + int(more)
        for share, more in zip(self._shares, part, strict=True)
    ]

  def position_of(self, source: int, *, count: int) -> int | None:
    """Where the record of a source stands that has `count` before it.

    Returns:
      None for a source that is not read.
    """
    share = self._shares[source]
    if not share:
      return None
    if len(self._shares) == 1:
      return count
    periods, rest = divmod(count, share)
    within = np.flatnonzero(self._pattern == source)[rest]
    return periods * _PERIOD + int(within)


def check_rates(rates: Mapping[object, float]) -> None:
  """Refuses rates by which nothing can be mixed.

  Raises:
    ValueError: for a rate below 0 or without end, or none above 0.
  """
  values = list(rates.values())
  if all(math.isfinite(rate) and rate >= 0 for rate in values) and any(values):
    return
  raise ValueError(
      f'the rates of the mixture are {dict(rates)}: expected finite numbers of '
      'at least 0, one of them above 0. Set CachedDatasetConfig.rates (or '
      'rates_from_step) so; a rate of 0 leaves a task out.'
  )


def _whole_shares(rates: Sequence[float]) -> list[int]:
  """Shares of a period that sum to it; at least 1 where a rate is above 0."""
  total = math.fsum(rates)
  exact = [rate / total * _PERIOD for rate in rates]
  shares = [
      max(int(value), 1) if rate > 0 else 0
      for rate, value in zip(rates, exact, strict=True)
  ]
  # What rounding down left, one each to those that lost most; what the least
  # shares took too much, from the largest.
  by_loss = sorted(
      (index for index, rate in enumerate(rates) if rate > 0),
      key=lambda index: (shares[index] - exact[index], index),
  )
  rest = _PERIOD - sum(shares)
  for number in range(max(rest, 0)):
    shares[by_loss[number % len(by_loss)]] += 1
  if rest < 0:
    shares[max(by_loss, key=lambda index: shares[index])] += rest
  return shares
