# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An inspection for the terminal, drawn with rich."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich import console as console_lib
from rich import table as table_lib
from rich import text as text_lib

from t5wild.data import token_texts
from t5wild.inspecting import drawn_rows
from t5wild.inspecting import inspection
from t5wild.inspecting import sheets

# Neighbours differ; each is readable on a dark and on a light background.
_BACKGROUNDS = ('on blue', 'on dark_green', 'on dark_magenta', 'on dark_cyan')
_LEVELS = {'bad': 'bold red', 'warning': 'yellow', 'note': 'dim'}
_KINDS = {
    token_texts.SENTINEL: 'bold yellow', token_texts.END: 'bold bright_black',
    token_texts.UNKNOWN: 'bold red', token_texts.PADDING: 'dim',
}  # fmt: skip
_MASK_CELLS, _GAP = 32, 3
LEGEND = (
    'Backgrounds change where an example (┃) begins. Underlined, and ▄ in the '
    'bar: asked for (has loss); ⟫: from here on. Italic: attended in both '
    'directions. <0>: sentinel. </s>: end of sequence.'
)


def show(
    found: inspection.Inspection, *, console: console_lib.Console
) -> None:
  """Prints all of it."""
  for part in _parts(found, console.width):
    console.print(part)


def _parts(found: inspection.Inspection, width: int) -> Iterator[Any]:
  yield text_lib.Text(f'\n{found.subject.title}', style='bold')
  facts = table_lib.Table.grid(padding=(0, 2))
  facts.add_column(style='dim', no_wrap=True)
  facts.add_column(overflow='fold')
  for label, value in found.subject.facts.items():
    facts.add_row(label, text_lib.Text(value))
  yield facts
  for each in found.findings:
    yield text_lib.Text.assemble(
        (f'{each.level}: ', _LEVELS[each.level]), each.text
    )
  for sheet in found.sheets:
    yield _table(sheet)
  top = table_lib.Table.grid(padding=(0, 3))
  top.add_row(*(_table(sheet) for sheet in found.top_tokens))
  yield top
  yield text_lib.Text(f'\nRows as the model gets them. {LEGEND}', style='bold')
  for number, sides in enumerate(found.rows):
    for side in sides:
      yield _side(side, number=number, width=width)
  yield from _masks(found.masks, width=width)


def _table(sheet: sheets.Sheet) -> table_lib.Table:
  table = table_lib.Table(
      title=sheet.title, caption=sheet.note or None, box=box.SIMPLE_HEAD,
      title_justify='left', caption_justify='left', title_style='bold',
  )  # fmt: skip
  for index, name in enumerate(sheet.head):
    is_text = index < sheet.num_text
    table.add_column(
        name, justify='left' if is_text else 'right', overflow='fold'
    )
  for row in sheet.rows:
    # Text of the data is no markup.
    table.add_row(*(text_lib.Text(cell) for cell in row))
  return table


def _side(side: drawn_rows.Side, *, number: int, width: int) -> text_lib.Text:
  text = text_lib.Text()
  text.append(
      f'\nrow {number}, {side.name}: {side.num_tokens} of {side.length} '
      f'tokens, {side.num_segments} examples\n',
      style='bold',
  )
  text.append_text(_strip(side, width=max(20, min(width, 100))))
  text.append('\n')
  # Marks too, for terminals and files without colours.
  before = None
  for span in side.spans:
    if not span.segment:
      text.append(f'░ {span.size} padding ░', style='dim')
      continue
    style = _style(span)
    if before is None or before.segment != span.segment:
      text.append('┃', 'bold')
    elif span.has_loss and not before.has_loss:
      text.append('⟫', 'bold')
    before = span
    for kind, part in span.parts:
      text.append(token_texts.visible(part), f'{style} {_KINDS.get(kind, "")}')
  return text


def _style(span: drawn_rows.Span) -> str:
  background = _BACKGROUNDS[(span.segment - 1) % len(_BACKGROUNDS)]
  return ' '.join([
      'white', background, *(['underline'] if span.has_loss else []),
      *(['italic'] if span.sees_ahead else []),
  ])  # fmt: skip


def _strip(side: drawn_rows.Side, *, width: int) -> text_lib.Text:
  """The row as a bar: what is filled, where examples end."""
  text = text_lib.Text()
  done = start = last = 0
  for span in side.spans:
    start += span.size
    cells = round(start * width / max(side.length, 1)) - done
    done += cells
    if span.segment:
      mark = '▄' if span.has_loss else '─'
      is_first = span.segment != last
      text.append(f'┃{mark * cells}'[: cells] if is_first else mark * cells,
                  _style(span))  # fmt: skip
      last = span.segment
    else:
      text.append('░' * cells, 'dim')
  return text


def _masks(
    masks: Sequence[drawn_rows.Mask], *, width: int
) -> Iterator[Any]:
  grid = table_lib.Table.grid(padding=(0, _GAP))
  most = max(8, min(_MASK_CELLS, width // len(masks) - _GAP))
  titles, pictures = [], []
  for mask in masks:
    step = -(-max(mask.segments.shape) // most)
    cells = mask.segments[::step, ::step]
    text = text_lib.Text()
    # Two lines of cells to a line of text.
    for upper, lower in zip(
        cells[::2], [*cells[1::2], cells[-1] * 0], strict=False
    ):
      for one, other in zip(upper, lower, strict=True):
        text.append(_HALVES[bool(one), bool(other)])
      text.append('\n')
    titles.append(text_lib.Text(mask.title, style='bold'))
    pictures.append(text)
  grid.add_row(*titles)
  grid.add_row(*pictures)
  yield text_lib.Text(
      '\nWho sees whom in row 0: a line for each query, a column for each key.',
      style='bold',
  )
  yield grid


_HALVES = {
    (False, False): '·', (True, False): '▀', (False, True): '▄',
    (True, True): '█',
}  # fmt: skip
