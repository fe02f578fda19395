# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of a task, and whether they are the model's."""

import types

import gin
import pytest

from t5wild.data import fingerprints
from t5wild.data import providers
from t5wild.data import synthetic
from t5wild.data import vocabularies


@pytest.fixture
def cfg(seqio):
  """Makes a config of a task with these features' vocabularies."""

  def make(**features):
    task = seqio.Task(
        'task',
        source=seqio.FunctionDataSource(lambda split, shuffle_files: None, []),
        output_features={
            name: seqio.Feature(vocabulary)
            for name, vocabulary in features.items()
        },
    )
    return types.SimpleNamespace(mixture_or_task_name=task, module=None)

  return make


def model(inputs, targets):
  return types.SimpleNamespace(
      input_vocabulary=inputs, output_vocabulary=targets
  )


def test_a_module_of_tasks_may_have_functions_for_gin(
    seqio, cfg, tmp_path, monkeypatch
):
  (tmp_path / 'late_tasks.py').write_text(
      'import gin\n@gin.configurable\ndef late_task_size(size=1):\n'
      '  return size\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  made = cfg(targets=seqio.ByteVocabulary(2))
  made.module = 'late_tasks'
  monkeypatch.setattr(gin.config, '_CONFIG_IS_LOCKED', True)  # as in a run
  assert providers.provider_of(made) is made.mixture_or_task_name
  assert gin.config_is_locked()


def test_inputs_and_targets_have_their_own_vocabularies(seqio, cfg):
  found = providers.get_vocabulary(
      cfg(inputs=seqio.ByteVocabulary(1), targets=seqio.ByteVocabulary(2))
  )
  assert [vocabulary.extra_ids for vocabulary in found] == [1, 2]


def test_one_vocabulary_stands_for_both_and_pass_through_does_not_count(
    seqio, cfg
):
  found = providers.get_vocabulary(
      cfg(
          targets=seqio.ByteVocabulary(2),
          scores=seqio.PassThroughVocabulary(5),
      )
  )
  assert found == (seqio.ByteVocabulary(2), seqio.ByteVocabulary(2))


def test_different_vocabularies_without_inputs_are_refused(seqio, cfg):
  made = cfg(targets=seqio.ByteVocabulary(2), other=seqio.ByteVocabulary(3))
  with pytest.raises(ValueError, match='other.*targets.*Give the features one'):
    providers.get_vocabulary(made)


def test_a_missing_vocabulary_file_is_refused(seqio, cfg):
  missing = seqio.SentencePieceVocabulary('/absent.model')
  with pytest.raises(FileNotFoundError, match='train-vocab'):
    providers.get_vocabulary(cfg(inputs=missing, targets=missing))


def test_a_missing_vocabulary_file_of_the_model_is_refused(seqio, cfg):
  there = seqio.ByteVocabulary(2)
  missing = seqio.SentencePieceVocabulary('/absent.model')
  for side in ((missing, there), (there, missing)):
    with pytest.raises(
        FileNotFoundError, match='(?s)/absent.model.*train-vocab'
    ):
      providers.verify_matching_vocabs(
          cfg(inputs=there, targets=there), model(*side)
      )


def test_a_missing_vocabulary_file_is_told_whoever_reads_it_first(seqio, cfg):
  there = seqio.ByteVocabulary(2)
  providers.get_vocabulary(cfg(targets=there))  # as a run begins
  missing = seqio.SentencePieceVocabulary('/absent.model', 100)
  for use in (
      lambda: missing.vocab_size,
      lambda: missing.encode('text'),
      lambda: missing.encode_tf('text'),
      lambda: fingerprints.describe_vocabulary(missing),
      lambda: seqio.SentencePieceVocabulary('/absent.model').decode([5]),
  ):
    with pytest.raises(
        FileNotFoundError, match='(?s)/absent.model.*Expected.*--vocab_dir'
    ):
      use()


def test_a_file_that_is_no_vocabulary_is_told_whoever_reads_it_first(
    seqio, cfg, tmp_path
):
  providers.get_vocabulary(cfg(targets=seqio.ByteVocabulary(2)))
  path = tmp_path / 'words.model'
  path.write_text('just some words')
  with pytest.raises(ValueError, match=f'{path}.*expected.*train-vocab'):
    _ = seqio.SentencePieceVocabulary(str(path)).vocab_size


def test_a_vocabulary_in_a_place_out_of_reach_is_told_with_the_mend(seqio, cfg):
  away = seqio.SentencePieceVocabulary('nowhere://bucket/cc_all.model')
  with pytest.raises(
      FileNotFoundError, match='(?s)nowhere.*expected.*Copy the file'
  ):
    providers.get_vocabulary(cfg(inputs=away, targets=away))


def test_a_config_of_no_task_has_no_vocabularies_to_differ():
  config = synthetic.SyntheticConfig(
      batch_size=4,
      task_feature_lengths={'inputs': 8, 'targets': 4},
      vocab_size=384,
  )
  providers.verify_matching_vocabs(config, model(None, None))


@pytest.mark.parametrize('ours', [False, True])
def test_matching_vocabularies_pass_whichever_library_they_are_of(
    seqio, cfg, ours
):
  vocabulary = seqio.ByteVocabulary(2)
  side = vocabularies.ByteVocabulary(2) if ours else seqio.ByteVocabulary(2)
  providers.verify_matching_vocabs(
      cfg(inputs=vocabulary, targets=vocabulary), model(side, side)
  )


def test_other_vocabularies_are_refused_with_both_sides(seqio, cfg):
  vocabulary = seqio.ByteVocabulary(2)
  with pytest.raises(ValueError, match='(?s)task:.*model:.*Set VOCABULARY'):
    providers.verify_matching_vocabs(
        cfg(inputs=vocabulary, targets=vocabulary),
        model(vocabulary, vocabularies.ByteVocabulary(3)),
    )


def test_folders_of_flags_reach_seqio(seqio, monkeypatch):
  called = []
  monkeypatch.setattr(
      seqio, 'set_tfds_data_dir_override', lambda *args: called.append(args)
  )
  monkeypatch.setattr(
      seqio, 'add_global_cache_dirs', lambda *args: called.append(args)
  )
  providers.set_data_dirs(tfds_data_dir='/tfds', cache_dirs=['/a', '/b'])
  providers.set_data_dirs(tfds_data_dir=None, cache_dirs=['/c'])
  assert called == [('/tfds',), (['/a', '/b'],), (['/c'],)]


@pytest.mark.parametrize('side', ['inputs', 'targets'])
def test_tokens_beyond_the_table_of_the_network_are_refused(seqio, cfg, side):
  small, large = seqio.ByteVocabulary(1), seqio.ByteVocabulary(125)
  both = {'inputs': small, 'targets': small, side: large}
  made = model(**both)
  providers.verify_matching_vocabs(cfg(**both), made)  # of unknown size
  for size, is_refused in ((383, True), (384, False), (512, False)):
    made.module = types.SimpleNamespace(
        config=types.SimpleNamespace(vocab_size=size)
    )
    if not is_refused:
      providers.verify_matching_vocabs(cfg(**both), made)
      continue
    with pytest.raises(
        ValueError, match=f'(?s)of the {side}.*384.*383.*vocab_size to 384'
    ):
      providers.verify_matching_vocabs(cfg(**both), made)
