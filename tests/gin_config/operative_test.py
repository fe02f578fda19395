# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What some arguments depend on, told apart from all else that is bound."""

import gin
import pytest

from t5wild import gin_utils

_ARGUMENTS = {'t5wild.toy.train': ['model', 'fn']}
_BASE = """
    toy.train.model = @small/toy.Model()
    toy.train.fn = @toy.strict
    toy.train.steps = 9
    toy.Model.size = %SIZE
    small/toy.Model.rate = 0.5
    SIZE = 4
"""


def _behind(write, text, *flags, without=()):
  gin_utils.parse_gin_flags([], [write('a.gin', text)], flags)
  return gin_utils.bindings_behind(_ARGUMENTS, without=without)


def test_scopes_macros_and_references_are_followed(toy, write):
  assert _behind(write, _BASE, 'toy.strict.steps=7') == [
      'small/t5wild.toy.Model.rate = 0.5',
      'small/t5wild.toy.Model.size = 4',
      't5wild.toy.strict.steps = 7',
      't5wild.toy.train.fn = @t5wild.toy.strict',
      't5wild.toy.train.model = @small/t5wild.toy.Model()',
  ]


@pytest.mark.parametrize(
    'flag', ['toy.train.steps=3', 'toy.theirs.size=2', 'OTHER=5']
)
def test_what_nothing_refers_to_makes_no_difference(toy, write, flag):
  base = _BASE + '    OTHER = 1\n    toy.theirs.size = %OTHER\n'
  before = _behind(write, base)
  gin.clear_config()
  assert _behind(write, base, flag) == before


def test_another_spelling_of_the_same_is_the_same(toy, write):
  before = _behind(write, _BASE)
  gin.clear_config()
  other = _BASE.replace('toy.', 'other_name.').replace('%SIZE', '4  # comment')
  text = 'import t5wild_toy as other_name\n' + '\n'.join(
      line.strip() for line in other.splitlines()
  )
  assert _behind(write, text) == before


def test_an_argument_bound_in_any_scope_is_bound(toy, write):
  _behind(write, _BASE)
  assert gin_utils.is_bound(toy.Model, 'rate')
  assert not gin_utils.is_bound(toy.Model, 'sizes')
  assert not gin_utils.is_bound(toy.theirs, 'size')


def test_bindings_may_be_left_out_by_the_ends_of_their_names(toy, write):
  found = _behind(write, _BASE, without=('Model.size', 'train.fn'))
  assert found == [
      'small/t5wild.toy.Model.rate = 0.5',
      't5wild.toy.train.model = @small/t5wild.toy.Model()',
  ]
