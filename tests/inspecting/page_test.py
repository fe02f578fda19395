# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The page needs nothing else and runs nothing of the data; the picture is one.
"""

import html
from html import parser
import io
import re

import numpy as np
import pytest
from rich import console as console_lib

from t5wild.inspecting import inspection
from t5wild.inspecting import page
from t5wild.inspecting import picture
from t5wild.inspecting import terminal
from tests.inspecting import subjects
from tests.reports import chromium

_EVIL = '<script>alert(1)</script>[bold]&amp;'


@pytest.fixture(scope='module')
def found():
  texts = [f'{_EVIL} {n}' for n in range(30)]
  tokens = [[*subjects.VOCABULARY.encode(text), 1] for text in texts]
  return inspection.inspect(
      subjects.make(
          tokens, [[*t[:9], 383, 1] for t in tokens], kind='prefix_lm',
          notes=[_EVIL],
      ),
      num_rows=3,
  )  # fmt: skip


class _Tags(parser.HTMLParser):
  """Collects what a browser would load, run or leave open."""

  def __init__(self):
    super().__init__()
    self.scripts, self.loaded, self.open = 0, [], []

  def handle_starttag(self, tag, attrs):
    self.scripts += tag == 'script'
    self.loaded += [v for k, v in attrs if k in ('src', 'href') and v]
    if tag not in ('meta', 'img', 'link', 'rect', 'line', 'br'):
      self.open.append(tag)

  def handle_endtag(self, tag):
    if tag not in ('rect', 'line'):
      assert self.open.pop() == tag


def test_the_page_loads_nothing_and_runs_nothing_of_the_data(found):
  text = page.document(found)
  tags = _Tags()
  tags.feed(text)
  assert not tags.open
  assert tags.scripts == 1  # the button
  assert tags.loaded
  assert all(each.startswith('data:image/png;base64,') for each in tags.loaded)
  assert not re.search(r'https?://|url\(|@import', text)
  assert '&lt;script&gt;alert(1)' in text
  assert len(text) < 200_000


@pytest.mark.skipif(not chromium.program(), reason='needs a Chromium')
def test_a_browser_shows_the_page_in_its_theme_and_complains_of_nothing(
    found, tmp_path
):
  path = tmp_path / 'inspect.html'
  path.write_text(page.document(found), encoding='utf-8')
  theme = 'document.documentElement.dataset.theme'
  with chromium.started() as browser:
    for width, is_phone, is_dark in ((1280, False, False), (390, True, True)):
      browser.open(
          str(path), width=width, height=844, is_dark=is_dark,
          is_phone=is_phone, drawn="document.readyState === 'complete'",
      )  # fmt: skip
      assert browser.value_of(theme) == ('dark' if is_dark else 'light')
      wide = browser.value_of('document.documentElement.scrollWidth')
      assert wide <= width
    # Paper is white.
    browser.value_of("dispatchEvent(new Event('beforeprint'))")
    assert browser.value_of(theme) == 'light'
    browser.value_of("dispatchEvent(new Event('afterprint'))")
    browser.value_of("document.getElementById('theme').click()")
    assert browser.value_of(theme) == 'light'
    assert not browser.complaints


def test_the_page_shows_every_number_that_the_terminal_shows(found):
  out = io.StringIO()
  terminal.show(found, console=console_lib.Console(file=out, width=120))
  shown, text = out.getvalue(), page.document(found)
  for sheet in found.sheets:
    for row in sheet.rows:
      for cell in row[1:]:
        assert cell in shown
        assert f'>{html.escape(cell)}</td>' in text


@pytest.mark.parametrize('width', [40, 80, 200])
def test_the_terminal_shows_text_as_it_is_at_any_width(width, found):
  out = io.StringIO()
  terminal.show(found, console=console_lib.Console(file=out, width=width))
  lines = out.getvalue().split('\n')
  assert max(map(len, lines)) <= width
  assert '<script>alert(1)</script>[bold]' in ''.join(lines).replace(
      '\n', ''
  ).replace(' ', '')


def test_the_picture_is_a_png_of_all_panels(found, tmp_path):
  path = tmp_path / 'a.png'
  picture.draw(found, path)
  data = path.read_bytes()
  assert data[:8] == b'\x89PNG\r\n\x1a\n'
  assert len(data) > 10_000


def test_a_mask_has_the_colour_of_each_example_and_is_clear_elsewhere(found):
  mask = found.masks[0]
  colours = picture.coloured(mask)
  inside = mask.segments == 1
  assert np.ptp(colours[inside], axis=0).max() == 0
  assert not np.allclose(colours[inside][0], colours[~inside][0])
