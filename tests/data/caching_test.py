# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A cache holds what the task gives, by however many steps it was written."""

import functools
import re

import numpy as np
import pytest

from t5wild.data import caching
from t5wild.data import objectives
from t5wild.data import record_cache
from tests.data import caches

seqio = pytest.importorskip('seqio')

from t5wild.tasks import local_text  # noqa: E402 -- it needs seqio


def _write(provider, root, **changes):
  options = caching.CacheOptions(out=str(root), **changes)
  jobs = caching.plan_jobs(provider, options)
  for job in jobs:
    job.start()
    for index in range(job.plan.num_shards):
      job.write_shard(index)
  manifests = [job.finish() for job in jobs]
  caching.write_root(provider, options)
  return manifests


def _records(root, name, split='train'):
  folder = record_cache.split_folder(str(root), task=name, split=split)
  cache = record_cache.RecordCache(folder)
  return cache, cache.read(np.arange(len(cache)))


def _tokenized(task, split):
  """The documents of a task before its objective, as seqio gives them."""
  documents = seqio.Task(
      'tokenized',
      source=task.source,
      preprocessors=[objectives.tokenize_documents],
      output_features={'targets': task.output_features['targets']},
      shuffle_buffer_size=None,
  ).get_dataset(None, split, shuffle=False)
  return [example['targets'] for example in documents.as_numpy_iterator()]


def test_tokens_of_a_text_task_are_its_documents(text_task, tmp_path):
  manifests = _write(text_task, tmp_path, max_record_tokens=100)
  assert {manifest.content for manifest in manifests} == {'tokens'}
  for split in text_task.splits:
    cache, found = _records(tmp_path, text_task.name, split)
    documents, part = [], []
    for piece, is_last in zip(
        found.features['targets'].split(), found.is_last, strict=True
    ):
      part.append(piece)
      if is_last:
        documents.append(tuple(np.concatenate(part).tolist()))
        part = []
    expected = [tuple(each.tolist()) for each in _tokenized(text_task, split)]
    assert sorted(documents) == sorted(expected)
    assert cache.manifest.num_tokens == sum(map(len, expected))
    cache.verify()


def test_examples_are_those_that_the_task_gives(text_task, tmp_path):
  lengths = {'inputs': 64, 'targets': 32}
  _write(
      text_task,
      tmp_path,
      content='examples',
      splits=['train'],
      num_shards=1,
      task_feature_lengths=lengths,
      seed=3,
  )
  _, found = _records(tmp_path, text_task.name)
  expected = text_task.get_dataset(
      lengths, 'train', shuffle=False, seed=3, trim_output_features=False
  )
  for name in ('inputs', 'targets'):
    rows = found.features[name].split()
    wanted = [example[name] for example in expected.as_numpy_iterator()]
    for left, right in zip(rows, wanted, strict=True):
      np.testing.assert_array_equal(left, right)


def test_a_task_of_pairs_is_cached_as_examples_and_read(tmp_path):
  from tests.end_to_end import copy_task

  task = copy_task.copy_task()
  (manifest, _) = _write(task, tmp_path)
  assert manifest.content == 'examples'
  assert manifest.num_records == copy_task.NUM_EXAMPLES['train']
  cfg = caches.config(
      tmp_path,
      objective=None,
      task_feature_lengths={'inputs': 8, 'targets': 8},
      batch_size=16,
      pack=False,
  )
  found = caches.joined(caches.batches(caches.reader(cfg), 4))
  written = sorted(
      copy_task.VOCABULARY.decode(row.tolist())
      for row in found['decoder_target_tokens']
  )
  # 64 records are an epoch of 4 batches.
  assert written == sorted(copy_task.texts('train'))


def test_a_mixture_is_cached_with_its_rates(text_task, tmp_path):
  names = ('cached_first', 'cached_second')
  for name in names:
    seqio.TaskRegistry.add(
        name,
        source=text_task.source,
        preprocessors=text_task.preprocessors,
        output_features=text_task.output_features,
    )
  mixture = seqio.MixtureRegistry.add(
      'cached_both', [(names[0], 3.0), (names[1], 1.0)]
  )
  _write(mixture, tmp_path, splits=['train'])
  reader = caches.reader(caches.config(tmp_path, batch_size=8))
  sources = []
  for _ in range(40):
    sources += np.concatenate(reader.origins())[:, 0].tolist()
    next(reader)
  assert np.mean(sources) == pytest.approx(0.25, abs=0.05)


