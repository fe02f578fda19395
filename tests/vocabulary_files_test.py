# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A vocabulary in a bucket is found in a local folder, or refused at once."""

import re
import subprocess
import sys
import threading
import time

import pytest

from t5wild import reachability
from t5wild import vocabulary_files

_T5 = 'gs://t5-data/vocabs/cc_all.32000/sentencepiece.model'
_T5_WITH_SENTINELS = (
    'gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model'
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """A folder of vocabularies, and no network."""
  monkeypatch.setenv(vocabulary_files.VARIABLE, str(tmp_path))
  monkeypatch.setattr(reachability, 'answers', lambda url: False)
  return tmp_path


@pytest.mark.parametrize(
    'place',
    [
        't5-data/vocabs/cc_all.32000/sentencepiece.model',
        'cc_all.32000/sentencepiece.model',
        'sentencepiece.model',
        'cc_all.32000.100extra/sentencepiece.model',
    ],
)
def test_a_path_is_found_by_its_ends(folder, place):
  (folder / place).parent.mkdir(parents=True, exist_ok=True)
  (folder / place).write_bytes(b'a model')
  found = vocabulary_files.find(_T5, 100)
  assert found == vocabulary_files.Found(str(folder / place), 100)


@pytest.mark.parametrize('in_file', [0, 100])
@pytest.mark.parametrize(
    ('path', 'extra_ids'), [(_T5, 100), (_T5_WITH_SENTINELS, 0)]
)
def test_either_file_of_t5_gives_a_hundred_sentinels(
    folder, in_file, path, extra_ids
):
  sentinels = b''.join(b'<extra_id_%d>' % i for i in range(in_file))
  (folder / 'sentencepiece.model').write_bytes(b'a model' + sentinels)
  found = vocabulary_files.find(path, extra_ids)
  assert found.extra_ids + in_file == 100


def test_the_longest_end_wins(folder):
  for place in ('a/b/x.model', 'b/x.model', 'x.model'):
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).touch()
  assert vocabulary_files.find('gs://bucket/a/b/x.model').path == str(
      folder / 'a/b/x.model'
  )


def test_a_local_file_is_itself(folder, tmp_path_factory):
  own = tmp_path_factory.mktemp('own') / 'x.model'
  own.touch()
  (folder / 'x.model').touch()
  assert vocabulary_files.find(str(own), 3) == (
      vocabulary_files.Found(str(own), 3)
  )


@pytest.mark.parametrize('has_folder', [False, True])
def test_a_local_file_that_is_not_there_is_told_with_the_command(
    tmp_path, monkeypatch, has_folder
):
  monkeypatch.delenv(vocabulary_files.VARIABLE, raising=False)
  if has_folder:
    monkeypatch.setenv(vocabulary_files.VARIABLE, str(tmp_path))
  with pytest.raises(
      vocabulary_files.UnreachableVocabularyError,
      match="(?s)'/absent/x.model'.*no such file.*Expected.*train-vocab",
  ) as raised:
    vocabulary_files.find('/absent/x.model', 3)
  assert (f'  {tmp_path}/x.model\n' in str(raised.value)) == has_folder


def test_a_file_that_is_no_vocabulary_is_refused_with_the_command(tmp_path):
  pytest.importorskip('sentencepiece')
  path = tmp_path / 'words.model'
  path.write_text('just some words')
  for ask in (vocabulary_files.check, vocabulary_files.local_file):
    with pytest.raises(ValueError, match='words.model.*expected.*train-vocab'):
      ask(path)


def test_what_lies_in_a_bucket_is_no_local_file(monkeypatch):
  monkeypatch.delenv(vocabulary_files.VARIABLE, raising=False)
  monkeypatch.setattr(reachability, 'answers', lambda url: True)
  assert vocabulary_files.check(_T5).path == _T5
  with pytest.raises(FileNotFoundError, match=f'{_T5}.*expected.*--vocab_dir'):
    vocabulary_files.local_file(_T5)


def test_a_path_cannot_leave_the_folder(folder):
  assert all(
      place.startswith(f'{folder}/')
      for place in vocabulary_files.places('gs://b/../../../etc/passwd')
  )
  assert not any('..' in p for p in vocabulary_files.places('gs://b/../x'))


def test_what_is_nowhere_is_told_with_every_path_that_was_tried(folder):
  with pytest.raises(
      vocabulary_files.UnreachableVocabularyError, match='--vocab_dir'
  ) as raised:
    vocabulary_files.find(_T5_WITH_SENTINELS)
  message = str(raised.value)
  for place in (_T5_WITH_SENTINELS, *vocabulary_files.places(_T5)):
    assert f'  {place}\n' in message
  assert 'not reached in 5 s' in message


def test_a_bucket_that_answers_is_left_to_who_reads_it(monkeypatch):
  monkeypatch.delenv(vocabulary_files.VARIABLE, raising=False)
  monkeypatch.setattr(reachability, 'answers', lambda url: True)
  assert vocabulary_files.find(_T5, 7) == vocabulary_files.Found(_T5, 7)


def test_a_folder_that_is_none_is_refused(tmp_path):
  with pytest.raises(ValueError, match=re.escape(str(tmp_path / 'absent'))):
    vocabulary_files.set_folder(str(tmp_path / 'absent'))


def test_a_server_that_is_silent_is_given_up(monkeypatch):
  given_up = threading.Event()

  def urlopen(*args, **kwargs):
    given_up.wait(60)
    raise OSError('silent')

  monkeypatch.setattr(reachability.urllib.request, 'urlopen', urlopen)
  monkeypatch.setattr(reachability, 'TIMEOUT_SECONDS', 0.1)
  start = time.monotonic()
  assert not reachability.answers.__wrapped__('https://silent.invalid/')
  assert time.monotonic() - start < 2
  given_up.set()


def test_paths_without_a_known_server_are_nobodys_to_refuse():
  assert reachability.is_reachable('s3://bucket/x')
  assert reachability.is_reachable('/a/local/path')


@pytest.mark.slow  # imports seqio in a process of its own
@pytest.mark.parametrize('first', ['seqio', 't5wild.vocabulary_files'])
def test_seqios_own_vocabularies_look_in_the_folder(tmp_path, first):
  code = f"""
import {first}
import os, seqio, sentencepiece
from t5wild import vocabulary_files
vocabulary_files.install()
folder = {str(tmp_path)!r}
model = os.path.join(os.path.dirname(seqio.__file__), 'test_data',
                     'sentencepiece', 'sentencepiece.model')
os.symlink(model, os.path.join(folder, 'sentencepiece.model'))
vocabulary_files.set_folder(folder)
plain = seqio.SentencePieceVocabulary({_T5!r}, 100)
other = seqio.SentencePieceVocabulary({_T5_WITH_SENTINELS!r})
from t5wild.data import vocabularies
pieces = sentencepiece.SentencePieceProcessor(model_file=model)
size = pieces.get_piece_size() + 100
assert plain.vocab_size == other.vocab_size == size, plain.vocab_size
assert vocabularies.are_equal(plain, other)
assert not vocabularies.are_equal(plain, seqio.SentencePieceVocabulary(model))
print(plain.decode(plain.encode('the <extra_id_0>')))
"""
  if first != 'seqio':  # then seqio is changed as it is imported
    code = code.replace('import os, seqio,', (
        'from t5wild import vocabulary_files; vocabulary_files.install()\n'
        'import os, seqio,'
    ))
  done = subprocess.run(
      [sys.executable, '-c', code], capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr[-2000:]
