# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags as people pass them, quoted or not."""

import pytest

from t5wild.gin_config import flags
from t5wild.gin_config import reader


def test_gin_flags_become_bindings_and_others_stay():
  assert flags.rewrite_gin_args([
      'train', '--gin_file=a.gin', '--gin.value=3', "--gin.a/b.c='x=y'",
      '--alsologtostderr',
  ]) == [
      'train', '--gin_file=a.gin', '--gin_bindings=value = 3',
      "--gin_bindings=a/b.c = 'x=y'", '--alsologtostderr',
  ]


def test_a_gin_flag_without_a_value_is_refused():
  with pytest.raises(reader.GinError, match='--gin.NAME=VALUE'):
    flags.rewrite_gin_args(['--gin.value', '3'])


@pytest.mark.parametrize(
    ('given', 'meant'),
    [
        ('A = 3', 'A = 3'),
        ('A=-1e-3', 'A = -1e-3'),
        ("A = 'x'", "A = 'x'"),
        ('A = None', 'A = None'),
        ('A = @f()', 'A = @f()'),
        ('A = %B', 'A = %B'),
        ("A = {'inputs': 8}", "A = {'inputs': 8}"),
        ('A = /tmp/x', "A = '/tmp/x'"),
        ('A = gs://bucket/x', "A = 'gs://bucket/x'"),
        ('A = my.task_v1', "A = 'my.task_v1'"),
        ("A = it's", 'A = "it\'s"'),
        ('A = ', "A = ''"),
        ('A = x=y', "A = 'x=y'"),
        ('a/b.C.d = bfloat16', "a/b.C.d = 'bfloat16'"),
        ('import some.module', 'import some.module'),
    ],
)
def test_what_is_no_gin_value_is_a_string(given, meant):
  assert flags.quoted(given) == meant


@pytest.mark.parametrize('value', ["'open", '[1, 2', '{a: 1}', '(1'])
def test_broken_gin_values_are_refused_and_not_taken_for_strings(value):
  with pytest.raises(reader.GinError, match='command line: A = '):
    reader.read_text(flags.quoted(f'A = {value}'))