def test_reading_a_cache_gives_the_bits_of_the_numpy_core(text_task, tmp_path):
  """What is read is `make_examples` of a document with the epoch's key."""
  from t5wild.data import examples
  from t5wild.data import index_order

  _write(text_task, tmp_path)
  reader = caches.reader(caches.config(tmp_path, window_tokens=512))
  origins = np.concatenate(reader.origins())
  batch = next(reader)
  cache, found = _records(tmp_path, text_task.name)
  plan = objectives.plan_of(
      objectives.span_corruption,
      sequence_length={'inputs': 64, 'targets': 32},
      output_features=text_task.output_features,
  )
  key = index_order.make_key('records', 0, text_task.name, 'train')
  segments = [
      tokens[ids == number].tolist()
      for tokens, ids in zip(
          batch['encoder_input_tokens'], batch['encoder_segment_ids'],
          strict=True,
      )
      for number in range(1, ids.max() + 1)
  ]  # fmt: skip
  for (_, epoch, number), segment in zip(
      origins.tolist(), segments, strict=True
  ):
    document = found.features['targets'].split()[number]
    inputs, _ = examples.make_examples(
        [document],
        [(index_order.make_key(key, 'objective', epoch), number)],
        plan,
    )
    expected = [[*row.tolist(), 1] for row in inputs.split()]
    assert segment in expected


def test_shards_that_are_done_are_not_written_again(text_task, tmp_path):
  options = caching.CacheOptions(
      out=str(tmp_path), splits=['train'], num_shards=3
  )
  (job,) = caching.plan_jobs(text_task, options)
  job.start()
  for index in range(3):
    job.write_shard(index)
  whole = job.finish()
  places = [tmp_path / job.plan.folder / job.plan.name(i) for i in range(3)]
  (tmp_path / job.plan.folder / record_cache.MANIFEST).unlink()
  (tmp_path / job.plan.folder / f'{job.plan.name(1)}.json').unlink()
  before = [place.stat().st_mtime_ns for place in places]
  (again,) = caching.plan_jobs(text_task, options)
  again.start()
  for index in range(3):
    again.write_shard(index)
  after = [place.stat().st_mtime_ns for place in places]
  assert [b == a for b, a in zip(before, after, strict=True)] == [
      True, False, True
  ]
  assert again.finish() == whole


def test_a_folder_of_another_cache_is_refused(text_task, tmp_path):
  _write(text_task, tmp_path, splits=['train'])
  with pytest.raises(ValueError, match='holds another cache') as error:
    _write(text_task, tmp_path, splits=['train'], max_record_tokens=50)
  assert '50' in str(error.value)
  changed = seqio.Task(
      text_task.name,
      source=text_task.source,
      preprocessors=[
          functools.partial(seqio.preprocessors.tokenize, with_eos=False),
          *text_task.preprocessors[1:],
      ],
      output_features=text_task.output_features,
  )
  with pytest.raises(ValueError, match='task_fingerprint') as error:
    _write(changed, tmp_path, splits=['train'])
  assert 'only there: preprocessor: ' in str(error.value)
  assert 'only now:   preprocessor: seqio.preprocessors.tokenize(with_eos' in (
      str(error.value)
  )
  assert 'files' not in str(error.value)  # the same


def test_the_files_of_another_text_are_named_with_their_sizes(
    text_task, text_folder, tmp_path
):
  _write(text_task, tmp_path / 'cache', splits=['train'])
  (tmp_path / 'texts').mkdir()
  for name in ('a.txt', 'b.txt'):
    (tmp_path / 'texts' / name).write_text('some words\n' * 7)
  other = local_text.text_task(str(tmp_path / 'texts'), held_out_fraction=0.3)
  with pytest.raises(ValueError, match='holds another cache') as error:
    _write(other, tmp_path / 'cache', splits=['train'])
  text = str(error.value)
  assert re.search(r'files: there \d+ of [\d,]+ bytes, now 1 of 77 bytes', text)
  assert re.search(r'texts/[ab]\.txt: absent, now 77 bytes of', text)
  assert f'{text_folder}' in text


def test_another_objective_is_no_other_cache_of_tokens(text_task, tmp_path):
  first = _write(text_task, tmp_path, splits=['train'])
  other = seqio.Task(
      text_task.name,
      source=text_task.source,
      preprocessors=[
          objectives.tokenize_documents,
          functools.partial(objectives.span_corruption, noise_density=0.5),
          seqio.preprocessors.append_eos,
      ],
      output_features=text_task.output_features,
  )
  second = _write(other, tmp_path, splits=['train'])
  assert [each.fingerprint for each in first] == [
      each.fingerprint for each in second
  ]


