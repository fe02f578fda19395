# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Examples in rows: none is lost, and what is drawn is what is there."""

import dataclasses

import numpy as np
import pytest

from t5wild.inspecting import drawn_rows
from t5wild.inspecting import subject as subject_lib
from tests.inspecting import subjects

_LENGTHS = {'inputs': 64, 'targets': 48}
_HOW = (subject_lib.ALONE, subject_lib.IN_ORDER, subject_lib.BEST_FIT)


def made(kind, **values):
  inputs, targets = subjects.pairs()
  return subjects.make(targets, inputs, kind=kind, lengths=_LENGTHS, **values)


@pytest.mark.parametrize('kind', subject_lib.KINDS)
@pytest.mark.parametrize('how', _HOW)
def test_every_example_is_in_one_row_and_no_row_is_too_long(kind, how):
  subject = made(kind)
  rows = subject.rows(how)
  batch = rows.make(0, rows.num_rows, layout=subject.layout)
  wanted = sum(
      subject.cut_examples()[name].lengths.sum()
      for name in subject.layout.features
  )
  names = ('encoder_input_tokens', 'decoder_target_tokens')
  assert sum((batch[n] > 0).sum() for n in names if n in batch) == wanted
  assert rows.row_starts[-1] == subject.num_examples


def test_rows_in_order_close_when_the_next_example_does_not_fit():
  subject = subjects.make(
      [[5] * n for n in (4, 4, 3, 8, 1, 1)], lengths={'targets': 8}
  )
  rows = subject.rows(subject_lib.IN_ORDER)
  assert rows.row_starts.tolist() == [0, 2, 3, 4, 6]
  assert subject.rows(subject_lib.BEST_FIT).num_rows == 3


def _by_hand(batch, query, key):
  """Who sees whom in row 0, token by token, as models do it."""
  one, other = (batch[f'{side}_segment_ids'][0] for side in (query, key))
  sees = np.zeros((one.size, other.size), np.int64)
  causal = batch.get('decoder_causal_attention')
  for q in range(one.size):
    for k in range(other.size):
      is_ahead = query == key == 'decoder' and k > q
      if is_ahead and not (
          causal is not None and causal[0][q] and causal[0][k]
      ):
        continue
      if one[q] and one[q] == other[k]:
        sees[q, k] = one[q]
  return sees


@pytest.mark.parametrize('kind', subject_lib.KINDS)
def test_masks_are_those_of_the_models(kind):
  batch = made(kind).batch(1)
  masks = drawn_rows.masks(batch, row=0, most=1000)
  assert len(masks) == (3 if kind == 'encoder_decoder' else 1)
  for mask in masks:
    query, key = mask.title.split(' sees ')
    np.testing.assert_array_equal(mask.segments, _by_hand(batch, query, key))
    assert mask.shape == mask.segments.shape


def test_a_large_mask_is_thinned_to_what_is_asked_for():
  mask = drawn_rows.masks(made('lm').batch(1), row=0, most=20)[0]
  assert max(mask.segments.shape) <= 20
  assert mask.shape == (48, 48)


@pytest.mark.parametrize('kind', subject_lib.KINDS)
@pytest.mark.parametrize('pack', [True, False])
def test_spans_tell_all_of_a_row(kind, pack):
  subject = made(kind)
  subject = dataclasses.replace(
      subject, layout=dataclasses.replace(subject.layout, pack=pack)
  )
  batch = subject.batch(4)
  for row, sides in enumerate(drawn_rows.draw(subject, batch)):
    decoder = sides[-1]
    loss = np.repeat(
        [span.has_loss for span in decoder.spans],
        [span.size for span in decoder.spans],
    )
    np.testing.assert_array_equal(loss, batch['decoder_loss_weights'][row] > 0)
    ends = sum(
        part == '</s>'
        for side in sides
        for span in side.spans
        for _, part in span.parts
    )
    counted = sum(
        (batch[name][row] == 1).sum()
        for name in ('encoder_input_tokens', 'decoder_target_tokens')
        if name in batch
    )
    assert ends == counted
    for side in sides:
      assert side.length == batch[_TOKENS[side.name]].shape[1]


_TOKENS = {
    'encoder': 'encoder_input_tokens', 'decoder': 'decoder_target_tokens'
}  # fmt: skip


def test_a_layout_that_lacks_a_feature_or_a_length_is_refused():
  with pytest.raises(ValueError, match="'inputs'.* is missing"):
    subject_lib.make_layout(
        ['targets'], kind='prefix_lm', lengths={'targets': 4}
    )
  with pytest.raises(ValueError, match=r"Add \['targets'\]"):
    subject_lib.make_layout(['targets'], kind=None, lengths={'inputs': 4})


def test_lengths_that_fit_cut_nothing_off():
  lengths = subject_lib.fitting_lengths({
      'a': subjects.rows_of([[5] * 9, []]), 'b': subjects.rows_of([[5] * 8]),
      'c': subjects.rows_of([[]]), 'd': subjects.rows_of([[5]]),
  })  # fmt: skip
  assert lengths == {'a': 16, 'b': 8, 'c': 1, 'd': 1}


def test_an_unknown_objective_is_refused_with_the_others():
  with pytest.raises(ValueError, match=r"'spam'.*span_corruption"):
    subject_lib.find_objective('spam')


def test_examples_that_a_task_ends_after_the_cut_have_their_end():
  subject = subjects.make(
      [[5, 6, 7, 8, 1], [5, 1], [5, 6, 7, 1]], lengths={'targets': 4}
  )
  rows = [row.tolist() for row in subject.cut_examples()['targets'].split()]
  assert rows == [[5, 6, 7, 8], [5, 1], [5, 6, 7, 1]]
  subject = dataclasses.replace(subject, ended=['targets'])
  rows = [row.tolist() for row in subject.cut_examples()['targets'].split()]
  assert rows == [[5, 6, 7, 1], [5, 1], [5, 6, 7, 1]]
