# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rates that change at a step: at once, and nothing is lost or repeated."""

import collections
import dataclasses
import json

import numpy as np
import pytest

from tests.data import caches

_CHANGES = {
    3: {'one': 1, 'two': 9},
    4: {'one': 1},  # before the rows that were left over are read
    9: {'two': 1},
    14: {'one': 2, 'two': 1},
}


@pytest.fixture(scope='module')
def two_tasks(tmp_path_factory):
  """Pairs of two tasks, of 150 and 220 records."""
  root = tmp_path_factory.mktemp('two')
  caches.write(root, caches.pairs(150, seed=1), task='one')
  caches.write(
      root,
      caches.pairs(220, seed=2),
      task='two',
      rates={'one': 3.0, 'two': 1.0},
  )
  return root


@pytest.fixture(scope='module')
def two_texts(tmp_path_factory):
  root = tmp_path_factory.mktemp('texts')
  caches.write(root, caches.texts(30, seed=3), task='one')
  caches.write(
      root,
      caches.texts(45, seed=4),
      task='two',
      rates={'one': 1.0, 'two': 1.0},
  )
  return root


def _pairs_reader(root, *, changes=None, **arguments):
  reader = {
      name: arguments.pop(name)
      for name in ('host', 'num_hosts', 'batch_size')
      if name in arguments
  }
  cfg = caches.pairs_config(
      root,
      rates_from_step=changes,
      **{'batch_size': 8, 'window_tokens': 1 << 13, **arguments},
  )
  return caches.reader(cfg, **reader)


def _sources(reader, *, count: int) -> list[float]:
  """The share of the second task in each of the next batches."""
  shares = []
  for _ in range(count):
    origins = np.concatenate(reader.origins())
    shares.append(float(origins[:, 0].mean()))
    next(reader)
  return shares


def test_rates_change_with_the_very_batch_of_their_step(two_tasks):
  changes = {4: {'two': 1}, 7: {'one': 1}}
  shares = _sources(
      _pairs_reader(two_tasks, changes=changes, rates={'one': 1}), count=9
  )
  assert shares == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def test_a_run_is_told_of_changes_of_its_rates(two_tasks):
  promise = _pairs_reader(two_tasks, changes=_CHANGES).promise
  assert 'Rates change with the batch of step 3, 4, 9, 14.' in promise


def test_batches_before_a_change_are_those_of_a_run_without_it(two_tasks):
  plain, changed = (
      caches.batches(_pairs_reader(two_tasks, changes=changes), 5)
      for changes in (None, {5: {'two': 1}})
  )
  for left, right in zip(plain[:4], changed[:4], strict=True):
    caches.assert_equal(left, right)
  name = 'encoder_input_tokens'
  assert not np.array_equal(plain[4][name], changed[4][name])


def test_each_example_comes_once_an_epoch_over_all_changes(two_tasks):
  reader = _pairs_reader(two_tasks, changes=_CHANGES)
  seen: list[collections.Counter] = [collections.Counter() for _ in range(2)]
  while not all(
      any(epoch == 3 for epoch, _ in counter) for counter in seen
  ):
    for source, epoch, number in np.concatenate(reader.origins()).tolist():
      seen[source][epoch, number] += 1
    next(reader)
  for counter, size in zip(seen, (150, 220), strict=True):
    whole = {(epoch, number) for epoch in (0, 1) for number in range(size)}
    early = {key for key in counter if key[0] < 2}
    assert early == whole
    assert set(counter.values()) == {1}
  assert len(reader.position.ended) == len(_CHANGES)


def _segments(root, changes) -> dict[tuple, collections.Counter]:
  """What was made of each record of the first epochs, by source and number."""
  cfg = caches.config(
      root, rates_from_step=changes, batch_size=16, window_tokens=1024
  )
  reader = caches.reader(cfg)
  found: dict[tuple, collections.Counter] = collections.defaultdict(
      collections.Counter
  )
  last = {0: 0, 1: 0}
  while min(last.values()) < 2:
    examples = [
        (row, place + 1, *record)
        for row, records in enumerate(reader.origins())
        for place, record in enumerate(records.tolist())
    ]
    batch = next(reader)
    for row, segment, source, epoch, number in examples:
      last[source] = max(last[source], epoch)
      if epoch == 0:
        is_it = batch['decoder_segment_ids'][row] == segment
        text = batch['decoder_target_tokens'][row][is_it]
        found[source, number][tuple(text.tolist())] += 1
  return dict(found)


