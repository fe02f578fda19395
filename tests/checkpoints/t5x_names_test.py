# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's functions on state dicts keep, add and name leaves."""

from t5wild.checkpoints import t5x_names

_OURS = {'a': {'b': 1, 'c': 2}}
_OTHER = {'a': {'b': 7}, 'd': 8}


def test_leaves_are_replaced_by_their_names():
  assert t5x_names.get_name_tree(_OURS) == {'a': {'b': 'a/b', 'c': 'a/c'}}


def test_an_intersection_has_the_first_ones_leaves():
  assert t5x_names.intersect_state(_OURS, _OTHER) == {'a': {'b': 1}}


def test_a_merger_adds_what_is_missing_or_takes_all_of_the_second():
  assert t5x_names.merge_state(_OURS, _OTHER) == {
      'a': {'b': 1, 'c': 2}, 'd': 8
  }
  assert t5x_names.merge_state(_OURS, _OTHER, overwrite=True) == {
      'a': {'b': 7, 'c': 2}, 'd': 8
  }


def test_flat_leaves_are_named_and_files_of_arrays_stay_whole():
  spec = {'driver': 'zarr', 'kvstore': {'path': 'x'}}
  state = {'a': {'b': 1, 'none': None, 'empty': {}}, 'file': spec}
  assert t5x_names.flatten_state_dict(state) == {
      'a/b': 1, 'a/none': None, 'file': spec
  }
  kept = t5x_names.flatten_state_dict(state, keep_empty_nodes=True)
  assert kept.keys() == {'a/b', 'a/none', 'a/empty', 'file'}
