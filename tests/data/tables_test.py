# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables: every kind gives the same rows, split by them, read in any order."""

import gzip
import json

import numpy as np
import pyarrow
from pyarrow import parquet
import pytest

from t5wild.data import arrow_files
from t5wild.data import documents
from t5wild.data import table_reader
from t5wild.data import tables
from tests.data import tfrecord_files

_ROWS = [
    {'text': f'text {n} ö', 'number': n, 'ids': list(range(n % 4))}
    for n in range(700)
]
_NAMES = ('jsonl', 'jsonl.gz', 'parquet', 'arrow', 'tfrecord', 'tfrecord.gz')


def write(path, rows=_ROWS):
  """A table of the kind that its name tells."""
  name = str(path)
  if name.endswith('.parquet'):
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, name, row_group_size=300)
  elif name.endswith('.arrow'):
    table = pyarrow.Table.from_pylist(rows)
    with pyarrow.ipc.new_stream(name, table.schema) as stream:
      stream.write_table(table, max_chunksize=10)
  elif 'tfrecord' in name:
    tfrecord_files.write(path, [
        {
            'text': [row['text'].encode()], 'number': [row['number']],
            'ids': row['ids'] or np.zeros(0, np.int64),
        }
        for row in rows
    ])  # fmt: skip
  else:
    opener = gzip.open if name.endswith('.gz') else open
    with opener(name, 'wt') as file:
      file.writelines(json.dumps(row) + '\n' for row in rows)
  return name


def open_table(paths, *, held_out_fraction=0.0, **arguments):
  return table_reader.open_table(
      'mine',
      {'train': tables.find_files(paths)},
      held_out_fraction=held_out_fraction,
      **arguments,
  )


def reader(paths, columns=None, *, on_corrupt='fail', **arguments):
  return table_reader.TableReader(
      open_table(paths, **arguments), columns, on_corrupt=on_corrupt
  )


def texts(found, split='train', *, feature='text'):
  return [row[feature] for row in found.read_all(split)]


@pytest.mark.parametrize('name', _NAMES)
def test_every_kind_gives_every_row_once_in_order(name, tmp_path):
  found = reader(write(tmp_path / f'a.{name}'))
  assert found.kinds == {'text': 'text', 'number': 'text', 'ids': 'tokens'}
  rows = list(found.read_all('train'))
  assert [row['text'] for row in rows] == [row['text'] for row in _ROWS]
  assert [row['number'] for row in rows] == [str(n) for n in range(700)]
  assert [row['ids'].tolist() for row in rows] == [r['ids'] for r in _ROWS]


@pytest.mark.parametrize('name', _NAMES)
def test_a_chunk_is_the_same_in_any_order_of_reading(
    name, tmp_path, monkeypatch
):
  monkeypatch.setattr(tables, '_JSON_PIECE_BYTES', 9000)
  path = write(tmp_path / f'a.{name}')
  places = [
      (piece, chunk)
      for piece in range(len(open_table(path).pieces('train')))
      for chunk in range(4)
  ]
  cut = {'text': 'text'}
  one, other = reader(path, cut), reader(path, cut)
  in_order = {p: one.read('train', piece=p[0], chunk=p[1]) for p in places}
  for place in np.random.default_rng(0).permutation(places).tolist():
    found = other.read('train', piece=place[0], chunk=place[1])
    assert found == in_order[tuple(place)]
  rows = [row['text'] for rows, _ in in_order.values() for row in rows]
  assert rows == [row['text'] for row in _ROWS]


@pytest.mark.parametrize('name', _NAMES)
def test_held_out_rows_are_the_others_and_about_as_many_as_asked_for(
    name, tmp_path
):
  found = reader(write(tmp_path / f'a.{name}'), held_out_fraction=0.2)
  assert found.table.splits == ('train', 'validation')
  kept, held_out = texts(found), texts(found, 'validation')
  assert sorted(kept + held_out) == sorted(row['text'] for row in _ROWS)
  assert 100 < len(held_out) < 180


