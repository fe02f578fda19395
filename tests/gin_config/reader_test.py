# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where gin files are looked for, and what is refused while reading them."""

import os

from etils import epath
import pytest

from t5wild import reachability
from t5wild.gin_config import reader
from t5wild.gin_config import texts


def _touch(folder, name, text='A = 1\n'):
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text, encoding='utf-8')
  return str(path)


def test_working_directory_then_search_paths_then_our_own_files(
    tmp_path, monkeypatch
):
  places = [tmp_path / name for name in ('cwd', 'first', 'second', 'ours')]
  for place in places:
    place.mkdir()
  monkeypatch.chdir(places[0])
  monkeypatch.setattr(reader, 'gin_root', lambda: places[3])
  search = [str(places[1]), str(places[2])]
  for place in reversed(places):
    expected = _touch(place, 'runs/a.gin')
    found = reader.find_file('runs/a.gin', search_paths=search)
    assert os.path.realpath(found) == os.path.realpath(expected)


def test_a_file_in_an_importable_package_is_found(tmp_path, monkeypatch):
  expected = _touch(tmp_path, 'some_project/configs/a.gin')
  monkeypatch.syspath_prepend(str(tmp_path))
  assert reader.find_file('some_project/configs/a.gin') == expected


def test_a_source_is_asked_last(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(reader, '_SOURCES', [])
  reader.register_source({'old/a.gin': 'A = 1', 'old/b.gin': 'A = 2'}.get)
  _touch(tmp_path, 'old/b.gin', 'A = 3\n')
  assert reader.read_file('old/a.gin').statements[0].value == 1
  assert reader.read_file('old/b.gin').statements[0].value == 3


def test_a_missing_file_names_the_places_and_close_names(tmp_path, monkeypatch):
  monkeypatch.setattr(reader, 'gin_root', lambda: tmp_path)
  _touch(tmp_path, 'runs/pretrain.gin')
  with pytest.raises(reader.GinError) as raised:
    reader.read_file('runs/pretrian.gin', search_paths=['/some/where'])
  message = str(raised.value)
  assert "did you mean 'runs/pretrain.gin'" in message
  assert "'/some/where'" in message
  assert '--gin_search_paths=FOLDER' in message


@pytest.mark.parametrize(
    ('place', 'asked', 'close'),
    [
        ('my_run.gin', 'my_runn.gin', 'my_run.gin'),
        ('mine/my_run.gin', 'mine/my_runn.gin', 'mine/my_run.gin'),
        ('searched/my_run.gin', 'my_runn.gin', 'my_run.gin'),
        ('mine/my_run.gin', '{tmp_path}/mine/my_runn.gin',
         '{tmp_path}/mine/my_run.gin'),
    ],
)  # fmt: skip
def test_a_close_name_is_found_beside_the_file_that_was_asked_for(
    place, asked, close, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  _touch(tmp_path, place)
  asked, close = (text.format(tmp_path=tmp_path) for text in (asked, close))
  with pytest.raises(reader.GinError) as raised:
    reader.read_file(asked, search_paths=['searched', 'not_there'])
  assert f'did you mean {close!r}' in str(raised.value)


def test_a_missing_include_names_its_line(tmp_path):
  path = _touch(tmp_path, 'a.gin', "A = 1\ninclude 'none.gin'\n")
  with pytest.raises(reader.GinError, match='a.gin:2: include') as raised:
    reader.read_file(path)
  assert "no gin file 'none.gin'" in str(raised.value)


def test_files_that_include_each_other_are_refused(tmp_path):
  first, second = str(tmp_path / 'a.gin'), str(tmp_path / 'b.gin')
  _touch(tmp_path, 'a.gin', f'include {second!r}\n')
  _touch(tmp_path, 'b.gin', f'include {first!r}\n')
  with pytest.raises(reader.GinError, match='includes itself'):
    reader.read_file(first)


@pytest.mark.parametrize(
    ('text', 'line'),
    [
        ('A = 1\nB = [1,\n', 2),
        ('A = 1\nB = some text\n', 2),
        ('A = 1\nB\n', 2),
        ("A = 'open\n", 1),
        ('a.b:\nc = 1\n', 2),
        ('A = $\n', 1),
    ],
)
def test_a_syntax_error_names_its_line(tmp_path, text, line):
  path = _touch(tmp_path, 'a.gin', text)
  with pytest.raises(reader.GinError) as raised:
    reader.read_file(path)
  assert str(raised.value).startswith(f'{path}:{line}: ')


@pytest.mark.parametrize('value', ['runs/mine', "{'x': y}"])
def test_a_value_without_quotes_is_told_in_our_words_alone(tmp_path, value):
  path = _touch(tmp_path, 'a.gin', f'A = 1\nMODEL_DIR = {value}\n')
  with pytest.raises(reader.GinError, match='no literal') as raised:
    reader.read_file(path)
  assert 'strings need quotes' in str(raised.value)
  assert '<ast' not in str(raised.value) and 'line 1' not in str(raised.value)


def test_statements_keep_their_lines_and_values(tmp_path):
  path = _touch(tmp_path, 'a.gin', (
      '# head\n'
      'import os\n'
      'x/a.b.c = [%M, @s/f(), (1, 2), {"k": @g}]\n'
      'a.b:\n'
      '  d = 1\n'
  ))
  imported, binding, block, inner = reader.read_file(path).statements
  assert imported.place.line == 2
  assert (binding.scope, binding.name, binding.parameter) == ('x', 'a.b', 'c')
  assert binding.value == [
      reader.Macro('M'),
      reader.Reference(('s',), 'f', is_called=True),
      (1, 2),
      {'k': reader.Reference((), 'g', is_called=False)},
  ]
  assert (block.name, block.place.line) == ('a.b', 4)
  assert (inner.key, inner.place.line) == ('a.b.d', 5)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('1', True), ('-1.5e3', True), ("'a'", True), ('None', True),
        ('[1, 2]', True), ("{'a': 1}", True), ('@a.b()', True), ('%M', True),
        ('/tmp/x', False), ('gs://b/x', False), ('my.task', False),
        ('a b', False), ('true', False), ('', False), ('1 2', False),
        ('8x', False), ('c4_v220', False), ('1\ny = 2', False),
    ],
)  # fmt: skip
def test_a_value_is_exactly_one_gin_value(text, expected):
  assert reader.is_value(text) is expected


