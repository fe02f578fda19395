# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Documents left out from a step on: all others stay where they are."""

import functools

import numpy as np
import pytest

from t5wild.data import objectives
from tests.data import caches

_STEP = 5
_EXCLUDED = ('letters:0:3', '1:0', 'letters:2:20')


@pytest.fixture(scope='module')
def text_cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('texts')
  caches.write(root, caches.texts(80))
  return root


def _reader(root, lists, **changes):
  reader = {
      name: changes.pop(name)
      for name in ('host', 'num_hosts', 'batch_size')
      if name in changes
  }
  cfg = caches.config(
      root, exclude_from_step=lists, window_tokens=1024, **changes
  )
  return caches.reader(cfg, **reader)


def _numbers(root, names) -> set[int]:
  """Records of the documents of some names, found by reading all of them."""
  cache = caches.config(root).open_caches()[0]
  every = np.arange(len(cache))
  shards, _ = cache.locate(every)
  documents = cache.read(every).documents
  wanted = {tuple(map(int, name.split(':')[-2:])) for name in names}
  return {
      number
      for number, *place in zip(
          every.tolist(), shards.tolist(), documents.tolist(), strict=True
      )
      if tuple(place) in wanted
  }


def _segments(batch, row) -> list[list[int]]:
  """Inputs and targets of each example of a row, in order."""
  found = []
  for side, name in (
      ('encoder', 'encoder_input_tokens'),
      ('decoder', 'decoder_target_tokens'),
  ):
    ids = batch[f'{side}_segment_ids'][row]
    found.append([
        batch[name][row][ids == number].tolist()
        for number in range(1, ids.max(initial=0) + 1)
    ])
  return [a + b for a, b in zip(*found, strict=True)]


def test_from_its_step_on_a_document_is_gone_and_all_others_are_in_place(
    text_cache
):
  gone = _numbers(text_cache, _EXCLUDED)
  assert len(gone) > 3
  plain = _reader(text_cache, None)
  reader = _reader(text_cache, {_STEP: _EXCLUDED})
  num_left_out = 0
  for step in range(1, 40):
    assert reader.left_out().size == 0 or step >= _STEP
    origins, batch = plain.origins(), next(plain)
    found = next(reader)
    if step < _STEP:
      caches.assert_equal(found, batch)
      continue
    for row, records in enumerate(origins):
      is_kept = [number not in gone for number in records[:, 2].tolist()]
      num_left_out += len(is_kept) - sum(is_kept)
      kept = [
          segment
          for segment, keep in zip(_segments(batch, row), is_kept, strict=True)
          if keep
      ]
      assert _segments(found, row) == kept
  assert num_left_out > 10
  assert reader.state_dict()['row'] == plain.state_dict()['row']


def test_what_is_told_as_left_out_is_what_is_not_in_the_batch(text_cache):
  gone = _numbers(text_cache, _EXCLUDED)
  plain = _reader(text_cache, None)
  reader = _reader(text_cache, {1: _EXCLUDED})
  for _ in range(20):
    every = np.concatenate(plain.origins())[:, 2].tolist()
    assert sorted(reader.left_out()[:, 2].tolist()) == sorted(
        number for number in every if number in gone
    )
    assert not gone & set(np.concatenate(reader.origins())[:, 2].tolist())
    next(plain)
    next(reader)


def test_a_run_is_told_of_what_will_change(text_cache):
  promise = _reader(text_cache, {2: _EXCLUDED, 9: ['0:5']}).promise
  assert '4 documents are left out, from the batch of step 2, 9 on' in promise
  assert 'left out' not in _reader(text_cache, None).promise


@pytest.mark.parametrize('num_hosts', [3, 8])
def test_hosts_leave_out_the_same(num_hosts, text_cache):
  whole = _reader(text_cache, {2: _EXCLUDED})
  hosts = [
      _reader(text_cache, {2: _EXCLUDED}, host=host, num_hosts=num_hosts)
      for host in range(num_hosts)
  ]
  for _ in range(6):
    caches.assert_equal(
        caches.joined([next(host) for host in hosts]), next(whole)
    )