def test_a_row_keeps_its_side_when_files_come(tmp_path):
  path = write(tmp_path / 'a.jsonl')
  before = texts(reader(path, held_out_fraction=0.1), 'validation')
  write(tmp_path / 'b.jsonl', [{'text': f'new {n}'} for n in range(50)])
  paths = str(tmp_path / '*.jsonl')
  columns = {'text': 'text'}
  after = texts(reader(paths, columns, held_out_fraction=0.1), 'validation')
  assert [text for text in after if text.startswith('text')] == before


@pytest.mark.parametrize('count', [2, 3, 10])
def test_of_few_rows_one_is_held_out_and_one_stays(count, tmp_path):
  path = write(tmp_path / 'a.jsonl', _ROWS[:count])
  found = reader(path, held_out_fraction=0.01)
  assert len(texts(found, 'validation')) == 1
  assert len(texts(found)) == count - 1


def test_one_row_cannot_be_divided(tmp_path):
  path = write(tmp_path / 'a.jsonl', _ROWS[:1])
  with pytest.raises(ValueError, match='one row alone.*held_out_fraction = 0'):
    open_table(path, held_out_fraction=0.1)
  assert len(texts(reader(path))) == 1


@pytest.mark.parametrize('name', ['jsonl', 'parquet', 'arrow', 'tfrecord'])
def test_an_unknown_column_is_refused_with_those_there_are(name, tmp_path):
  path = write(tmp_path / f'a.{name}', _ROWS[:20])
  with pytest.raises(ValueError) as error:
    reader(path, {'targets': 'texts'})
  assert "no column 'texts' (did you mean 'text'?)" in str(error.value)
  for column in _ROWS[0]:
    assert repr(column) in str(error.value)


def test_a_field_of_a_column_is_named_with_a_dot(tmp_path):
  rows = [{'translation': {'de': f'Satz {n}', 'en': 'x'}} for n in range(3)]
  for name in ('jsonl', 'parquet', 'arrow'):
    path = write(tmp_path / f'a.{name}', rows)
    found = reader(path, {'targets': 'translation.de'})
    assert texts(found, feature='targets') == ['Satz 0', 'Satz 1', 'Satz 2']
    assert reader(path).columns.keys() == {'translation.de', 'translation.en'}


@pytest.mark.parametrize('name', ['jsonl', 'jsonl.gz', 'tfrecord', 'parquet'])
def test_an_empty_source_is_refused(name, tmp_path):
  path = tmp_path / f'a.{name}'
  if name == 'parquet':
    parquet.write_table(pyarrow.table({'text': pyarrow.array([], 'string')}),
                        path)  # fmt: skip
  else:
    write(path, [])
  with pytest.raises(ValueError, match='mine is empty: 1 files .*a'):
    reader(str(path))


def test_a_corrupt_line_is_told_by_file_and_line_or_skipped_and_counted(
    tmp_path, monkeypatch, caplog
):
  monkeypatch.setattr(tables, '_JSON_PIECE_BYTES', 200)
  path = tmp_path / 'a.jsonl'
  lines = [json.dumps(row) for row in _ROWS[:40]]
  lines[30] = '{"text": '
  path.write_text('\n'.join(lines))
  columns = {'text': 'text'}
  with pytest.raises(documents.CorruptTextError) as error:
    texts(reader(str(path), columns, held_out_fraction=0.1))
  assert f'{path}, line 31 is corrupt' in str(error.value)
  assert "on_corrupt = 'skip'" in str(error.value)
  assert 'sources.files.on_corrupt' in str(error.value)
  assert 'skipped' not in caplog.text  # though it was held out by a look at all
  found = reader(str(path), columns, on_corrupt='skip')
  assert len(texts(found)) == 39
  assert found.skipped.count == 1