def test_an_unknown_split_is_refused_with_those_there_are(text_task, tmp_path):
  with pytest.raises(ValueError, match='validation'):
    _write(text_task, tmp_path, splits=['test'])


def test_tokens_of_a_task_without_an_objective_are_refused(tmp_path):
  from tests.end_to_end import copy_task

  with pytest.raises(ValueError, match='--content=examples'):
    _write(copy_task.copy_task(), tmp_path, content='tokens')


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'out': 'ftp://server/cache'}, 'folder of this machine'),
        ({'content': 'text'}, '--content'),
        ({'num_shards': 0}, '--num_shards'),
    ],
)
def test_options_of_no_use_are_refused(changes, named):
  with pytest.raises(ValueError, match=named):
    caching.CacheOptions(**{'out': 'x', **changes})


_LENGTHS = {'inputs': 64, 'targets': 64}
# What each objective is for, and what reads it.
_MODELS = {
    'span_corruption': caches.ENCODER_DECODER,
    'iid_denoising': caches.ENCODER_DECODER,
    'ul2': caches.ENCODER_DECODER,
    'prefix_lm': caches.ENCODER_DECODER,
    'lm': caches.DECODER,
}


def _lengths_of(task) -> dict[str, int]:
  return {name: _LENGTHS[name] for name in task.output_features}


@pytest.mark.slow
def test_tokens_are_the_same_whichever_objective_they_are_for_and_read_by_it(
    text_folder, tmp_path
):
  from t5wild.tasks import local_text

  written = {}
  for name, model in _MODELS.items():
    task = local_text.text_task(
        str(text_folder), name='texts', objective=name, held_out_fraction=0.3
    )
    (manifest,) = _write(task, tmp_path / name, splits=['train'])
    assert manifest.content == 'tokens'
    written[name] = [shard.sha256 for shard in manifest.shards]
    objective = getattr(objectives, 'causal_lm' if name == 'lm' else name)
    reader = caches.reader(
        caches.config(
            tmp_path / name,
            objective=objective,
            task_feature_lengths=_lengths_of(task),
            batch_size=4,
        ),
        feature_converter_cls=model,
    )
    for batch in caches.batches(reader, 2):
      assert batch['decoder_loss_weights'].sum() > 0
  assert len({tuple(each) for each in written.values()}) == 1


@pytest.mark.slow
@pytest.mark.parametrize('objective', _MODELS)
def test_examples_of_every_objective_are_those_that_its_task_gives(
    objective, text_folder, tmp_path
):
  from t5wild.tasks import local_text

  task = local_text.text_task(
      str(text_folder), name='texts', objective=objective, held_out_fraction=0.3
  )
  _assert_cached_as_given(task, tmp_path)
  caches.batches(
      caches.reader(
          caches.config(
              tmp_path,
              objective=None,
              task_feature_lengths=_lengths_of(task),
              batch_size=4,
          ),
          feature_converter_cls=_MODELS[objective],
      ),
      2,
  )


def _assert_cached_as_given(task, root) -> None:
  """Caches a task's examples, and holds them against what seqio gives."""
  lengths = _lengths_of(task)
  _write(
      task, root, content='examples', splits=['train'], num_shards=1,
      task_feature_lengths=lengths, seed=5,
  )  # fmt: skip
  _, found = _records(root, task.name)
  expected = list(
      task.get_dataset(
          lengths, 'train', shuffle=False, seed=5, trim_output_features=False
      ).as_numpy_iterator()
  )
  for name in lengths:
    rows = found.features[name].split()
    for left, right in zip(rows, expected, strict=True):
      np.testing.assert_array_equal(left, right[name])


def test_a_random_preprocessor_of_seqio_is_cached_with_what_it_drew(
    text_task, tmp_path
):
  @seqio.map_over_dataset(num_seeds=1)
  def shuffled(example, seed):
    import tensorflow as tf

    order = tf.random.experimental.stateless_shuffle(
        example['targets'], seed
    )
    return {'targets': order}

  task = seqio.Task(
      'shuffled_tokens',
      source=text_task.source,
      preprocessors=[
          objectives.tokenize_documents,
          shuffled,
          seqio.preprocessors.append_eos,
      ],
      output_features={'targets': text_task.output_features['targets']},
      shuffle_buffer_size=None,
  )
  _assert_cached_as_given(task, tmp_path)
  manifests = [
      _write(
          task, tmp_path / name, splits=['train'], seed=seed,
          num_shards=1,
      )
      for name, seed in (('a', 5), ('b', 5), ('c', 6))
  ]  # fmt: skip
  first, again, other = (each[0].shards[0].sha256 for each in manifests)
  assert first == again != other
