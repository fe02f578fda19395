# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Buckets: every example in one batch, in a shape that holds it."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from t5wild.inferring import buckets

LENGTHS = {'inputs': 512, 'targets': 64}


def test_shapes_halve_down_from_the_full_length():
  found = buckets.make_buckets(LENGTHS, num_buckets=4, whole=['targets'])
  assert [bucket['inputs'] for bucket in found] == [64, 128, 256, 512]
  assert {bucket['targets'] for bucket in found} == {64}


@pytest.mark.parametrize(
    ('lengths', 'num_buckets', 'count'),
    [({'inputs': 9}, 4, 2), ({'inputs': 8}, 4, 1), (LENGTHS, 1, 1),
     ({'inputs': 512, 'images': 3}, 4, 1)],
)  # fmt: skip
def test_there_are_no_more_shapes_than_differ(lengths, num_buckets, count):
  found = buckets.make_buckets(lengths, num_buckets=num_buckets)
  assert len(found) == count
  assert found[-1] == lengths


def test_no_shape_at_all_is_refused():
  with pytest.raises(ValueError, match='num_buckets is 0'):
    buckets.make_buckets(LENGTHS, num_buckets=0)


@given(
    st.lists(st.integers(1, 600), max_size=60),
    st.integers(1, 9),
    st.integers(1, 5),
)
def test_every_example_is_in_one_batch_that_holds_it(sizes, batch, count):
  shapes = buckets.make_buckets({'inputs': 512}, num_buckets=count)
  chosen = [buckets.choose({'inputs': size}, shapes) for size in sizes]
  planned = buckets.plan(chosen, batch_size=batch)
  places = [place for found in planned.values() for place in found]
  assert sorted(places) == list(range(len(sizes)))
  for bucket, found in planned.items():
    for place in found:
      assert sizes[place] <= shapes[bucket]['inputs'] or bucket == (
          len(shapes) - 1
      )
  # All of them together are padded by less than one batch.
  padded = sum(-len(found) % batch for found in planned.values())
  assert padded < batch
