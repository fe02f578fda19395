# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What docs/experiments.md tells of ladders is what their runs came to."""

import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PICTURES = _ROOT / 'docs/pictures'
_NAMES = sorted(path.stem for path in _PICTURES.glob('ladder_*.csv'))


@pytest.fixture(scope='module')
def drawn(tmp_path_factory):
  """Folder of the pictures; what was printed, by ladder."""
  folder = tmp_path_factory.mktemp('drawn')
  done = subprocess.run(
      [sys.executable, _ROOT / 'tools/draw_ladders.py', folder],
      check=True, capture_output=True, text=True,
  )  # fmt: skip
  parts = re.split(r'^(ladder_\w+)\n', done.stdout, flags=re.MULTILINE)[1:]
  return folder, dict(zip(parts[::2], parts[1::2], strict=True))


def test_each_ladder_of_the_docs_is_drawn_from_its_runs(drawn):
  folder, told = drawn
  assert len(_NAMES) >= 2 and sorted(told) == _NAMES
  page = (_ROOT / 'docs/experiments.md').read_text(encoding='utf-8')
  for name in _NAMES:
    assert (folder / f'{name}.png').read_bytes()[:4] == b'\x89PNG'
    assert f'pictures/{name}.png' in page
    assert (_PICTURES / f'{name}.png').exists()


@pytest.mark.parametrize('name', _NAMES)
def test_the_docs_tell_what_the_law_of_the_runs_foretells(drawn, name):
  text = drawn[1][name]
  page = (_ROOT / 'docs/experiments.md').read_text(encoding='utf-8')
  head = (_ROOT / f'gin/ladders/{name[7:]}.gin').read_text(encoding='utf-8')
  foretold = re.search(r'operations: (.*)\.$', text, re.MULTILINE)[1]
  measured = re.search(r'It came to ([\d.]+):', text)[1]
  off = re.search(r'They lie ([\d.]+)% off', text)[1]
  assert f'foretold {foretold}, came to {measured} |' in page
  assert f'{off} %' in page
  head = re.sub(r'\n# +', ' ', head)
  assert measured in head and foretold in head


@pytest.mark.parametrize('name', _NAMES)
def test_the_tables_of_the_docs_hold_the_runs_losses(name):
  page = (_ROOT / 'docs/experiments.md').read_text(encoding='utf-8')
  rows = (_PICTURES / f'{name}.csv').read_text().splitlines()[1:-1]
  losses = {}
  for row in rows:
    cells = row.split(',')
    losses.setdefault(int(cells[1]), []).append(f'{float(cells[5]):.3f}')
  for size, each in losses.items():
    assert f'| {size:,} | {" | ".join(each)} | |' in page
