# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Any hosts, any batch, stopped anywhere: the same rows, each once."""

import functools
import json
import time
import types

import numpy as np
import pytest

from t5wild import data
from t5wild.data import cached_datasets
from t5wild.data import objectives
from t5wild.data import record_cache
from tests.data import caches

_DOCUMENTS = 200
_CAUSAL = {
    'task_feature_lengths': {'targets': 96},
    'objective': objectives.causal_lm,
}


@pytest.fixture(scope='module')
def text_cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('texts')
  caches.write(root, caches.texts(_DOCUMENTS))
  return root


@pytest.fixture(scope='module')
def pair_cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('pairs')
  caches.write(root, caches.pairs(2000))
  return root


def _pairs(root, **changes):
  return caches.config(
      root,
      objective=None,
      task_feature_lengths={'inputs': 512, 'targets': 114},
      window_tokens=1 << 17,
      **changes,
  )


@pytest.fixture(scope='module')
def one_host(text_cache):
  return caches.batches(caches.reader(caches.config(text_cache)), 20)


@pytest.mark.parametrize('num_hosts', [2, 3, 4, 8])
def test_global_batches_are_the_same_for_any_number_of_hosts(
    num_hosts, text_cache, one_host
):
  hosts = [
      caches.reader(caches.config(text_cache), host=host, num_hosts=num_hosts)
      for host in range(num_hosts)
  ]
  for expected in one_host:
    found = caches.joined([next(host) for host in hosts])
    caches.assert_equal(found, expected)
  states = [host.state_dict() for host in hosts]
  assert all(state == states[0] for state in states)


@pytest.mark.parametrize('step', [0, 1, 7, 13])
@pytest.mark.parametrize('batch_size', [8, 24, 48])
def test_stopped_at_any_step_it_goes_on_with_other_hosts_and_batch(
    step, batch_size, text_cache, one_host
):
  before = caches.reader(caches.config(text_cache))
  caches.batches(before, step)
  state = json.loads(json.dumps(before.state_dict()))
  hosts = [
      caches.reader(
          caches.config(text_cache),
          host=host,
          num_hosts=4,
          batch_size=batch_size,
      )
      for host in range(4)
  ]
  for host in hosts:
    host.load_state_dict(state)
  count = (20 - step) * 24 // batch_size
  parts = [
      caches.joined([next(host) for host in hosts]) for _ in range(count)
  ]
  expected = caches.joined(one_host)
  caches.assert_equal(
      caches.joined(parts),
      {
          name: array[step * 24 : step * 24 + count * batch_size]
          for name, array in expected.items()
      },
  )


def _text_of(batch, *, name='decoder_target_tokens') -> list[list[int]]:
  """The tokens of each segment of packed rows."""
  found = []
  tokens, segments = batch[name], batch['decoder_segment_ids']
  for row, ids in zip(tokens, segments, strict=True):
    found += [
        row[ids == number].tolist() for number in range(1, ids.max() + 1)
    ]
  return found


def test_every_token_of_the_documents_is_read_once_an_epoch(text_cache):
  """Whole epochs of a language model, put together again, are the text."""
  cfg = caches.config(text_cache, **_CAUSAL)
  reader = caches.reader(cfg, feature_converter_cls=caches.DECODER)
  expected = sorted(
      token for text in caches.texts(_DOCUMENTS) for token in text.tolist()
  )
  found: list[int] = []
  records: list[tuple[int, int, int]] = []
  while True:
    origins = [tuple(part) for row in reader.origins() for part in row.tolist()]
    batch = next(reader)
    for (source, epoch, number), segment in zip(
        origins, _text_of(batch), strict=True
    ):
      records.append((source, epoch, number))
      if epoch == 0:
        found += segment
    if epoch > 1:  # epochs come one after the other
      break
  ends = [token for token in found if token == caches.VOCABULARY.eos_id]
  assert sorted(set(found) | {0}) == sorted(set(expected) | {0, 1})
  without_ends = sorted(t for t in found if t != caches.VOCABULARY.eos_id)
  assert without_ends == expected
  assert ends
  size = len(record_cache.RecordCache(record_cache.folders_of(text_cache)[0]))
  for epoch in (0, 1):
    assert {n for _, e, n in records if e == epoch} == set(range(size))


def test_each_pair_is_read_once_an_epoch_and_never_split(pair_cache):
  reader = caches.reader(_pairs(pair_cache, batch_size=8))
  seen: list[tuple[int, int]] = []
  while len(seen) < 4100:
    origins = np.concatenate(reader.origins())
    seen += [(epoch, number) for _, epoch, number in origins.tolist()]
    next(reader)
  # One epoch after the other: no pair again before all others came.
  for epoch in (0, 1):
    part = seen[epoch * 2000 : (epoch + 1) * 2000]
    assert sorted(part) == [(epoch, number) for number in range(2000)]


