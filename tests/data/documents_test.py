# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Documents of text, JSON lines, gzip and Parquet; corrupt lines."""

import gzip
import json

import hypothesis
from hypothesis import strategies
import pytest

from t5wild.data import documents
from t5wild.data import text_files


def pieces(path):
  return documents.pieces_of(text_files.find_text_files(path))


def read(path, **options):
  reader = documents.DocumentReader(**options)
  return [text for piece in pieces(path) for text in reader.read(piece)]


def records(*texts):
  return ''.join(json.dumps({'text': text}) + '\n' for text in texts).encode()


def test_a_text_file_is_one_document(tmp_path):
  (tmp_path / 'a.txt').write_text('one\n\ntwö\n')
  assert read(tmp_path) == ['one\n\ntwö\n'.encode()]


def test_json_lines_are_a_document_each_and_blank_ones_none(tmp_path):
  path = tmp_path / 'a.jsonl'
  path.write_bytes(records('one\n', 'zwei ü') + b'\n' + records('', '3'))
  assert read(tmp_path) == [b'one\n', 'zwei ü'.encode(), b'3']


def test_gzip_reads_as_what_it_compresses(tmp_path):
  (tmp_path / 'a.jsonl.gz').write_bytes(gzip.compress(records('a', 'b')))
  (tmp_path / 'b.txt.gz').write_bytes(gzip.compress(b'text'))
  assert read(tmp_path) == [b'a', b'b', b'text']


def test_parquet_rows_are_a_document_each_over_row_groups(tmp_path):
  pyarrow = pytest.importorskip('pyarrow')
  from pyarrow import parquet

  table = pyarrow.table({'content': ['a', 'b', 'c'], 'other': [1, 2, 3]})
  parquet.write_table(table, tmp_path / 'a.parquet', row_group_size=2)
  assert len(pieces(tmp_path)) == 2
  assert read(tmp_path, text_field='content') == [b'a', b'b', b'c']
  with pytest.raises(documents.CorruptTextError, match="'text'.*text_field"):
    read(tmp_path)


@hypothesis.settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    lines=strategies.lists(strategies.text('ab\n', max_size=9), max_size=12),
    size=strategies.integers(1, 20),
)
def test_pieces_of_any_size_give_each_line_once(tmp_path, lines, size):
  (tmp_path / 'a.jsonl').write_bytes(records(*lines))
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(documents, 'JSON_PIECE_BYTES', size)
    found = read(tmp_path)
  assert found == [line.encode() for line in lines if line.strip()]


CORRUPT = {
    'no JSON': b'{"text": ',
    'no object': b'[1]',
    'no field': b'{"texts": "x"}',
    'no string': b'{"text": 3}',
    'no UTF-8': b'{"text": "\xff"}',
    'lone surrogate': b'{"text": "\\ud800"}',
}


@pytest.mark.parametrize('line', CORRUPT.values(), ids=CORRUPT.keys())
def test_a_corrupt_json_line_is_told_by_file_and_line(tmp_path, line):
  path = tmp_path / 'a.jsonl'
  path.write_bytes(records('a', 'b') + line + b'\n' + records('c'))
  message = r'a\.jsonl, line 3 is corrupt.*Expected.*Mend the line, or leave'
  with pytest.raises(documents.CorruptTextError, match=message):
    read(path)


@pytest.mark.parametrize('line', CORRUPT.values(), ids=CORRUPT.keys())
def test_what_is_corrupt_at_its_beginning_is_told_before_all_is_read(
    tmp_path, line
):
  (tmp_path / 'a.jsonl').write_bytes(records('fine') + line + b'\n')
  reader = documents.DocumentReader()
  reader.check_first(pieces(tmp_path))
  (tmp_path / 'b.jsonl').write_bytes(line + b'\n' + records('late'))
  with pytest.raises(
      documents.CorruptTextError, match=r'b\.jsonl, line 1 is .*on_corrupt'
  ):
    reader.check_first(pieces(tmp_path))
  skipping = documents.DocumentReader(on_corrupt='skip')
  skipping.check_first(pieces(tmp_path))
  assert not skipping.skipped.count


