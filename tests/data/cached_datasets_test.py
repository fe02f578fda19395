# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Mixtures of caches, evaluation from them, and configs that are refused."""

import types

import numpy as np
import pytest

from t5wild import data
from t5wild.data import cache_roots
from t5wild.data import cached_datasets
from t5wild.data import record_cache
from tests.data import caches


@pytest.fixture(scope='module')
def text_cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('texts')
  caches.write(root, caches.texts(50))
  return root


@pytest.fixture(scope='module')
def pair_cache(tmp_path_factory):
  root = tmp_path_factory.mktemp('pairs')
  caches.write(root, caches.pairs(50))
  return root


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
  reader = caches.reader(caches.pairs_config(two_tasks, **changes))
  assert _share_of_first(reader, 4000) == pytest.approx(expected, abs=0.02)


def test_a_mixture_is_the_same_for_any_number_of_hosts(two_tasks):
  whole = caches.reader(caches.pairs_config(two_tasks))
  hosts = [
      caches.reader(caches.pairs_config(two_tasks), host=host, num_hosts=3)
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
    caches.reader(caches.pairs_config(two_tasks, rates=rates))


def test_evaluation_reads_each_task_and_the_same_batches_each_time(two_tasks):
  found = caches.pairs_config(two_tasks).make_eval_batches(
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


@pytest.mark.parametrize('text', ['{"rates": {"one"', '{}', '{"rates": 3}'])
def test_a_damaged_list_of_rates_is_named_with_the_mend(tmp_path, text):
  path = tmp_path / 'cache.json'
  path.write_text(text)
  with pytest.raises(record_cache.BadCacheError, match='is damaged') as error:
    cache_roots.rates_of(str(tmp_path))
  assert str(path) in str(error.value)
  assert 't5wild cache' in str(error.value)
