# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Objectives seen by seqio: the bits of the core, features, refusals."""

import functools

import numpy as np
import pytest

from t5wild.data import examples
from t5wild.data import language_modelling
from t5wild.data import objectives

LENGTHS = {'inputs': 40, 'targets': 30}
OBJECTIVES = {
    'span_corruption': functools.partial(
        objectives.span_corruption, noise_density=0.3
    ),
    'iid_denoising': objectives.iid_denoising,
    'prefix_lm': objectives.prefix_lm,
    'fill_in_the_middle': objectives.fill_in_the_middle,
    'ul2': objectives.ul2,
}


def features(seqio, names=('inputs', 'targets'), *, extra_ids=125, eos=True):
  vocabulary = seqio.ByteVocabulary(extra_ids)
  return {
      name: seqio.Feature(vocabulary=vocabulary, add_eos=eos) for name in names
  }


def texts(sizes=(100, 3, 250, 40, 0, 1, 77)):
  return [
      np.random.default_rng(size).integers(3, 259, size, np.int32)
      for size in sizes
  ]


def dataset_of(seqio, objective, documents, *, lengths=LENGTHS, seed=3, **kw):
  tf = pytest.importorskip('tensorflow')
  dataset = tf.data.Dataset.from_generator(
      lambda: ({'targets': document} for document in documents),
      output_signature={'targets': tf.TensorSpec([None], tf.int32)},
  )
  with seqio.utils.map_seed_manager(seed):
    return objective(dataset, lengths, features(seqio, **kw))


def found(*arguments, **keywords):
  dataset = dataset_of(*arguments, **keywords)
  return list(dataset.as_numpy_iterator())


@pytest.mark.parametrize('name', OBJECTIVES)
def test_the_wrapper_gives_the_bits_of_the_core(seqio, name):
  plan = objectives.plan_of(
      OBJECTIVES[name],
      sequence_length=LENGTHS,
      output_features=features(seqio),
  )
  documents = texts()
  made = found(seqio, OBJECTIVES[name], documents)
  keys = _seqio_keys(seqio, len(documents), seed=3)
  inputs, targets = examples.make_examples(documents, keys, plan)
  assert len(made) == inputs.lengths.size > 5
  for example, row, target in zip(
      made, inputs.split(), targets.split(), strict=True
  ):
    assert example['inputs'].dtype == example['targets'].dtype == np.int32
    np.testing.assert_array_equal(example['inputs'], row)
    np.testing.assert_array_equal(example['targets'], target)


def _seqio_keys(seqio, count, *, seed):
  """The keys that seqio hands to the first random map of a task."""
  tf = pytest.importorskip('tensorflow')

  @seqio.map_over_dataset(num_seeds=1)
  def keys(example, seed):
    del example
    return seed

  with seqio.utils.map_seed_manager(seed):
    dataset = keys(tf.data.Dataset.range(count))
  return [tuple(int(x) for x in key) for key in dataset.as_numpy_iterator()]


@pytest.mark.parametrize('name', OBJECTIVES)
def test_examples_fit_the_lengths_with_an_end_of_sequence_each(seqio, name):
  made = found(seqio, OBJECTIVES[name], texts())
  assert max(example['inputs'].size for example in made) <= 39
  assert max(example['targets'].size for example in made) <= 29


@pytest.mark.parametrize('name', OBJECTIVES)
def test_a_task_with_targets_only_gets_both_in_one(seqio, name):
  made = found(
      seqio, OBJECTIVES[name], texts(), lengths={'targets': 50},
      names=('targets',),
  )  # fmt: skip
  assert {tuple(example) for example in made} == {('targets',)}
  assert 40 <= max(example['targets'].size for example in made) <= 49


@pytest.mark.parametrize('name', OBJECTIVES)
def test_the_seed_decides_all(seqio, name):
  first, again, other = (
      [
          {key: value.tolist() for key, value in example.items()}
          for example in found(seqio, OBJECTIVES[name], texts(), seed=seed)
      ]
      for seed in (3, 3, 4)
  )
  assert first == again != other


def causal(seqio, documents, **keywords):
  made = found(
      seqio, objectives.causal_lm, documents, lengths={'targets': 10},
      names=('targets',), **keywords,
  )  # fmt: skip
  return [example['targets'].tolist() for example in made]


