# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files: both forms are read, damaged ones are named."""

import json

import pyarrow
from pyarrow import parquet
import pytest

from t5wild.data import arrow_files
from t5wild.data import documents
from t5wild.data import text_files

_TABLE = pyarrow.table({'text': [f'text {n} ' * 50 for n in range(300)]})


def _write(path, *, how):
  if how == 'parquet':
    parquet.write_table(_TABLE, path, compression='none')
    return
  new = pyarrow.ipc.new_file if how == 'file' else pyarrow.ipc.new_stream
  with new(str(path), _TABLE.schema) as writer:
    writer.write_table(_TABLE, max_chunksize=100)


@pytest.mark.parametrize('how', ['stream', 'file'])
def test_both_forms_of_arrow_files_are_read(how, tmp_path):
  _write(tmp_path / 'a.arrow', how=how)
  batches = list(arrow_files.read_arrow_batches(str(tmp_path / 'a.arrow')))
  assert len(batches) == 3
  assert pyarrow.Table.from_batches(batches) == _TABLE


@pytest.mark.parametrize('how', ['stream', 'file', 'parquet'])
@pytest.mark.parametrize('part', [0.0, 0.6, 0.99])
def test_a_truncated_file_is_named_with_its_size(how, part, tmp_path):
  path = tmp_path / 'a.parquet'
  _write(path, how=how)
  data = path.read_bytes()[: int(part * path.stat().st_size)]
  path.write_bytes(data)
  with pytest.raises(arrow_files.UnreadableFileError) as error:
    if how == 'parquet':
      arrow_files.open_parquet(str(path))
    else:
      list(arrow_files.read_arrow_batches(str(path)))
  assert f'{path} ({len(data)} bytes)' in str(error.value)
  assert 'Copy it again' in str(error.value)


def test_documents_of_a_truncated_parquet_file_are_refused_by_name(tmp_path):
  path = tmp_path / 'a.parquet'
  _write(path, how='parquet')
  path.write_bytes(path.read_bytes()[:-50])
  with pytest.raises(ValueError, match='a.parquet .*truncated'):
    documents.pieces_of(text_files.find_text_files(str(path)))


def test_a_page_damaged_inside_a_parquet_file_is_told_by_its_file(tmp_path):
  path = tmp_path / 'a.parquet'
  parquet.write_table(_TABLE, path, compression='gzip')
  data = bytearray(path.read_bytes())
  data[60:200] = bytes(140)
  path.write_bytes(bytes(data))
  pieces = documents.pieces_of(text_files.find_text_files(str(path)))
  with pytest.raises(ValueError, match='a.parquet'):
    documents.DocumentReader().read(pieces[0])


def test_names_of_labels_are_those_that_datasets_writes():
  features = {
      'label': {'names': ['no', 'yes'], '_type': 'ClassLabel'},
      'text': {'dtype': 'string', '_type': 'Value'},
  }
  written = json.dumps({'info': {'features': features}})
  schema = _TABLE.schema.with_metadata({'huggingface': written})
  assert arrow_files.label_names(schema) == {'label': ['no', 'yes']}
  assert arrow_files.label_names(_TABLE.schema) == {}
  strange = _TABLE.schema.with_metadata({'huggingface': 'x'})
  assert arrow_files.label_names(strange) == {}
