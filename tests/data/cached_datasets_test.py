# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Mixtures of caches, evaluation from them, and configs that are refused."""

import collections
import functools
import types

import numpy as np
import pytest

from t5wild import data
from t5wild.data import cache_roots
from t5wild.data import cached_datasets
from t5wild.data import objectives
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
        ({}, r"rates names no task: expected .* \['one', 'two'\]"),
        ({'one': 'half'}, r"rates is \{'one': 'half'\}: expected a number"),
        (['one'], r"rates is \['one'\]"),
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


@pytest.mark.parametrize(
    ('cache', 'objective'), [('text_cache', None), ('pair_cache', 'spans')]
)
def test_no_error_about_an_objective_prints_an_address(
    cache, objective, request
):
  cfg = caches.config(
      request.getfixturevalue(cache),
      objective=objective and functools.partial(objectives.span_corruption),
  )
  with pytest.raises(ValueError, match='objective') as error:
    caches.reader(cfg)
  assert ' at 0x' not in str(error.value)
  assert 'objectives.span_corruption' in str(error.value)


@pytest.fixture(scope='module')
def mixed(tmp_path_factory):
  """Caches of tokens and of examples, the latter without a validation split."""
  roots = [tmp_path_factory.mktemp(name) for name in ('web', 'asked')]
  for split in ('train', 'validation'):
    caches.write(roots[0], caches.texts(60), task='web', split=split)
  caches.write(roots[1], caches.pairs(60), task='asked')
  return tuple(map(str, roots))


def test_tokens_and_examples_are_mixed_and_the_objective_is_for_tokens(mixed):
  cfg = caches.config(
      mixed, rates={'web': 1, 'asked': 1}, task_feature_lengths={
          'inputs': 512, 'targets': 512
      }, window_tokens=1 << 14, batch_size=4,
  )  # fmt: skip
  whole, *hosts = [
      caches.reader(cfg, host=host, num_hosts=count)
      for host, count in ((0, 1), (0, 2), (1, 2))
  ]
  pairs = {each['inputs'].tobytes() for each in caches.pairs(60)}
  kinds = collections.Counter()
  for _ in range(6):
    records, made = whole.origins(), whole.examples()
    for origins, examples in zip(records, made, strict=True):
      for (source, _, _), example in zip(origins, examples, strict=True):
        is_pair = example['inputs'].tobytes() in pairs
        has_sentinel = bool((example['inputs'] > 258).any())
        assert (is_pair, has_sentinel) == (source == 1, source == 0)
        kinds[int(source)] += 1
    caches.assert_equal(
        caches.joined([next(host) for host in hosts]), next(whole)
    )
  assert kinds[0] / kinds[1] == pytest.approx(1.0, abs=0.3)  # some 40 of each


def test_evaluation_leaves_out_tasks_without_the_split_as_long_as_one_has_it(
    mixed
):
  cfg = caches.config(mixed, split='validation')
  layout = types.SimpleNamespace(batch_size=8, shard_id=0, num_shards=1)
  arguments = {
      'data_layout': layout, 'eval_steps': 1,
      'feature_converter_cls': caches.ENCODER_DECODER,
  }  # fmt: skip
  assert list(cfg.make_eval_batches(**arguments)) == ['web']
  for split, named in (('validation', "asked has no split 'valid"),
                       ('test', "no split 'test'")):  # fmt: skip
    with pytest.raises(record_cache.BadCacheError, match=named):
      caches.reader(caches.config(mixed, split=split))
  with pytest.raises(record_cache.BadCacheError, match="no split 'test'"):
    caches.config(mixed, split='test').make_eval_batches(**arguments)
  found = caches.config(mixed).make_eval_batches(**arguments)
  assert [next(iter(each)).keys() > {'encoder_input_tokens'}
          for each in found.values()] == [True, True]  # fmt: skip


def test_two_caches_of_one_task_are_refused_with_both_folders(
    text_cache, tmp_path
):
  caches.write(tmp_path, caches.texts(5))
  cfg = caches.config((str(text_cache), str(tmp_path)))
  with pytest.raises(ValueError, match="'letters' is in two caches") as error:
    caches.reader(cfg)
  assert str(text_cache) in str(error.value)
  assert str(tmp_path) in str(error.value)
  with pytest.raises(ValueError, match='names no folder'):
    caches.reader(caches.config(()))


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