def test_no_token_of_a_document_is_left_where_documents_are_joined(tmp_path):
  """Each document has a token of its own, by which it is found again."""
  documents = [np.full(5 + i % 40, 3 + i, np.int32) for i in range(200)]
  caches.write(tmp_path, documents, num_shards=1)
  merged = functools.partial(objectives.causal_lm, merge_documents=True)
  reader, plain = (
      caches.reader(
          caches.config(
              tmp_path,
              objective=merged,
              task_feature_lengths={'targets': 60},
              exclude_from_step=lists,
              batch_size=8,
          ),
          feature_converter_cls=caches.DECODER,
      )
      for lists in ({1: ['0:10', '0:150']}, None)
  )
  seen, seen_plain = (
      set(np.unique([next(each)['decoder_target_tokens'] for _ in range(40)]))
      for each in (reader, plain)
  )
  assert seen_plain - seen == {13, 153}


def test_unpacked_its_row_is_empty(text_cache):
  reader = _reader(text_cache, {1: _EXCLUDED}, pack=False)
  plain = _reader(text_cache, None, pack=False)
  gone = _numbers(text_cache, _EXCLUDED)
  for _ in range(10):
    is_gone = [
        number in gone
        for number in np.concatenate(plain.origins())[:, 2].tolist()
    ]
    batch = next(reader)
    for name, array in next(plain).items():
      assert not batch[name][is_gone].any()
      kept = np.logical_not(is_gone)
      np.testing.assert_array_equal(batch[name][kept], array[kept])


def test_a_file_may_name_the_documents(text_cache, tmp_path):
  path = tmp_path / 'bad.txt'
  path.write_text('# found on Monday\n' + '\n'.join(_EXCLUDED) + '  # all\n\n')
  from_file, given = (
      _reader(text_cache, {1: lists}) for lists in (str(path), _EXCLUDED)
  )
  caches.assert_equal(next(from_file), next(given))
  assert from_file.state_dict() == given.state_dict()


def test_a_list_may_begin_after_a_saved_position_and_no_earlier(
    text_cache, tmp_path
):
  reader = _reader(text_cache, {3: ['0:3']})
  caches.batches(reader, 6)
  state = reader.state_dict()
  _reader(text_cache, {3: ['0:3'], 7: ['0:4']}).load_state_dict(state)
  for lists in (None, {3: ['0:4']}, {3: ['0:3'], 6: ['0:4']}, {2: ['0:3']}):
    with pytest.raises(ValueError, match='begin at step 7 or later') as error:
      _reader(text_cache, lists).load_state_dict(state)
    assert 'exclude_from_step' in str(error.value)
    changed = _reader(text_cache, lists, on_changed_data='continue')
    changed.load_state_dict(state)
    next(changed)


@pytest.mark.parametrize(
    ('lists', 'named'),
    [
        ({1: ['letters:3:0']}, 'no shard 3: expected one of 0 to 2'),
        ({1: ['letters:0:400']}, 'expected one of 0 to 26'),
        ({1: ['leters:0:4']}, "did you mean 'letters'"),
        ({1: ['letters:0']}, 'with two numbers'),
        ({1: ['0:-4']}, 'TASK:SHARD:DOCUMENT'),
        ({1: ['four']}, 'or SHARD:DOCUMENT'),
        ({-1: ['0:4']}, 'the step -1'),
        ({'1': ['0:4']}, "the step '1'"),
        ({1: '/nowhere/list.txt'}, 'cannot be read'),
    ],
)
def test_unknown_documents_are_refused(lists, named, text_cache):
  with pytest.raises(ValueError, match=named):
    _reader(text_cache, lists)


def test_a_name_in_a_file_is_refused_with_its_line(text_cache, tmp_path):
  path = tmp_path / 'bad.txt'
  path.write_text('0:1\nnonsense\n')
  with pytest.raises(ValueError, match='bad.txt, line 2 names'):
    _reader(text_cache, {1: str(path)})