def test_epochs_come_in_other_orders_and_are_corrupted_afresh(text_cache):
  cfg = caches.config(text_cache)
  reader = caches.reader(cfg)
  by_epoch: dict[int, list] = {0: [], 1: []}
  corrupted: dict[int, dict[int, set]] = {0: {}, 1: {}}
  while not by_epoch[1] or len(by_epoch[1]) < 200:
    origins = np.concatenate(reader.origins())
    segments = _text_of(next(reader))
    for (_, epoch, number), segment in zip(
        origins.tolist(), segments, strict=True
    ):
      if epoch in by_epoch:
        by_epoch[epoch].append(number)
        corrupted[epoch].setdefault(number, set()).add(tuple(segment))
  assert by_epoch[0][:200] != by_epoch[1][:200]
  both = set(corrupted[0]) & set(corrupted[1])
  same = [n for n in both if corrupted[0][n] == corrupted[1][n]]
  assert len(both) > 50
  # A record of a few tokens may by chance be corrupted alike.
  assert len(same) < len(both) / 4


def test_another_seed_gives_other_batches(text_cache, one_host):
  other = next(caches.reader(caches.config(text_cache, seed=1)))
  name = 'encoder_input_tokens'
  assert not np.array_equal(other[name], one_host[0][name])


def test_position_ten_million_steps_on_is_reached_at_once_and_small(text_cache):
  cfg = caches.config(text_cache)
  near = caches.reader(cfg)
  next(near)
  state = {
      **near.state_dict(),
      'window': 3_000_000_007, 'row': 3, 'batches': 10_000_000,
      'rows': 240_000_000,
  }  # fmt: skip
  assert len(json.dumps(state)) < 1024
  start = time.perf_counter()
  far = caches.reader(cfg)
  far.load_state_dict(state)
  batch = next(far)
  assert time.perf_counter() - start < 2
  assert (batch['decoder_target_tokens'] > 0).any()


def test_rows_of_text_are_nearly_full(tmp_path):
  caches.write(tmp_path, caches.texts(400, longest=3000))
  lengths = {'inputs': 128, 'targets': 36}
  cfg = caches.config(
      tmp_path, task_feature_lengths=lengths, window_tokens=1 << 17
  )
  parts = caches.joined(caches.batches(caches.reader(cfg), 40))
  # Documents are cut into records of 128 tokens here, so none fills a row.
  assert (parts['encoder_segment_ids'] > 0).mean() > 0.9


def test_unsplit_pairs_fill_rows_of_one_sequence(pair_cache):
  cfg = _pairs(pair_cache)
  reader = caches.reader(cfg, feature_converter_cls=caches.DECODER)
  parts = caches.joined(caches.batches(reader, 10))
  assert (parts['decoder_segment_ids'] > 0).mean() >= 0.93


def test_unpacked_rows_hold_one_example_each(text_cache):
  batch = next(caches.reader(caches.config(text_cache, pack=False)))
  assert 'encoder_segment_ids' not in batch
  assert batch['encoder_input_tokens'].shape == (24, 64)


def test_the_spec_is_told_before_anything_is_read(text_cache, one_host):
  reader = caches.reader(caches.config(text_cache), host=1, num_hosts=2)
  assert reader.element_spec == {
      name: ((12, *array.shape[1:]), array.dtype)
      for name, array in one_host[0].items()
  }


def test_start_batch_passes_over_batches(text_cache, one_host):
  reader = caches.reader(caches.config(text_cache), start_batch=5)
  caches.assert_equal(next(reader), one_host[5])


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'seed': 1}, 'seed'),
        ({'window_tokens': 8192}, 'order'),
        ({'shuffle': False}, 'order'),
        ({'pack': False}, 'rows made of them'),
        ({'task_feature_lengths': {'inputs': 62, 'targets': 32}}, 'rows made'),
        (
            {
                'objective': functools.partial(
                    objectives.span_corruption, noise_density=0.2
                )
            },
            'rows made',
        ),
    ],
)
def test_a_position_in_other_data_is_refused(changes, named, text_cache):
  state = caches.reader(caches.config(text_cache)).state_dict()
  other = caches.config(text_cache, **changes)
  with pytest.raises(ValueError, match=named) as error:
    caches.reader(other).load_state_dict(state)
  assert 'on_changed_data' in str(error.value)
  changed = caches.config(text_cache, on_changed_data='continue', **changes)
  reader = caches.reader(changed)
  reader.load_state_dict(state)
  next(reader)


