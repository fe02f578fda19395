# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a gin name means, in a file and on the command line."""

from gin import config_parser
import pytest

from t5wild.gin_config import names
from t5wild.gin_config import reader


def _statement(text):
  return reader.read_text(text).statements[0].statement


def _symbols(*lines):
  symbols = names.Symbols()
  for line in ('from __gin__ import dynamic_registration', *lines):
    symbols.add(_statement(line))
  return symbols


@pytest.mark.parametrize(
    ('line', 'name', 'gin_name'),
    [
        ('import collections.abc', 'collections.abc.Sized',
         'collections.abc.Sized'),
        ('from collections import abc', 'abc.Sized', 'collections.abc.Sized'),
        ('from collections import abc as c', 'c.Sized', 'collections.c.Sized'),
        ('import collections.abc as c', 'c.Sized', 'collections.c.Sized'),
    ],
)
def test_a_name_is_found_through_its_import_and_registered_as_gin_does(
    line, name, gin_name
):
  import collections.abc

  target = _symbols(line).find(name)
  assert target.value is collections.abc.Sized
  assert target.gin_name == gin_name


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('abd.Sized', "'abd' is not imported by this file; did you mean 'abc'"),
        ('abc.Sizde', "'abc' has no 'Sizde'; did you mean 'Sized'"),
        ('abc', 'no function and no class'),
        ('abc.__name__', 'no function and no class'),
    ],
)
def test_an_unknown_name_says_which_part_failed(name, message):
  with pytest.raises(names.UnknownNameError, match=message):
    _symbols('from collections import abc').find(name)


def test_two_objects_of_one_name_are_told_apart_by_longer_names():
  symbols = _symbols('import json', 'import pickle')
  flags = names.CommandLineNames(
      [], [symbols.find('json.loads'), symbols.find('pickle.loads')]
  )
  assert flags.find('json.loads').path == 'json.loads'
  with pytest.raises(names.UnknownNameError, match=r"may mean any of .*json"):
    flags.find('loads')


def test_the_old_utils_prefix_finds_an_object_that_moved():
  symbols = _symbols('import json')
  flags = names.CommandLineNames([symbols], [symbols.find('json.loads')])
  assert flags.find('utils.loads').path == 'json.loads'
  with pytest.raises(names.UnknownNameError):
    flags.find('tools.loads')


def test_a_failed_import_offers_modules_that_exist():
  statement = _statement('from collections import abd')
  assert isinstance(statement, config_parser.ImportStatement)
  with pytest.raises(ImportError) as raised:
    names.Symbols().add(statement)
  problem = names.import_problem(statement, raised.value)
  assert "did you mean 'abc'" in problem


@pytest.mark.parametrize(
    ('name', 'statement'),
    [
        ('decoding.beam_search', 'from t5wild import decoding'),
        ('losses.cross_entropy_with_logits', 'from t5wild import losses'),
    ],
)
def test_flags_know_our_modules_that_no_file_imports(name, statement):
  target = names.CommandLineNames([], []).find(name)
  assert target.path == name
  assert target.statement.format() == statement


def test_a_name_of_a_file_goes_before_that_of_our_module():
  symbols = _symbols('import json as decoding')
  flags = names.CommandLineNames([symbols], [])
  assert flags.find('decoding.loads').path == 'decoding.loads'
  with pytest.raises(names.UnknownNameError, match="did you mean 'beam_search"):
    names.CommandLineNames([], []).find('decoding.beam_serch')
  with pytest.raises(names.UnknownNameError, match="'decodings' is not import"):
    names.CommandLineNames([], []).find('decodings.beam_search')