def test_records_cut_into_examples_lose_none_of_them_over_changes(two_texts):
  changes = {2: {'two': 1}, 3: {'one': 1}, 8: {'one': 1, 'two': 2}}
  assert _segments(two_texts, changes) == _segments(two_texts, None)


@pytest.mark.parametrize('step', [0, 2, 3, 5, 8])
@pytest.mark.parametrize(('num_hosts', 'batch_size'), [(3, 6), (4, 16)])
def test_stopped_before_or_after_a_change_it_goes_on_on_other_hosts(
    step, num_hosts, batch_size, two_tasks
):
  before = _pairs_reader(two_tasks, changes=_CHANGES)
  seen = [caches.origins_of(before) for _ in range(step)]
  state = json.loads(json.dumps(before.state_dict()))
  whole, *hosts = [
      _pairs_reader(
          two_tasks,
          changes=_CHANGES,
          host=host,
          num_hosts=count,
          batch_size=batch_size,
      )
      for host, count in (
          (0, 1), *((host, num_hosts) for host in range(num_hosts))
      )
  ]  # fmt: skip
  for reader in (whole, *hosts):
    reader.load_state_dict(state)
  for at in range(step + 1, 20):
    origins = np.concatenate(whole.origins())
    if at in (5, 11):  # the change is by the step, whatever the batch
      assert set(origins[:, 0].tolist()) == {at > 8}
    seen.append(origins)
    caches.assert_equal(
        caches.joined([next(host) for host in hosts]), next(whole)
    )
  assert all(host.state_dict() == whole.state_dict() for host in hosts)
  counter = collections.Counter(map(tuple, np.concatenate(seen).tolist()))
  assert set(counter.values()) == {1}


def test_a_position_after_many_changes_is_small_and_found_again(two_tasks):
  changes = {
      step: {'one': 1 + step % 3, 'two': 1} for step in range(2, 22)
  }
  reader = _pairs_reader(two_tasks, changes=changes)
  caches.batches(reader, 24)
  state = json.dumps(reader.state_dict())
  assert len(state) < 1024
  again = _pairs_reader(two_tasks, changes=changes)
  again.load_state_dict(json.loads(state))
  caches.assert_equal(next(again), next(reader))


def test_steps_are_those_of_the_run_where_it_began_at_another(two_tasks):
  changes = {1003: {'two': 1}}
  reader = _pairs_reader(two_tasks, changes=changes, rates={'one': 1})
  reader.start_at(1000)
  assert _sources(reader, count=3) == [0.0, 0.0, 1.0]
  again = _pairs_reader(two_tasks, changes=changes, rates={'one': 1})
  again.load_state_dict(reader.state_dict())
  assert again.position.step == 1003
  caches.assert_equal(next(again), next(reader))


def test_a_change_still_to_come_may_be_made_in_a_run(two_tasks):
  reader = _pairs_reader(two_tasks, changes={4: {'one': 1}})
  caches.batches(reader, 6)
  state = reader.state_dict()
  for changes in ({4: {'one': 1}}, {4: {'one': 1}, 7: {'two': 1}}):
    _pairs_reader(two_tasks, changes=changes).load_state_dict(state)
  for changes in (None, {4: {'two': 1}}, {4: {'one': 1}, 6: {'two': 1}}):
    changed = _pairs_reader(two_tasks, changes=changes)
    with pytest.raises(ValueError, match='begin at step 7 or later') as error:
      changed.load_state_dict(state)
    assert 'rates_from_step' in str(error.value)
    going_on = _pairs_reader(
        two_tasks, changes=changes, on_changed_data='continue'
    )
    going_on.load_state_dict(state)
    next(going_on)


def test_a_task_of_another_cache_may_join_a_run(two_tasks, tmp_path):
  caches.write(tmp_path, caches.pairs(50, seed=5), task='new')
  reader = _pairs_reader(two_tasks)
  caches.batches(reader, 3)
  state = reader.state_dict()
  both = (str(two_tasks), str(tmp_path))
  rates = {'one': 3, 'two': 1}
  joined = _pairs_reader(
      both, rates=rates, changes={6: {'one': 3, 'two': 1, 'new': 4}}
  )
  joined.load_state_dict(state)
  for _ in range(2):
    assert set(joined.origins()[0][:, 0].tolist()) <= {0, 1}
    caches.assert_equal(next(joined), next(reader))
  # Rates are of examples: half of them, over windows of whole rows.
  shares = [(caches.origins_of(joined)[:, 0] == 2).mean() for _ in range(40)]
  assert np.mean(shares) == pytest.approx(0.5, abs=0.05)


