# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The tokenizer that goes with an export gives our tokens."""

import json
import types

import pytest

from t5wild.checkpoints import hf_tokenizers
from t5wild.data import vocabularies

TEXTS = (
    'def f(self):', 'a  b   c', '  lead', 'trail  ', '\ttab x', 'x\ny', '',
    'naïve ﬁ ½ Ⅷ', '日本語 text', 'é e\u0301', 'one <extra_id_0>',
)  # fmt: skip


def _write(folder, vocabulary):
  files, told = hf_tokenizers.make(vocabulary)
  folder.mkdir()
  for name, content in files.items():
    (folder / name).write_bytes(content)
  (folder / 'config.json').write_text('{"model_type": "t5"}')
  return told


def _assert_same_tokens(folder, vocabulary):
  transformers = pytest.importorskip(
      'transformers', reason='pip install t5wild[hf]'
  )
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  assert len(theirs) == vocabulary.vocab_size
  assert theirs.eos_token_id == vocabulary.eos_id
  assert theirs.pad_token_id == vocabulary.pad_id
  for text in TEXTS:
    ours = vocabularies.encode_as_written(text, vocabulary=vocabulary)
    assert theirs(text, add_special_tokens=False).input_ids == ours, text
    assert theirs(text).input_ids == [*ours, vocabulary.eos_id], text


@pytest.mark.parametrize('extra_ids', [0, 100, 125])
def test_bytes_give_our_tokens_and_sentinels(tmp_path, extra_ids):
  vocabulary = vocabularies.ByteVocabulary(extra_ids=extra_ids)
  assert _write(tmp_path / 'm', vocabulary) == 'a ByT5Tokenizer'
  config = json.loads((tmp_path / 'm' / hf_tokenizers.CONFIG).read_text())
  names = {k: v['content'] for k, v in config['added_tokens_decoder'].items()}
  assert names['1'] == '</s>'
  if extra_ids:  # The first sentinel is the last token.
    assert names[str(vocabulary.vocab_size - 1)] == '<extra_id_0>'
    _assert_same_tokens(tmp_path / 'm', vocabulary)


def _train(folder, model_type):
  seqio = pytest.importorskip('seqio', reason='pip install seqio')
  spm = pytest.importorskip('sentencepiece', reason='comes with seqio')
  words = [a + b for a in ('self', 'text', 'name') for b in 'abcdefghijklmnop']
  lines = [f'def {word}(x): return {word} + one, two' for word in words] * 4
  spm.SentencePieceTrainer.train(
      sentence_iterator=iter(lines), model_prefix=str(folder / 'm'),
      vocab_size=70, model_type=model_type, pad_id=0, eos_id=1, unk_id=2,
      bos_id=-1, minloglevel=2,
  )  # fmt: skip
  return seqio.SentencePieceVocabulary(str(folder / 'm.model'), extra_ids=100)


@pytest.mark.slow  # Imports seqio.
def test_sentencepiece_gives_our_tokens(tmp_path):
  vocabulary = _train(tmp_path, 'unigram')
  assert _write(tmp_path / 'm', vocabulary) == 'a T5Tokenizer'
  assert (tmp_path / 'm' / hf_tokenizers.SENTENCEPIECE).exists()
  _assert_same_tokens(tmp_path / 'm', vocabulary)


@pytest.mark.slow
def test_tokenizer_that_would_differ_is_not_written(tmp_path):
  files, told = hf_tokenizers.make(_train(tmp_path, 'bpe'))
  assert not files
  assert 'no unigram model' in told
  files, told = hf_tokenizers.make(types.SimpleNamespace())
  assert not files
  assert 'SimpleNamespace' in told


def test_copied_are_tokenizer_files_alone_and_no_names_of_programs(tmp_path):
  for name in ('spiece.model', 'tokenizer.json', 'modeling.py', 'a.bin'):
    (tmp_path / name).write_bytes(b'{}')
  (tmp_path / hf_tokenizers.CONFIG).write_text(
      '{"auto_map": {"AutoTokenizer": "x.Y"}, "eos_token": "</s>"}'
  )
  files = hf_tokenizers.copy(tmp_path)
  assert files.keys() == {
      'spiece.model', 'tokenizer.json', 'tokenizer_config.json',
  }  # fmt: skip
  assert json.loads(files[hf_tokenizers.CONFIG]) == {'eos_token': '</s>'}
