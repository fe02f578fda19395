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
        (['--vocab_size', '90000'], 'Lower --vocab_size'),
        (['--input', '/absent'], 'Correct the path'),
        (['--output', 'name.vocab'], r'ends in .model'),
    ],
)
def test_what_cannot_be_trained_is_told_with_the_mend(
    texts, tmp_path, more, message, capfd
):
  assert train(texts, tmp_path / 'x.model', *more) == 1
  assert message in capfd.readouterr().err


def test_corrupt_lines_are_told_or_counted(texts, tmp_path, capfd):
  bad = tmp_path / 'bad.txt'
  bad.write_bytes((texts / '0.txt').read_bytes() + b'\n\xff\n')
  assert train(bad, tmp_path / 'x.model') == 1
  assert 'line 201 is corrupt' in capfd.readouterr().err
  assert train(bad, tmp_path / 'x.model', '--on_corrupt', 'skip') == 0
  assert '1 corrupt lines were skipped' in capfd.readouterr().err