def test_a_position_in_another_cache_is_refused(text_cache, tmp_path):
  state = caches.reader(caches.config(text_cache)).state_dict()
  caches.write(tmp_path, caches.texts(_DOCUMENTS, seed=9))
  with pytest.raises(ValueError, match='records of the caches'):
    caches.reader(caches.config(tmp_path)).load_state_dict(state)


def test_a_position_of_another_kind_of_reader_is_refused(text_cache):
  reader = caches.reader(caches.config(text_cache))
  with pytest.raises(ValueError, match="'live' reader"):
    reader.load_state_dict({'kind': 'live'})


@pytest.fixture(scope='module')
def two_tasks(tmp_path_factory):
  root = tmp_path_factory.mktemp('two')
  caches.write(root, caches.pairs(300, seed=1), task='one')
  caches.write(
      root,
      caches.pairs(900, seed=2),
      task='two',
      rates={'one': 3.0, 'two': 1.0},
  )
  return root


def _share_of_first(reader, count: int) -> float:
  sources = []
  while len(sources) < count:
    sources += np.concatenate(reader.origins())[:, 0].tolist()
    next(reader)
  return 1 - float(np.mean(sources))


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({}, 0.75),
        ({'rates': {'one': 1, 'two': 4}}, 0.2),
        ({'rates': {'one': 16, 'two': 1}, 'temperature': 2.0}, 0.8),
        ({'rates': {'one': 1, 'two': 0}}, 1.0),
    ],
)
def test_tasks_are_mixed_by_their_rates(changes, expected, two_tasks):
  reader = caches.reader(_pairs(two_tasks, **changes))
  assert _share_of_first(reader, 4000) == pytest.approx(expected, abs=0.02)


def test_a_mixture_is_the_same_for_any_number_of_hosts(two_tasks):
  whole = caches.reader(_pairs(two_tasks))
  hosts = [
      caches.reader(_pairs(two_tasks), host=host, num_hosts=3)
      for host in range(3)
  ]
  for _ in range(5):
    caches.assert_equal(
        caches.joined([next(host) for host in hosts]), next(whole)
    )


@pytest.mark.parametrize(
    ('rates', 'named'),
    [
        ({'one': 0.0, 'two': 0.0}, 'one of them above 0'),
        ({'one': 1.0, 'thre': 1.0}, "name \\['thre'\\]"),
        ({'one': -1.0}, 'at least 0'),
    ],
)
def test_bad_rates_are_refused(rates, named, two_tasks):
  with pytest.raises(ValueError, match=named):
    caches.reader(_pairs(two_tasks, rates=rates))


def test_evaluation_reads_each_task_and_the_same_batches_each_time(two_tasks):
  found = _pairs(two_tasks).make_eval_batches(
      data_layout=types.SimpleNamespace(
          batch_size=8, shard_id=0, num_shards=1
      ),
      eval_steps=3,
      feature_converter_cls=caches.ENCODER_DECODER,
  )
  assert sorted(found) == ['one', 'two']
  for batches in found.values():
    first, second = list(batches), list(batches)
    assert len(first) == 3
    for left, right in zip(first, second, strict=True):
      caches.assert_equal(left, right)


def test_lengths_that_leave_nothing_are_told(tmp_path):
  caches.write(tmp_path, [np.full(1, 5, np.int32) for _ in range(40)])
  cfg = caches.config(tmp_path, window_tokens=32)
  # Span corruption drops documents of one token.
  with pytest.raises(ValueError, match='no example'):
    next(caches.reader(cfg))


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'batch_size': 0}, 'batch_size'),
        ({'temperature': 0.0}, 'temperature'),
        ({'task_feature_lengths': {}}, 'task_feature_lengths'),
        ({'on_changed_data': 'ignore'}, 'on_changed_data'),
    ],
)
def test_a_config_of_no_use_is_refused_at_once(changes, named):
  with pytest.raises(ValueError, match=named):
    caches.config('anywhere', **changes)


def test_an_objective_is_asked_for_where_there_are_tokens(text_cache):
  with pytest.raises(ValueError, match='OBJECTIVE'):
    caches.reader(caches.config(text_cache, objective=None))


def test_an_objective_is_refused_where_there_are_examples(pair_cache):
  with pytest.raises(ValueError, match='whole examples'):
    caches.reader(caches.config(pair_cache))


def test_the_classes_are_named_in_one_face():
  assert data.CachedDatasetConfig is cached_datasets.CachedDatasetConfig
