# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An inspection as one HTML file; its only script sets the theme."""

import base64
from collections.abc import Iterable
import importlib.resources
import struct
import zlib

import numpy as np

import t5wild
from t5wild.data import token_texts
from t5wild.inspecting import drawn_rows
from t5wild.inspecting import inspection
from t5wild.inspecting import picture
from t5wild.inspecting import sheets
from t5wild.inspecting import statistics as statistics_lib
from t5wild.reports import html_document

# Nothing may be fetched, whatever the data hold.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data:"
)
_LEVELS = {'bad': 'Wrong', 'warning': 'Look', 'note': 'Note'}
# The system's theme, until the button is pressed; paper is white.
_SCRIPT = (
    "const d=document.documentElement.dataset,m=matchMedia('(prefers-color-"
    "scheme:dark)'),f=()=>{d.theme=m.matches?'dark':'light'};let b;f();"
    "m.onchange=f;document.getElementById('theme').onclick=()=>{d.theme="
    "d.theme==='dark'?'light':'dark'};addEventListener('beforeprint',()=>{b="
    "d.theme;d.theme='light'});addEventListener('afterprint',()=>{d.theme=b})"
)
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 360, 190, 42, 24
_NUM_COLOURS = len(picture.COLOURS)


def document(found: inspection.Inspection) -> str:
  """The whole file."""
  title = _text(found.subject.title)
  return ''.join([
      '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
      '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
      f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n',
      f'<title>{title} · t5wild data inspect</title>\n',
      f'<style>{_style()}</style></head>\n<body>\n',
      f'<header><div><h1>{title}</h1><p class="soft">t5wild data inspect, '
      f't5wild {t5wild.__version__}</p></div>'
      '<button id="theme" title="light or dark">light / dark</button>'
      f'</header><script>{_SCRIPT}</script>\n',
      _facts(found),
      _findings(found.findings),
      _charts(found.statistics),
      _sheets('Numbers', found.sheets),
      _sheets('Most frequent tokens', found.top_tokens),
      _rows(found),
      _masks(found.masks),
      '</body></html>\n',
  ])


def _style() -> str:
  folder = importlib.resources.files('t5wild.inspecting')
  own = (folder / 'page' / 'inspect.css').read_text('utf-8')
  return html_document.style(own)


def _text(value: str) -> str:
  return html_document.escaped(value)


def _facts(found: inspection.Inspection) -> str:
  facts = {
      **found.subject.facts,
      'examples looked at': f'{found.subject.num_examples:,}',
      'rows for': found.subject.layout.kind.replace('_', '-'),
  }
  tiles = ''.join(
      f'<div><dt>{_text(label)}</dt><dd>{_text(value)}</dd></div>'
      for label, value in facts.items()
  )
  return f'<dl class="facts">{tiles}</dl>\n'


def _findings(findings: Iterable[sheets.Finding]) -> str:
  items = ''.join(
      f'<li class="{each.level}"><b>{_LEVELS[each.level]}</b>'
      f'{_text(each.text)}</li>'
      for each in findings
  ) or '<li class="note"><b>Note</b>Nothing stands out.</li>'
  return (
      '<section><h2>What stands out</h2>'
      f'<ul class="findings">{items}</ul></section>\n'
  )


def _charts(statistics: statistics_lib.Statistics) -> str:
  charts = [
      *(
          _card(f'{each.name}: tokens', _histogram(each))
          for each in statistics.lengths
      ),
      _card('Fill of rows', _meters(statistics)),
  ]
  return (
      '<section><h2>Distributions</h2><div class="charts">'
      f'{"".join(charts)}</div></section>\n'
  )


def _card(title: str, inner: str) -> str:
  return f'<div class="card"><h3>{_text(title)}</h3>{inner}</div>'


def _histogram(lengths: statistics_lib.Lengths) -> str:
  """Examples by their length, as SVG."""
  counts, edges = lengths.histogram()
  right, top = _WIDTH - 8, 14
  most, end = max(int(counts.max(initial=1)), 1), float(edges[-1])

  def across(value):
    return _LEFT + (right - _LEFT) * value / end

  def up(value):
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - top) * value / most

  bars = ''.join(
      f'<rect class="bar" x="{across(start):.1f}" y="{up(count):.1f}" '
      f'width="{max(across(stop) - across(start) - 1, 0.8):.1f}" '
      f'height="{up(0) - up(count):.1f}"><title>{start:.0f} to '
      f'{stop - 1:.0f}: {count:,}</title></rect>'
      for count, start, stop in zip(counts, edges, edges[1:], strict=False)
      if count
  )
  limit = ''
  if lengths.limit is not None and lengths.limit <= end:
    place = across(lengths.limit)
    anchor = 'end' if place > _WIDTH / 2 else 'start'
    limit = (
        f'<line class="limit" x1="{place:.1f}" x2="{place:.1f}" y1="{top}" '
        f'y2="{up(0):.1f}"/><text class="limit-label" x="{place:.1f}" y="11" '
        f'text-anchor="{anchor}">limit {lengths.limit:,}</text>'
    )
  return (
      f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
      f'aria-label="examples by length">{bars}{limit}'
      f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{up(0):.1f}" '
      f'y2="{up(0):.1f}"/>'
      f'<text x="{_LEFT - 5}" y="{up(most) + 4:.1f}" text-anchor="end">'
      f'{most:,}</text>'
      f'<text x="{_LEFT - 5}" y="{up(0):.1f}" text-anchor="end">0</text>'
      f'<text x="{_LEFT}" y="{_HEIGHT - 8}">0</text>'
      f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">'
      f'{end - 1:,.0f}</text></svg>'
  )