@pytest.mark.parametrize(
    ('row', 'words'),
    [
        ({'other': 1}, "no 'text' among"), ({'text': None}, 'None, no text'),
        ({'text': {'a': 1}}, 'no text'), ({'text': ['a', 'b']}, 'a list of 2'),
        ([1], 'a JSON list, no object'), ({'text': 'a\ud800'}, 'surrogates'),
    ],
)  # fmt: skip
def test_a_row_without_a_text_is_told_with_what_it_has(row, words, tmp_path):
  path = write(tmp_path / 'a.jsonl', [*_ROWS[:2], row])
  with pytest.raises(documents.CorruptTextError) as error:
    texts(reader(path, {'text': 'text'}))
  assert 'a.jsonl, line 3 is corrupt' in str(error.value)
  assert words in str(error.value)


@pytest.mark.parametrize('ids', [[-1, 4], [4, 1 << 31], ['a'], [1.5], None])
def test_tokens_that_are_no_ids_are_told(ids, tmp_path):
  path = write(tmp_path / 'a.jsonl', [*_ROWS[2:4], {'ids': ids}])
  with pytest.raises(documents.CorruptTextError, match='a.jsonl, line 3 is'):
    texts(reader(path, {'ids': 'ids'}), feature='ids')


@pytest.mark.parametrize('name', ['tfrecord', 'tfrecord.gz'])
def test_a_wrong_checksum_is_told_by_file_and_record(name, tmp_path):
  path = tmp_path / f'a.{name}'
  data = b''.join(
      tfrecord_files.frame(
          tfrecord_files.serialize({'text': [f'text {n}'.encode()]})
      )
      for n in range(9)
  )
  size = len(data) // 9
  data = bytearray(data)
  data[5 * size + 20] ^= 1
  with (gzip.open if name.endswith('.gz') else open)(path, 'wb') as file:
    file.write(bytes(data))
  with pytest.raises(documents.CorruptTextError) as error:
    texts(reader(str(path)))
  assert f'{path}, record 6 is corrupt: the checksum' in str(error.value)
  found = reader(str(path), on_corrupt='skip')
  assert len(texts(found)) == 5  # what comes after cannot be found
  assert found.skipped.count == 1


def test_a_truncated_file_of_any_kind_is_told_by_its_name(tmp_path):
  for name in ('parquet', 'arrow', 'tfrecord', 'jsonl.gz', 'tfrecord.gz'):
    path = tmp_path / f'a.{name}'
    write(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(
        (arrow_files.UnreadableFileError, documents.CorruptTextError)
    ) as error:
      texts(reader(str(path)))
    assert str(path) in str(error.value)


def test_a_folder_is_searched_for_tables_and_a_name_without_a_kind_refused(
    tmp_path,
):
  write(tmp_path / 'a.jsonl')
  write(tmp_path / 'b.tfrecord-00000-of-00001')
  (tmp_path / 'c.txt').write_text('text')
  kinds = [file.kind for file in tables.find_files(str(tmp_path))]
  assert kinds == ['jsonl', 'tfrecord']
  with pytest.raises(ValueError, match='c.txt is no table by its name'):
    tables.find_files(str(tmp_path / 'c.txt'))
  assert tables.find_files(str(tmp_path / 'c.txt'), kind='jsonl')
  with pytest.raises(ValueError, match="kind is 'csv'"):
    tables.find_files(str(tmp_path), kind='csv')
  with pytest.raises(FileNotFoundError):
    tables.find_files(str(tmp_path / 'absent.jsonl'))


def test_a_split_that_is_not_there_is_refused_with_the_others(tmp_path):
  found = open_table(write(tmp_path / 'a.jsonl'), held_out_fraction=0.1)
  with pytest.raises(ValueError, match=r"no split 'test'.*train.*validation"):
    found.pieces('test')


@pytest.mark.parametrize('fraction', [-0.1, 1.0, 2])
def test_a_fraction_of_no_sense_is_refused(fraction, tmp_path):
  path = write(tmp_path / 'a.jsonl')
  with pytest.raises(ValueError, match='held_out_fraction is'):
    open_table(path, held_out_fraction=fraction)