def test_whole_examples_may_join_a_run_of_tokens(two_texts, tmp_path):
  caches.write(tmp_path, caches.pairs(50, seed=5), task='new')
  lengths = {'inputs': 512, 'targets': 512}
  rates = {'one': 3, 'two': 1}
  cfg = caches.config(
      two_texts, batch_size=2, task_feature_lengths=lengths, rates=rates
  )
  reader = caches.reader(cfg)
  caches.batches(reader, 3)
  joined = caches.reader(
      dataclasses.replace(
          cfg,
          cache_dir=(str(two_texts), str(tmp_path)),
          rates_from_step={6: {**rates, 'new': 4}},
      )
  )
  joined.load_state_dict(reader.state_dict())
  for _ in range(2):
    caches.assert_equal(next(joined), next(reader))
  found = np.concatenate([caches.origins_of(joined) for _ in range(20)])
  assert (found[:, 0] == 2).mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ('before', 'after', 'words'),
    [
        (
            {'rates': {'one': 3, 'two': 1}}, {'rates': {'one': 1, 'two': 4}},
            ['saved: one 3, two 1; shuffled', 'now:   one 1, two 4; shuffled'],
        ),
        ({}, {'shuffle': False}, ['; shuffled', '; not shuffled']),
        (
            {}, {'task_feature_lengths': {'inputs': 64, 'targets': 32}},
            ['inputs 512, targets 114', 'now:   encoder_decoder, packed, in'],
        ),
        (
            {'changes': {2: {'two': 1}}}, {'changes': {2: {'one': 1}}},
            ['saved: from step 2: two 1, f', 'now:   from step 2: one 1, f'],
        ),
        ({'rates': {'one': 1}}, {'rates': {'two': 1}}, [
            'saved: one 150 records', 'now:   two 220 records',
        ]),
    ],
)  # fmt: skip
def test_what_a_resume_finds_changed_is_told_in_words_on_both_sides(
    before, after, words, two_tasks
):
  reader = _pairs_reader(two_tasks, **before)
  caches.batches(reader, 3)
  state = json.loads(json.dumps(reader.state_dict()))
  changed = _pairs_reader(two_tasks, **after)
  with pytest.raises(ValueError, match='what differs:') as error:
    changed.load_state_dict(state)
  for each in words:
    assert each in str(error.value)
  del state['words']  # as older runs saved it
  with pytest.raises(ValueError, match='saved: fingerprint'):
    changed.load_state_dict(state)
  _pairs_reader(two_tasks, **before).load_state_dict(state)


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({9: {'one': 1}, 4: {'two': 1}}, r'are \[9, 4\]: expected them to'),
        ({4: {'one': 0.0, 'two': 0}}, 'one of them above 0'),
        ({4: {'tow': 1.0}}, r"rates_from_step\[4\] name \['tow'\].*'two'"),
        ({0: {'one': 1}}, 'the step 0: expected whole numbers from 1'),
        ({True: {'one': 1}}, 'the step True'),
        ({4: {'one': float('nan')}}, 'finite numbers'),
    ],
)
def test_a_schedule_of_no_sense_is_refused(changes, named, two_tasks):
  with pytest.raises(ValueError, match=named):
    _pairs_reader(two_tasks, changes=changes)


@pytest.mark.parametrize('unit', ['examples', 'tokens'])
def test_rates_are_of_examples_or_of_tokens(unit, tmp_path):
  """Examples of one task are four times as long as of the other."""
  for task, size in (('long', 80), ('short', 20)):
    tokens = np.full(size, 7, np.int32)
    caches.write(
        tmp_path,
        [{'inputs': tokens, 'targets': tokens}] * 300,
        task=task,
        rates={'long': 1.0, 'short': 1.0},
    )
  reader = _pairs_reader(tmp_path, rates_count=unit)
  sources = np.concatenate(
      [caches.origins_of(reader) for _ in range(20)]
  )[:, 0]
  expected = 0.5 if unit == 'examples' else 0.8
  assert (sources == 1).mean() == pytest.approx(expected, abs=0.02)
