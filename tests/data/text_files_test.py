# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which files are text, in which order, and which are held out."""

import os

import pytest

from t5wild.data import text_files


@pytest.fixture
def folder(tmp_path):
  for name in (
      'b.txt',
      'a.py',
      'sub/c.jsonl',
      'sub/d.txt.gz',
      'sub/e.parquet',
      'sub/picture.png',
      '.hidden/f.txt',
      '__pycache__/g.py',
      'site-packages/h.py',
      '.i.txt',
  ):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('text\n')
  return tmp_path


def names(files):
  return [file.name for file in files]


def test_a_folder_gives_its_text_files_sorted_by_relative_name(folder):
  assert names(text_files.find_text_files(folder)) == [
      'a.py',
      'b.txt',
      'sub/c.jsonl',
      'sub/d.txt.gz',
      'sub/e.parquet',
  ]


def test_order_does_not_depend_on_the_file_system(folder, monkeypatch):
  expected = text_files.find_text_files(folder)
  walk = os.walk

  def reversed_walk(root):
    for path, folders, leaves in walk(root):
      folders.reverse()
      yield path, folders, leaves[::-1]

  monkeypatch.setattr(os, 'walk', reversed_walk)
  assert text_files.find_text_files(folder) == expected


def test_a_file_or_glob_is_taken_whatever_its_suffix(folder):
  assert names(text_files.find_text_files(folder / 'sub' / 'picture.png')) == [
      'picture.png'
  ]
  assert names(text_files.find_text_files(f'{folder}/**/*.p*')) == [
      '__pycache__/g.py',
      'a.py',
      'site-packages/h.py',
      'sub/e.parquet',
      'sub/picture.png',
  ]


def test_a_file_named_twice_counts_once(folder):
  files = text_files.find_text_files([folder, folder / 'b.txt'])
  assert len(files) == 5


def test_kind_goes_by_the_suffix_before_gz(folder):
  kinds = {file.name: file.kind for file in text_files.find_text_files(folder)}
  assert kinds['sub/d.txt.gz'] == 'text'
  assert kinds['sub/c.jsonl'] == 'jsonl'
  assert kinds['sub/e.parquet'] == 'parquet'


@pytest.mark.parametrize(
    ('path', 'message'),
    [
        ('absent', 'no such text file or folder.*Correct the path'),
        ('*.nothing', 'matches no file.*correct the pattern'),
        ('', 'no such text file'),
    ],
)
def test_a_path_that_is_not_there_is_refused_with_the_mend(
    tmp_path, path, message
):
  with pytest.raises(FileNotFoundError, match=message):
    text_files.find_text_files(str(tmp_path / path) if path else path)


def test_a_folder_without_text_is_refused_with_the_mend(tmp_path):
  (tmp_path / 'picture.png').write_bytes(b'')
  with pytest.raises(FileNotFoundError, match=r'no text file under.*glob'):
    text_files.find_text_files(tmp_path)


def files_named(count):
  return [
      text_files.TextFile(name=f'{index}.txt', path=f'/x/{index}.txt')
      for index in range(count)
  ]


def test_split_depends_on_relative_names_alone():
  here = text_files.split_files(files_named(200), held_out_fraction=0.1)
  there = text_files.split_files(
      [
          text_files.TextFile(name=file.name, path='/moved' + file.path)
          for file in files_named(200)
      ],
      held_out_fraction=0.1,
  )
  assert names(here['validation']) == names(there['validation'])
  # 200 files at 0.1: 20 are expected, 4.2 is one deviation.
  assert 8 <= len(here['validation']) <= 32


def test_a_file_keeps_its_side_when_others_come():
  few = text_files.split_files(files_named(100), held_out_fraction=0.1)
  many = text_files.split_files(files_named(200), held_out_fraction=0.1)
  assert set(few['validation']) <= set(many['validation'])


@pytest.mark.parametrize('fraction', [1e-9, 0.5, 0.999999])
def test_neither_side_of_a_split_is_empty(fraction):
  split = text_files.split_files(files_named(2), held_out_fraction=fraction)
  assert len(split['train']) == len(split['validation']) == 1


def test_fraction_zero_holds_nothing_out():
  split = text_files.split_files(files_named(3), held_out_fraction=0.0)
  assert list(split) == ['train']


def test_fraction_out_of_range_and_a_lone_file_are_refused():
  with pytest.raises(ValueError, match=r'1\.5: expected a fraction.*Try'):
    text_files.split_files(files_named(2), held_out_fraction=1.5)
  with pytest.raises(ValueError, match='one file only.*Split the file'):
    text_files.split_files(files_named(1), held_out_fraction=0.1)
