# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A trained vocabulary has T5's ids and serves a task."""

import pytest

from t5wild.data import train_vocabulary

sentencepiece = pytest.importorskip('sentencepiece')


@pytest.fixture(scope='module')
def texts(tmp_path_factory):
  folder = tmp_path_factory.mktemp('texts')
  for index in range(3):
    lines = (f'the quick brown fox number {n} jumps' for n in range(200))
    (folder / f'{index}.txt').write_text('\n'.join(lines))
  return folder


def train(texts, output, *more):
  return train_vocabulary.main(
      ['--input', str(texts), '--output', str(output), '--vocab_size', '50']
      + ['--num_threads', '1', *more]
  )


@pytest.mark.parametrize('kind', ['unigram', 'bpe'])
def test_special_ids_are_those_of_t5(texts, tmp_path, kind, capfd):
  output = tmp_path / 'new' / 'small.model'
  assert train(texts, output, '--model_type', kind) == 0
  assert 'local_text.text_task.vocabulary' in capfd.readouterr().out
  model = sentencepiece.SentencePieceProcessor(model_file=str(output))
  ids = model.pad_id(), model.eos_id(), model.unk_id(), model.bos_id()
  assert ids == (0, 1, 2, -1)
  assert model.vocab_size() == 50
  text = 'the quick brown fox'
  assert model.decode(model.encode(text)) == text


def test_a_task_trains_on_a_trained_vocabulary(texts, tmp_path, seqio):
  from t5wild.tasks import local_text

  output = tmp_path / 'small.model'
  assert train(texts, output) == 0
  task = local_text.text_task(str(texts), vocabulary=str(output))
  vocabulary = task.output_features['targets'].vocabulary
  assert vocabulary.vocab_size == 150
  lengths = {'inputs': 32, 'targets': 16}
  dataset = task.get_dataset(lengths, 'train', shuffle=False, seed=0)
  example = next(dataset.as_numpy_iterator())
  assert example['inputs'].size == 32
  assert example['targets'][0] == 149
  assert 'fox' in vocabulary.decode(example['inputs'].tolist())


@pytest.mark.parametrize(
    ('more', 'message'),
    [
        (['--vocab_size', '90000'], 'Lower or raise --vocab_size'),
        (['--input', '/absent'], 'Correct the path'),
        (['--vocab_size', '3'], 'vocab_size is 3: expected more than the 3'),
        (['--output', 'name.vocab'], r'ends in .model'),
        (['--output', '/proc/x/name.model'], 'cannot be written'),
        (['--output', '/proc/name.model'], 'cannot be written'),
    ],
)
def test_what_cannot_be_trained_is_told_with_the_mend(
    texts, tmp_path, more, message, capfd
):
  assert train(texts, tmp_path / 'x.model', *more) == 2
  said = capfd.readouterr().err
  assert message in said
  assert 'expected' in said.lower()


def test_text_of_blank_lines_is_told(tmp_path, capfd):
  (tmp_path / 'blank.txt').write_text('\n \n')
  assert train(tmp_path / 'blank.txt', tmp_path / 'x.model') == 2
  assert 'no line with text' in capfd.readouterr().err


def test_a_model_that_is_there_is_kept_until_its_successor_is_whole(
    texts, tmp_path, capfd
):
  output = tmp_path / 'x.model'
  output.write_text('old')
  assert train(texts, output) == 2
  assert 'is there already' in capfd.readouterr().err
  assert train(texts, output, '--overwrite', '--vocab_size', '90000') == 2
  assert output.read_text() == 'old'
  assert train(texts, output, '--overwrite') == 0
  assert sorted(path.name for path in tmp_path.iterdir()) == [
      'x.model', 'x.vocab'
  ]


def test_corrupt_lines_are_told_or_counted(texts, tmp_path, capfd):
  bad = tmp_path / 'bad.txt'
  bad.write_bytes((texts / '0.txt').read_bytes() + b'\n\xff\n')
  assert train(bad, tmp_path / 'x.model') == 2
  said = capfd.readouterr().err
  assert 'line 201 is corrupt' in said
  assert said.count('\n') == 1
  assert train(bad, tmp_path / 'x.model', '--on_corrupt', 'skip') == 0
  assert '1 corrupt lines were skipped' in capfd.readouterr().err
