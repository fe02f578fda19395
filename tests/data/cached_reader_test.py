# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Any hosts, any batch, stopped anywhere: the same rows, each once."""

import functools
import json
import time

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    'objective',
    [
        functools.partial(objectives.ul2, max_tokens_length=60),
        objectives.iid_denoising,
        functools.partial(objectives.span_corruption, merge_documents=True),
        objectives.prefix_lm,
    ],
)
def test_hosts_make_no_more_than_their_rows_and_the_same_ones(
    objective, text_cache
):
  cfg = caches.config(text_cache, objective=objective)
  whole = caches.reader(cfg)
  hosts = [caches.reader(cfg, host=host, num_hosts=3) for host in range(3)]
  for _ in range(4):
    caches.assert_equal(
        caches.joined([next(host) for host in hosts]), next(whole)
    )


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
  reader = caches.reader(caches.pairs_config(pair_cache, batch_size=8))
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


def test_a_seed_that_was_drawn_is_that_of_the_position(text_cache, monkeypatch):
  seeds = iter([11, 22])
  monkeypatch.setattr(cached_datasets, '_draw_seed', lambda: next(seeds))
  cfg = caches.config(text_cache, seed=None)
  before = caches.reader(cfg)
  state = before.state_dict()
  after = caches.reader(cfg)
  after.load_state_dict(state)
  assert state['seed'] == after.state_dict()['seed'] == 11
  caches.assert_equal(next(after), next(before))


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
  cfg = caches.pairs_config(pair_cache)
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
