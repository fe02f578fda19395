# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The documentation site: its pages, links, pictures and reference."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_DOCS = _ROOT / 'docs'
_PAGES = sorted(_DOCS.rglob('*.md'))
_LINK = re.compile(r'\]\(([^)\s#]+)(?:#[^)]*)?\)')


def _name(page):
  return page.relative_to(_DOCS).as_posix()


def test_every_page_is_in_the_navigation_once():
  listed = re.findall(
      r'^ +- ([\w/]+\.md)$',
      (_ROOT / 'mkdocs.yml').read_text(encoding='utf-8'),
      re.MULTILINE,
  )
  assert sorted(listed) == sorted(map(_name, _PAGES))


@pytest.mark.parametrize('page', [*_PAGES, _ROOT / 'README.md'], ids=str)
def test_links_lead_to_files(page):
  links = _LINK.findall(page.read_text(encoding='utf-8'))
  missing = [
      link
      for link in links
      if '://' not in link and not (page.parent / link).exists()
  ]
  assert not missing
  if page.is_relative_to(_DOCS):  # The site has nothing else.
    assert not [link for link in links if '../' in link and not (
        (page.parent / link).resolve().is_relative_to(_DOCS)
    )]  # fmt: skip


def test_the_reference_is_of_modules_that_exist():
  for page in (_DOCS / 'reference').glob('*.md'):
    modules = re.findall(r'^::: (\S+)$', page.read_text('utf-8'), re.MULTILINE)
    assert modules
    for module in modules:
      path = _ROOT / module.replace('.', '/')
      assert path.with_suffix('.py').exists(), module


def test_the_pictures_are_what_the_script_draws(tmp_path):
  subprocess.run(
      [sys.executable, _ROOT / 'tools/draw_docs.py', tmp_path],
      check=True,
      capture_output=True,
  )
  drawn = {path.name for path in tmp_path.iterdir()}
  assert drawn <= {path.name for path in (_DOCS / 'pictures').iterdir()}
  for name in drawn:
    assert (tmp_path / name).read_bytes()[:8] == b'\x89PNG\r\n\x1a\n'
    assert f'pictures/{name}' in (_DOCS / 'concepts.md').read_text('utf-8')


@pytest.mark.skipif(
    importlib.util.find_spec('mkdocs') is None
    or importlib.util.find_spec('mkdocstrings') is None,
    reason="the site's packages are not installed: pip install -e '.[docs]'",
)
def test_the_site_builds_without_a_warning(tmp_path):
  done = subprocess.run(
      [sys.executable, '-m', 'mkdocs', 'build', '--strict', '-d', tmp_path],
      cwd=_ROOT,
      env={**os.environ, 'NO_MKDOCS_2_WARNING': '1'},
      capture_output=True,
      text=True,
      check=False,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  html = (tmp_path / 'reference/partitioning/index.html').read_text('utf-8')
  assert 'standard_logical_axis_rules' in html
