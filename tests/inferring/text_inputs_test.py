# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Files of inputs: what is read of them, and where they are broken."""

import json

import pytest

from t5wild.inferring import text_inputs


def _read(path, *, other_keys=(), file_type='auto'):
  found = text_inputs.TextInputs(
      text_inputs.find_files(str(path)),
      file_type=file_type,
      inputs_key='inputs',
      other_keys=other_keys,
  )
  return [record for _, record in found.records()]


def _file(tmp_path, name, content):
  path = tmp_path / name
  path.write_bytes(content)
  return path


def test_a_line_of_text_is_an_input(tmp_path):
  path = _file(tmp_path, 'a.txt', 'one\r\n\nzwölf'.encode())
  assert [record['inputs'] for record in _read(path)] == ['one', '', 'zwölf']


@pytest.mark.parametrize(
    ('name', 'line'), [('a.txt', 'one'), ('a.jsonl', '{"inputs": "one"}')]
)
def test_the_byte_order_mark_of_a_file_is_not_of_its_text(tmp_path, name, line):
  path = _file(tmp_path, name, f'\ufeff{line}\r\n{line}\r\n'.encode())
  assert _read(path) == [{'inputs': 'one'}] * 2


def test_a_file_is_found_by_its_name_whatever_its_letters(tmp_path):
  path = _file(tmp_path, 'a[1]*.txt', b'one')
  _file(tmp_path, 'a1.txt', b'two')
  assert _read(path) == [{'inputs': 'one'}]


def test_half_a_character_is_refused_and_a_whole_one_read(tmp_path):
  path = _file(tmp_path, 'a.jsonl', rb'{"inputs": "\ud83d\ude00"}')
  assert _read(path) == [{'inputs': '\U0001f600'}]
  # In a field that is only handed on, too: it could not be written.
  path = _file(tmp_path, 'b.jsonl', rb'{"inputs": "a", "b": ["\ud83d"]}')
  with pytest.raises(text_inputs.BadInputError, match=r"line 1 has '\\ud83d'"):
    _read(path)


def test_a_json_line_keeps_its_fields(tmp_path):
  lines = [{'inputs': 'a', 'id': 7}, {'inputs': 'b', 'more': [1]}]
  path = _file(
      tmp_path, 'a.jsonl', '\n'.join(map(json.dumps, lines)).encode()
  )
  assert _read(path) == lines


def test_a_tfrecord_gives_its_texts(tmp_path):
  import tensorflow as tf

  path = tmp_path / 'a.tfrecord'
  with tf.io.TFRecordWriter(str(path)) as writer:
    for text in ('one', 'zwölf'):
      value = tf.train.BytesList(value=[text.encode()])
      example = tf.train.Example(
          features=tf.train.Features(
              feature={'inputs': tf.train.Feature(bytes_list=value)}
          )
      )
      writer.write(example.SerializeToString())
  assert _read(path) == [{'inputs': 'one'}, {'inputs': 'zwölf'}]
  broken = _file(tmp_path, 'b.tfrecord', path.read_bytes()[:-3])
  with pytest.raises(text_inputs.BadInputError, match=r'b.tfrecord, record 2'):
    _read(broken)


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        ('a.txt', b'', 'a.txt is empty'),
        ('a.jsonl', b'', 'a.jsonl is empty'),
        ('a.txt', b'good\nbad \xff', r'a.txt, line 2 is not UTF-8.*0xff'),
        ('a.jsonl', b'{"inputs": "a"}\n{"inp', 'a.jsonl, line 2 is no JSON'),
        ('a.jsonl', b'{"inputs": "a"}\n\n', 'a.jsonl, line 2 is no JSON'),
        ('a.jsonl', b'[1]', 'a.jsonl, line 1 is'),
        ('a.jsonl', b'{"text": "a"}', r"line 1 has 'inputs' = None.*'text'"),
        ('a.tfrecord', b'no such record', 'a.tfrecord, record 1 is broken'),
    ],
)
def test_what_is_broken_is_told_by_file_and_line(
    tmp_path, name, content, message
):
  with pytest.raises(text_inputs.BadInputError, match=message):
    _read(_file(tmp_path, name, content))


def test_targets_are_missed_where_they_are_needed(tmp_path):
  path = _file(tmp_path, 'a.jsonl', b'{"inputs": "a"}')
  with pytest.raises(text_inputs.BadInputError, match="'targets' = None"):
    _read(path, other_keys=['targets'])
  path = _file(tmp_path, 'a.txt', b'a')
  with pytest.raises(text_inputs.BadInputError, match="no field 'targets'"):
    _read(path, other_keys=['targets'])


def test_no_file_is_an_error(tmp_path):
  with pytest.raises(text_inputs.BadInputError, match='no input file'):
    text_inputs.find_files(str(tmp_path / '*.txt'))