def _meters(statistics: statistics_lib.Statistics) -> str:
  return ''.join(
      f'<p class="soft">{_text(how)}: {count:,} rows</p>'
      + ''.join(
          f'<div class="meter"><span>{_text(name)}</span><i><b style="width:'
          f'{min(part, 1):.1%}"></b></i><span>{part:.1%}</span></div>'
          for name, part in fill.items()
      )
      for how, (count, fill) in statistics.fill.items()
  )


def _sheets(title: str, made: Iterable[sheets.Sheet]) -> str:
  cards = ''.join(
      _card(
          sheet.title,
          _table(sheet)
          + (f'<p class="soft">{_text(sheet.note)}</p>' if sheet.note else ''),
      )
      for sheet in made
  )
  return (
      f'<section><h2>{_text(title)}</h2><div class="sheets">{cards}</div>'
      '</section>\n'
  )


def _table(sheet: sheets.Sheet) -> str:
  kinds = [
      'text' if index < sheet.num_text else 'number'
      for index in range(len(sheet.head))
  ]
  head = ''.join(
      f'<th class="{kind}">{_text(name)}</th>'
      for kind, name in zip(kinds, sheet.head, strict=True)
  )
  body = ''.join(
      '<tr>' + ''.join(
          f'<td class="{kind}">{_text(cell)}</td>'
          for kind, cell in zip(kinds, row, strict=True)
      ) + '</tr>'
      for row in sheet.rows
  )  # fmt: skip
  return (
      f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
  )


def _rows(found: inspection.Inspection) -> str:
  legend = (
      '<div class="legend"><span><b class="s1">colour</b> changes where an '
      'example ends</span><span><b class="loss">underlined</b> asked for: has '
      'loss</span><span><b class="ahead">italic</b> attended in both '
      'directions</span><span><b class="sentinel">&lt;0&gt;</b> sentinel</span>'
      '<span><b class="end">&lt;/s&gt;</b> end of sequence</span><span>'
      '<b class="padding">░</b> padding</span></div>'
  )
  cards = ''.join(
      '<div class="card">' + ''.join(
          _side(side, number=number) for side in sides
      ) + '</div>'
      for number, sides in enumerate(found.rows)
  )  # fmt: skip
  return (
      '<section><h2>Rows as the model gets them</h2>'
      f'{legend}{cards}</section>\n'
  )


def _side(side: drawn_rows.Side, *, number: int) -> str:
  strip = ''.join(
      f'<i class="{_classes(span, side)}" style="flex:{span.size}"></i>'
      for span in side.spans
  )
  parts, last = [], 0
  for span in side.spans:
    is_first = span.segment != last and span.segment
    parts.append(_span(span, is_first=bool(is_first)))
    last = span.segment
  count = side.num_segments
  return (
      f'<h3>row {number}, {side.name}: {side.num_tokens:,} of '
      f'{side.length:,} tokens, {count} example{"s" if count != 1 else ""}</h3>'
      f'<div class="strip">{strip}</div><div class="tokens">'
      f'{"".join(parts)}</div>'
  )


def _classes(span: drawn_rows.Span, side: drawn_rows.Side) -> str:
  if not span.segment:
    return 'padding'
  quiet = ' quiet' if side.name == 'decoder' and not span.has_loss else ''
  return f's{(span.segment - 1) % _NUM_COLOURS + 1}{quiet}'


def _span(span: drawn_rows.Span, *, is_first: bool) -> str:
  if not span.segment:
    return f'<span class="padding"> ░ {span.size:,} padding ░</span>'
  classes = [f's{(span.segment - 1) % _NUM_COLOURS + 1}']
  classes += ['loss'] if span.has_loss else []
  classes += ['ahead'] if span.sees_ahead else []
  classes += ['first'] if is_first else []
  inner = ''.join(
      _text(token_texts.visible(text))
      if kind == token_texts.TEXT
      else f'<span class="{kind}">{_text(text)}</span>'
      for kind, text in span.parts
  )
  return f'<span class="{" ".join(classes)}">{inner}</span>'


def _masks(masks: Iterable[drawn_rows.Mask]) -> str:
  figures = ''.join(
      f'<figure><figcaption>{_text(mask.title)} <span class="soft">'
      f'{mask.shape[0]:,} queries down, {mask.shape[1]:,} keys across</span>'
      f'</figcaption><img alt="{_text(mask.title)}" '
      f'src="data:image/png;base64,{_png(mask)}"></figure>'
      for mask in masks
  )
  return (
      '<section><h2>Who sees whom in row 0</h2><div class="card masks">'
      f'{figures}</div></section>\n'
  )


def _png(mask: drawn_rows.Mask) -> str:
  """A mask as a PNG in base 64, clear where nobody sees."""
  colours = picture.coloured(mask)
  sees = (mask.segments > 0)[:, :, None]
  pixels = (np.concatenate([colours, sees], axis=2) * 255).round()
  height, width = mask.segments.shape
  lines = b''.join(b'\0' + row.astype(np.uint8).tobytes() for row in pixels)

  def chunk(kind: bytes, data: bytes) -> bytes:
    crc = zlib.crc32(kind + data)
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', crc)

  # Eight bits of red, green, blue and opacity.
  head = struct.pack('>IIBBBBB', width, height, 8, 6, 0, 0, 0)
  data = b''.join([
      b'\x89PNG\r\n\x1a\n', chunk(b'IHDR', head),
      chunk(b'IDAT', zlib.compress(lines, 9)), chunk(b'IEND', b''),
  ])  # fmt: skip
  return base64.b64encode(data).decode()