def test_a_causal_lm_marks_the_end_of_documents_or_leaves_room_in_chunks(seqio):
  document = np.arange(3, 22, dtype=np.int32)  # 19 tokens
  tokens = document.tolist()
  assert causal(seqio, [document], eos=False) == [
      tokens[:10], [*tokens[10:], 1]
  ]
  assert causal(seqio, [document]) == [tokens[:9], tokens[9:18], tokens[18:]]


def test_a_causal_lm_with_inputs_is_refused(seqio):
  with pytest.raises(ValueError, match=r"'inputs', 'targets'.*only.*features"):
    dataset_of(seqio, objectives.causal_lm, texts())


def test_a_prefix_lm_split_by_lengths_fills_both_exactly(seqio):
  objective = functools.partial(objectives.prefix_lm, split='lengths')
  made = found(seqio, objective, texts((680,)))
  assert len(made) == 10
  sizes = {(x['inputs'].size, x['targets'].size) for x in made}
  assert sizes == {(39, 29)}


@pytest.mark.parametrize('split', ['half', (0.1,), 'lengths'])
def test_a_split_that_is_none_is_refused(seqio, split):
  objective = functools.partial(objectives.prefix_lm, split=split)
  with pytest.raises(ValueError, match='split is.*expected.*Set'):
    dataset_of(
        seqio, objective, texts(), lengths={'targets': 9}, names=('targets',)
    )


def test_the_middle_is_moved_at_the_rate_and_in_the_orders_asked_for(seqio):
  document = np.random.default_rng(0).integers(3, 259, 60_000, np.int32)
  objective = functools.partial(
      objectives.fill_in_the_middle, rate=0.6, spm_rate=0.25
  )
  made = found(
      seqio, objective, [document], lengths={'targets': 21}, names=('targets',)
  )
  rows = [example['targets'] for example in made]
  marks = (383, 382, 381)
  moved = [row for row in rows if row[0] == marks[0]]
  spm = [row for row in moved if row[1] == marks[1]]
  count = len(rows)
  assert abs(len(moved) - 0.6 * count) < 5 * (count * 0.24) ** 0.5
  # A twentieth of the rest have an empty prefix, and look the same.
  share = 0.25 + 0.75 * 2 / 18
  assert abs(len(spm) - share * len(moved)) < 0.04 * len(moved)
  joined = np.concatenate(
      [language_modelling.put_middle_back(row, marks=marks) for row in rows]
  )
  np.testing.assert_array_equal(joined, document[: joined.size])


def test_marks_are_refused_that_the_vocabulary_has_not(seqio):
  fim = objectives.fill_in_the_middle
  with pytest.raises(ValueError, match=r'2 sentinels.*at least 3.*mark_ids'):
    dataset_of(seqio, fim, texts(), extra_ids=2)
  for marks in ((1, 2), (5, 5, 6), (1, 2, 999)):
    objective = functools.partial(fim, mark_ids=marks)
    with pytest.raises(ValueError, match='mark_ids is.*three different ids'):
      dataset_of(seqio, objective, texts())
  dataset_of(seqio, functools.partial(fim, mark_ids=(5, 6, 7)), texts())
  with pytest.raises(ValueError, match=r'rate is -1.*0 to 1.*Set'):
    dataset_of(seqio, functools.partial(fim, rate=-1), texts())


@pytest.mark.parametrize(
    ('objective', 'match'),
    [
        (objectives.span_corruption, '1 sentinels.*at least 2.*extra_ids'),
        (objectives.iid_denoising, '1 sentinels.*at least 6.*extra_ids'),
        (objectives.ul2, r'1 sentinels.*at least 3.*modes.*extra_ids'),
    ],
)
def test_a_vocabulary_without_the_sentinels_is_refused(seqio, objective, match):
  with pytest.raises(ValueError, match=match):
    dataset_of(seqio, objective, texts(), extra_ids=1)


@pytest.mark.parametrize('name', OBJECTIVES)
def test_lengths_that_truncate_everything_are_refused(seqio, name):
  # A prefix LM makes an example even of one token and one more.
  least = 1 if name == 'prefix_lm' else 2
  with pytest.raises(ValueError, match='TASK_FEATURE_LENGTHS'):
    dataset_of(
        seqio,
        OBJECTIVES[name],
        texts(),
        lengths={'inputs': least, 'targets': 2},
    )
