# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A cache is held against the live task that stands in the recipe beside it."""

import functools
import logging
import types

import pytest

from t5wild.data import caching
from t5wild.data import datasets
from t5wild.data import live_comparison
from t5wild.data import objectives

seqio = pytest.importorskip('seqio')

_LENGTHS = {'inputs': 64, 'targets': 32}


def _cached(task, **changes):
  """What a cache of the task says of itself, without its records."""
  options = caching.CacheOptions(out='there', splits=['train'], **changes)
  (job,) = caching.plan_jobs(task, options)
  return [types.SimpleNamespace(folder='there', manifest=job.manifest)]


def _check(
    caches,
    task,
    *,
    objective=objectives.span_corruption,
    others_may_join=False,
    **lengths,
):
  live_comparison.check_caches(
      caches,
      datasets.DatasetConfig(
          mixture_or_task_name=task,
          task_feature_lengths=_LENGTHS,
          split='train',
          batch_size=8,
          shuffle=True,
          seed=0,
      ),
      objective=objective,
      lengths={**_LENGTHS, **lengths},
      others_may_join=others_may_join,
  )


def _changed(task, *, preprocessors=None, source=None, vocabulary=None):
  features = dict(task.output_features)
  if vocabulary is not None:
    features = {
        name: seqio.Feature(vocabulary, add_eos=True) for name in features
    }
  return seqio.Task(
      task.name,
      source=source or task.source,
      preprocessors=preprocessors or list(task.preprocessors),
      output_features=features,
      shuffle_buffer_size=None,
  )


@pytest.fixture(scope='module')
def tokens(text_task):
  return _cached(text_task)


def test_the_task_that_was_cached_passes_in_any_lengths(text_task, tokens):
  _check(tokens, text_task)
  _check(tokens, text_task, inputs=512)


def test_another_vocabulary_is_refused_with_both_fingerprints(
    text_task, tokens
):
  other = _changed(text_task, vocabulary=seqio.ByteVocabulary(extra_ids=7))
  with pytest.raises(ValueError, match='another version') as error:
    _check(tokens, other)
  text = str(error.value)
  cached, live = (
      line.split('fingerprint ')[1]
      for line in text.splitlines()
      if 'fingerprint' in line
  )
  assert cached != live
  assert 'features' in text
  assert "on_other_task = 'ignore'" in text


def test_another_way_to_make_documents_is_refused(text_task, tokens):
  def lowered(dataset):
    return dataset

  first, *rest = text_task.preprocessors
  other = _changed(text_task, preprocessors=[lowered, first, *rest])
  with pytest.raises(ValueError, match='lowered'):
    _check(tokens, other)


def test_another_source_is_refused(text_task, tokens):
  def read(split, shuffle_files, seed=None):
    raise NotImplementedError(split, shuffle_files, seed)

  source = seqio.FunctionDataSource(read, splits=['train'])
  with pytest.raises(ValueError, match='FunctionDataSource'):
    _check(tokens, _changed(text_task, source=source))


def test_a_task_of_another_name_is_refused(text_task, tokens):
  other = _named(text_task, 'another')
  with pytest.raises(ValueError, match=r"live task .* of \['another'\]"):
    _check(tokens, other)


def _named(task, name):
  return seqio.Task(
      name,
      source=task.source,
      preprocessors=list(task.preprocessors),
      output_features=task.output_features,
      shuffle_buffer_size=None,
  )


def test_a_task_of_another_cache_may_join_that_of_the_recipe(
    text_task, tokens, caplog
):
  joined = _cached(_named(text_task, 'joined'))
  with pytest.raises(ValueError, match='name both folders in CACHE_DIR'):
    _check([*tokens, *joined], text_task)
  with caplog.at_level(logging.INFO):
    _check([*tokens, *joined], text_task, others_may_join=True)
  assert 'Read beside the task of the recipe' in caplog.text
  # What is of the recipe is held against it all the same.
  changed = _changed(text_task, vocabulary=seqio.ByteVocabulary(extra_ids=7))
  with pytest.raises(ValueError, match='another version'):
    _check([*tokens, *joined], changed, others_may_join=True)
  with pytest.raises(ValueError, match='expected one of them at least'):
    _check(joined, text_task, others_may_join=True)


def test_examples_are_refused_in_other_lengths_than_they_were_cut_to(
    text_task
):
  cached = _cached(
      text_task, content='examples', task_feature_lengths=_LENGTHS
  )
  _check(cached, text_task, objective=None)
  with pytest.raises(ValueError, match='"targets": 16') as error:
    _check(cached, text_task, objective=None, targets=16)
  assert '"targets": 32' in str(error.value)


def test_another_objective_than_the_tasks_is_told(text_task, tokens, caplog):
  span = functools.partial(objectives.span_corruption, noise_density=0.5)
  with caplog.at_level(logging.WARNING):
    _check(tokens, text_task, objective=span)
    assert not caplog.records
    _check(tokens, text_task, objective=objectives.causal_lm)
  assert 'causal_lm' in caplog.text
  assert 'span_corruption' in caplog.text


def test_a_task_that_is_not_on_this_machine_is_passed_over(tokens, caplog):
  with caplog.at_level(logging.INFO):
    _check(tokens, 'a_task_of_another_machine')
  assert 'cannot be made here' in caplog.text


def test_a_recipe_without_live_data_has_none():
  assert live_comparison.recipe_data('a scope that nobody bound') is None
