# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A comparison says whether runs compiled the same and read the same."""

import json

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild.reports import comparison as comparison_lib
from t5wild.reports import programs
from t5wild.reports import verdict
from tests.reports import made_runs

_PROGRAM = {
    'hash': 'aaaa',
    'hash_without_constants': 'cccc',
    'operations': {'add': 10, 'dot_general f32': 24},
}
_SAMPLES = {
    'kind': 'cached', 'step': 0, 'batch_size': 8, 'seed': 5, 'window': 0,
    'caches': {'fingerprint': 'ffff', 'path': '/here/cache'},
}  # fmt: skip


def _compared(tmp_path, *, program=None, samples=None):
  """A run with _PROGRAM and _SAMPLES, and one with these changes."""
  paths = []
  for name, changed, read in (
      ('a', {}, {}), ('b', program or {}, samples or {})
  ):  # fmt: skip
    made_runs.make_run(tmp_path / name, num_steps=100)
    (tmp_path / name / 'program.json').write_text(
        json.dumps(_PROGRAM | changed)
    )
    (tmp_path / name / 'samples.jsonl').write_text(
        json.dumps(_SAMPLES | read) + '\n{"step": 100, "window": 3}\n'
    )
    paths.append(str(tmp_path / name))
  return comparison_lib.compare([
      comparison_lib.read_run(path, name=name, price_per_device_hour=None)
      for path, name in zip(paths, 'ab', strict=True)
  ])


def _differences(comparison):
  return {
      d.name: d.kind for d in comparison.differences if d.kind != 'place'
  }


def test_the_same_program_and_samples_are_said(tmp_path):
  elsewhere = {'caches': {'fingerprint': 'ffff', 'path': '/there/cache'}}
  comparison = _compared(tmp_path, samples=elsewhere)
  text = '\n'.join(verdict.verdict(comparison))
  assert 'b compiled the same program as a.' in text
  assert 'b read the same samples as a at the same steps.' in text
  assert not _differences(comparison)


def test_another_dtype_is_told_by_operations(tmp_path):
  program = {
      'hash': 'bbbb', 'hash_without_constants': 'dddd',
      'operations': {'add': 10, 'dot_general bf16': 24},
  }  # fmt: skip
  comparison = _compared(tmp_path, program=program)
  text = '\n'.join(verdict.verdict(comparison))
  assert 'dot_general f32 0 (there 24), dot_general bf16 24 (there 0)' in text
  assert set(_differences(comparison).values()) == {'program'}


@pytest.mark.parametrize(
    ('program', 'told'),
    [
        ({'hash': 'bbbb'}, 'but for its constants (seeds)'),
        (
            {'hash': 'bbbb', 'hash_without_constants': 'dddd'},
            'of the same operations in other places or shapes',
        ),
    ],
)
def test_how_programs_differ_is_told(tmp_path, program, told):
  text = '\n'.join(verdict.verdict(_compared(tmp_path, program=program)))
  assert told in text


def test_other_samples_are_a_difference_of_data_and_another_seed_one_of_seed(
    tmp_path,
):
  samples = {'seed': 6, 'caches': {'fingerprint': 'gggg'}}
  comparison = _compared(tmp_path, samples=samples)
  assert _differences(comparison) == {
      'samples.seed': 'seed', 'samples.caches.fingerprint': 'data'
  }  # fmt: skip
  text = '\n'.join(verdict.verdict(comparison))
  assert 'their ledgers differ in samples.seed, samples.caches' in text


@pytest.mark.parametrize('text', ['', '{"ha', '[1]', 'null'])
def test_half_a_file_tells_nothing(tmp_path, text):
  (tmp_path / 'program.json').write_text(text)
  (tmp_path / 'samples.jsonl').write_text(text)
  run = run_dir_lib.RunDir(str(tmp_path))
  assert programs.read_program(run) == {}
  assert programs.read_samples(run) == {}