@pytest.mark.parametrize('line', CORRUPT.values(), ids=CORRUPT.keys())
def test_corrupt_lines_can_be_skipped_and_are_counted_once(tmp_path, line):
  path = tmp_path / 'a.jsonl'
  path.write_bytes(records('a') + line + b'\n' + records('c'))
  reader = documents.DocumentReader(on_corrupt='skip')
  for _ in range(2):  # two epochs
    assert reader.read(pieces(path)[0]) == [b'a', b'c']
  assert reader.skipped.count == 1


def test_the_line_number_counts_from_the_start_of_the_file(
    tmp_path, monkeypatch
):
  monkeypatch.setattr(documents, 'TEXT_PIECE_BYTES', 10)
  path = tmp_path / 'a.txt'
  path.write_bytes(b'line\n' * 40 + b'\xff\n')
  assert len(pieces(path)) > 10
  with pytest.raises(documents.CorruptTextError, match='line 41 is corrupt'):
    read(path)


def test_only_the_bad_lines_of_a_text_are_left_out(tmp_path):
  path = tmp_path / 'a.txt'
  path.write_bytes(b'one\n\xff\xfe\nthree\n')
  assert read(path, on_corrupt='skip') == [b'one\nthree\n']


def test_a_broken_gzip_keeps_what_came_before(tmp_path):
  whole = gzip.compress(records(*(str(i) * 50 for i in range(2000))))
  path = tmp_path / 'a.jsonl.gz'
  path.write_bytes(whole[: len(whole) // 2])
  with pytest.raises(documents.CorruptTextError, match='broken gzip'):
    read(path)
  assert 0 < len(read(path, on_corrupt='skip')) < 2000


def test_an_unknown_policy_is_refused_with_the_choices():
  with pytest.raises(ValueError, match="'ignore'.*fail.*skip"):
    documents.DocumentReader(on_corrupt='ignore')


def test_one_plain_file_is_cut_at_a_line_where_any_is_held_out(tmp_path):
  path = tmp_path / 'a.txt'
  lines = [f'line {index}\n'.encode() for index in range(100)]
  path.write_bytes(b''.join(lines))
  split = documents.split_pieces(
      text_files.find_text_files(path), held_out_fraction=0.1
  )
  reader = documents.DocumentReader()
  train, held_out = (
      b''.join(text for piece in split[name] for text in reader.read(piece))
      for name in ('train', 'validation')
  )
  assert train + held_out == b''.join(lines)
  assert 8 <= held_out.count(b'\n') <= 12


def test_bytes_are_counted_in_all_pieces_or_in_some_of_a_large_text(tmp_path):
  for index in range(8):
    (tmp_path / f'{index}.txt').write_bytes(b'aab\n' * 100)
  pieces = documents.pieces_of(text_files.find_text_files(tmp_path))
  reader = documents.DocumentReader()
  counts = documents.byte_counts(pieces, reader=reader)
  assert counts.sum() == 8 * 400
  assert (counts[ord('a')], counts[ord('b')]) == (1600, 800)
  some = documents.byte_counts(pieces, reader=reader, max_bytes=1600)
  assert some.sum() == 1600


def test_one_file_that_cannot_be_cut_is_refused_with_the_mend(tmp_path):
  (tmp_path / 'a.txt').write_bytes(b'x' * 1000)
  (tmp_path / 'b.txt.gz').write_bytes(gzip.compress(b'x\n' * 9))
  for name, message in (
      ('a.txt', 'without a line break.*Split the file'),
      ('b.txt.gz', 'one file only.*Split the file'),
  ):
    files = text_files.find_text_files(tmp_path / name)
    with pytest.raises(ValueError, match=message):
      documents.split_pieces(files, held_out_fraction=0.1)
