# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers are those that counting by hand gives."""

import math

from t5wild.inspecting import sheets
from t5wild.inspecting import statistics
from t5wild.inspecting import subject as subject_lib
from tests.inspecting import subjects

_TARGETS = [
    [100, 101, 1], [100, 101, 1], [2, 2, 383, 1], [], [100] * 9 + [1], [900, 1]
]  # fmt: skip
_INPUTS = [[50, 1], [50, 1], [51, 1], [50, 1], [52, 1], [51, 1]]


def _measure(**values):
  subject = subjects.make(
      _TARGETS, _INPUTS, lengths={'inputs': 4, 'targets': 5},
      documents=[b'a', b'b', b'a', b'a'], **values,
  )  # fmt: skip
  return subject, statistics.measure(subject)


def test_what_is_cut_off_and_what_is_empty_is_counted():
  _, found = _measure()
  inputs, targets = found.lengths
  assert (targets.num_truncated, targets.num_tokens_lost) == (1, 5)
  assert (targets.num_empty, inputs.num_truncated) == (1, 0)
  assert targets.quantiles['max'] == 10
  assert math.isclose(targets.quantiles['mean'], 22 / 6)
  counts, edges = targets.histogram()
  assert counts.sum() == 6
  assert edges[0] == 0 and edges[-1] > 10


def test_tokens_are_counted_as_a_model_gets_them():
  _, found = _measure()
  targets = found.tokens[1]
  assert targets.num_unknown == 2
  assert targets.num_sentinels == 1
  assert targets.num_out_of_range == 1
  assert targets.total == 16  # without those, and without what is cut off
  assert targets.top[0] == (100, 'a', 7)
  shares = [n / 16 for n in (7, 2, 4, 2, 1)]
  entropy = -sum(share * math.log2(share) for share in shares)
  assert math.isclose(targets.entropy_bits, entropy)


def test_repeats_and_conflicts_are_counted_once_each():
  _, found = _measure()
  numbers = {d.name: (d.count, d.num_repeats) for d in found.duplicates}
  assert numbers == {
      'documents': (4, 2), 'examples': (6, 1),
      'inputs with several targets': (3, 2),
  }  # fmt: skip


def test_fill_is_tokens_over_the_room_of_all_rows():
  subject, found = _measure()
  tokens = {'inputs': 12, 'targets': 3 + 3 + 4 + 0 + 5 + 2}
  for how, (num_rows, fill) in found.fill.items():
    for name, count in tokens.items():
      room = num_rows * subject.layout.lengths[name]
      assert math.isclose(fill[name], count / room), how
  assert found.fill[subject_lib.ALONE][0] == 6
  assert found.fill[subject_lib.BEST_FIT][0] <= found.fill[
      subject_lib.IN_ORDER
  ][0]


def test_what_is_wrong_stands_out():
  subject, found = _measure(skipped=3, notes=['a note'])
  texts = [each.text for each in sheets.findings(subject, found)]
  for words in (
      'beyond the vocabulary of 384', 'unknown to the vocabulary',
      'lose the end of their targets: 5 tokens', '1 targets have no token',
      '50.0% of the 4 documents repeat', 'are asked for several targets',
      '3 corrupt lines', 'a note',
  ):  # fmt: skip
    assert any(words in text for text in texts), words


def test_good_data_have_nothing_that_stands_out():
  subject = subjects.make([[n + 3, 1] for n in range(64)])
  assert not sheets.findings(subject, statistics.measure(subject))


def test_every_row_of_a_table_is_as_long_as_its_head():
  subject, found = _measure()
  made = [*sheets.make(subject, found), *sheets.top_tokens(found)]
  assert len(made) == 7
  for sheet in made:
    assert sheet.rows
    assert {len(row) for row in sheet.rows} == {len(sheet.head)}
