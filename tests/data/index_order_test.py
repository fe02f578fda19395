# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The order is one to one, mixed evenly, and a function of the index."""

import hashlib
import time

from hypothesis import given
from hypothesis import strategies
import numpy as np
import pytest

from t5wild.data import index_order


@given(
    size=strategies.integers(1, 3000), key=strategies.integers(0, 2**64 - 1)
)
def test_a_shuffle_has_each_number_once(size, key):
  found = index_order.permute(np.arange(size), size=size, key=key)
  assert sorted(found.tolist()) == list(range(size))


def test_a_position_is_shuffled_alike_alone_and_among_others():
  everything = index_order.permute(np.arange(1000), size=1000, key=7)
  some = index_order.permute(np.array([999, 3, 500]), size=1000, key=7)
  np.testing.assert_array_equal(some, everything[[999, 3, 500]])


def _permuted_slowly(position: int, *, size: int, key: int) -> int:
  """The same network with Python's whole numbers, one at a time."""
  ones = 2**64 - 1
  half = max(1, -(-(size - 1).bit_length() // 2))

  def mix(word, round_key):
    word = (word + round_key) & ones
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & ones
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & ones
    return word ^ (word >> 31)

  while True:
    left, right = divmod(position, 2**half)
    for number in range(6):
      text = f'int:{key}\0int:{number}'.encode()
      digest = hashlib.sha256(text).digest()
      round_key = int.from_bytes(digest[:8], 'little')
      left, right = right, left ^ (mix(right, round_key) % 2**half)
    position = left * 2**half + right
    if position < size:
      return position


@given(
    size=strategies.integers(1, 10**15),
    key=strategies.integers(0, 2**64 - 1),
    place=strategies.floats(0, 1, exclude_max=True),
)
def test_the_order_is_that_of_the_network_written_down(size, key, place):
  # Saved positions rely on it: another order here is a change of format.
  position = int(place * size)
  found = index_order.permute(np.array([position]), size=size, key=key)
  assert found.tolist() == [_permuted_slowly(position, size=size, key=key)]


def test_shuffled_numbers_look_drawn_evenly():
  # Chi-square over 100 x 100 cells of (position, number): mean 9801, standard
  # deviation 140; five of these around the mean.
  size = 100_000
  found = index_order.permute(np.arange(size), size=size, key=5)
  cells = np.histogram2d(np.arange(size), found, bins=100)[0]
  assert abs(((cells - 10) ** 2 / 10).sum() - 9801) < 700


def test_other_keys_give_orders_without_relation():
  first, second = (
      index_order.permute(np.arange(10_000), size=10_000, key=key)
      for key in (1, 2)
  )
  assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
  assert (first == second).sum() < 10


def test_a_far_position_of_a_large_order_is_found_at_once():
  start = time.perf_counter()
  index_order.permute(np.arange(1000), size=50_000_000_000, key=3)
  assert time.perf_counter() - start < 0.5


@given(
    rates=strategies.lists(
        strategies.floats(0, 1e6), min_size=1, max_size=6
    ).filter(lambda rates: sum(rates) > 1e-3),
    start=strategies.integers(0, 10**12),
)
def test_places_of_a_mixture_go_on_where_those_before_ended(rates, start):
  mix = index_order.Interleave(rates)
  whole = mix.places(start, count=300)
  rest = mix.places(start + 100, count=200)
  np.testing.assert_array_equal(whole.sources[100:], rest.sources)
  np.testing.assert_array_equal(whole.counts[100:], rest.counts)
  for source in range(len(rates)):
    counts = whole.counts[whole.sources == source]
    np.testing.assert_array_equal(np.diff(counts), 1)


def test_a_mixture_begins_each_source_at_its_first_record():
  mix = index_order.Interleave([3.0, 1.0])
  places = mix.places(0, count=100)
  for source in (0, 1):
    counts = places.counts[places.sources == source]
    np.testing.assert_array_equal(counts, np.arange(counts.size))


@pytest.mark.parametrize('count', [64, 1000, 100_000])
def test_every_stretch_of_a_mixture_keeps_its_rates(count):
  rates = np.array([0.7, 0.2, 0.1])
  mix = index_order.Interleave(rates)
  for start in (0, 12_345, 10**9 + 1):
    found = np.bincount(mix.places(start, count=count).sources, minlength=3)
    # Van der Corput's sequence: off by a few at any length.
    np.testing.assert_allclose(found, rates * count, atol=8)


def test_a_small_rate_is_not_lost_and_a_zero_rate_never_read():
  mix = index_order.Interleave([1.0, 1e-9, 0.0])
  found = np.bincount(mix.places(0, count=1 << 18).sources, minlength=3)
  assert found[1] >= 1
  assert found[2] == 0


@pytest.mark.parametrize(
    'rates', [[0.0, 0.0], [-1.0, 2.0], [float('nan')], [float('inf'), 1.0], []]
)
def test_rates_that_mix_nothing_are_refused(rates):
  with pytest.raises(ValueError, match='one of them above 0'):
    index_order.Interleave(rates)
