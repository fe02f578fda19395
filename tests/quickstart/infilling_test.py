# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of the measures that the quickstart prints."""

import math

import numpy as np
import pytest

from t5wild.quickstart import infilling

_FIRST_SENTINEL = 259
_S0, _S1, _S2 = 383, 382, 381


def _ids(text):
  return [byte + 3 for byte in text.encode()]


def test_entropy_of_equally_frequent_bytes_is_the_log_of_their_number():
  counts = np.zeros(256, int)
  counts[:8] = 5
  assert infilling.unigram_entropy(counts) == pytest.approx(math.log(8))


def test_byte_counts_leave_out_special_ids_and_sentinels():
  counts = infilling.byte_counts(np.array([0, 1, 2, 3, 258, 259, _S0]))
  assert counts.sum() == 2
  assert counts[0] == 1
  assert counts[255] == 1


def test_spans_end_at_the_end_of_sequence_and_are_named_by_their_sentinel():
  ids = [_S0, *_ids('ab'), _S1, *_ids('c'), 1, *_ids('zz'), 0]
  spans = infilling.spans_of(ids, first_sentinel=_FIRST_SENTINEL)
  assert spans == {_S0: _ids('ab'), _S1: _ids('c')}


def test_only_a_span_right_to_the_letter_matches():
  target = np.array([_S0, *_ids('ab'), _S1, *_ids('  '), _S2, *_ids('x'), 1])
  decode = np.array([_S0, *_ids('ab'), _S1, *_ids(' '), _S2, *_ids('y'), 1])
  matches = infilling.compare(
      [target],
      [decode],
      first_sentinel=_FIRST_SENTINEL,
      most_frequent_id=_ids(' ')[0],
  )
  assert matches.num_spans == 3
  assert matches.num_exact == 1
  assert matches.mean_span_bytes == pytest.approx(5 / 3)
  assert matches.num_most_frequent == 1
  assert matches.exact_fraction == pytest.approx(1 / 3)


def test_text_filled_with_its_own_spans_is_the_text():
  inputs = [*_ids('im'), _S0, *_ids(' o'), _S1, 1, 0]
  spans = {_S0: _ids('port'), _S1: _ids('s')}
  text = infilling.filled_text(
      inputs, spans, first_sentinel=_FIRST_SENTINEL, marks=('', '')
  )
  assert text == 'import os'


def test_nats_per_byte_divides_by_bytes_not_tokens():
  scores = np.array([-3.0, -5.0])
  assert infilling.nats_per_byte(scores, 4) == 2.0