def test_our_own_gin_files_are_found_whatever_the_working_directory(
    tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  path = reader.find_file('runs/pretrain.gin')
  assert os.path.samefile(path, reader.gin_root() / 'runs' / 'pretrain.gin')


@pytest.mark.parametrize(
    ('path', 'reason'),
    [
        ('gs://bucket/a.gin', 'gave no answer within'),
        ('nothing://host/a.gin', 'nothing here reads nothing://'),
        ('bytes.gin', "'utf-8' codec can't decode"),
        ('large.gin', f'it has {texts.MAX_BYTES + 1} bytes'),
    ],
)
def test_a_file_that_gives_no_text_is_named_with_its_include(
    tmp_path, monkeypatch, path, reason
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(
      reachability, 'is_reachable', lambda path: not path.startswith('gs:')
  )
  (tmp_path / 'bytes.gin').write_bytes(b'\xff\xfe\x00')
  with (tmp_path / 'large.gin').open('wb') as file:
    file.truncate(texts.MAX_BYTES + 1)
  top = _touch(tmp_path, 'top.gin', f"A = 1\ninclude '{path}'\n")
  with pytest.raises(reader.GinError) as raised:
    reader.read_file(top)
  message = str(raised.value)
  assert f"top.gin:2: include '{path}'" in message
  assert f'the gin file {path!r} cannot be read: ' in message
  assert reason in message
  assert '\n  expected: ' in message
  assert '\n  do: ' in message


def test_a_store_that_refuses_a_file_is_told(monkeypatch):
  class RefusedError(Exception):
    """As TensorFlow's errors: no OSError."""

  def refuse(path):
    raise RefusedError('403: not for you')

  monkeypatch.setattr(reachability, 'is_reachable', lambda path: True)
  monkeypatch.setattr(type(epath.Path('gs://a/b')), 'stat', refuse)
  with pytest.raises(reader.GinError, match='403: not for you'):
    reader.read_file('gs://bucket/a.gin')


def test_lines_may_end_as_windows_ends_them(tmp_path):
  path = tmp_path / 'a.gin'
  path.write_bytes(b'A = 1\r\nB = 2\r\n')
  values = [each.value for each in reader.read_file(str(path)).statements]
  assert values == [1, 2]
