# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers of a subject as tables of text, for any surface."""

from collections.abc import Iterator, Sequence
import dataclasses

from t5wild.data import token_texts
from t5wild.inspecting import statistics as statistics_lib
from t5wild.inspecting import subject as subject_lib

_EXCERPT = 60
_MUCH = 0.01  # of what should not be


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sheet:
  """A table.

  Attributes:
    title: above it.
    head: names of the columns; the first is text, the others are numbers.
    rows: as many texts each.
    num_text: leading columns that are text.
    note: below it.
  """

  title: str
  head: Sequence[str]
  rows: Sequence[Sequence[str]]
  num_text: int = 1
  note: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
  """What stands out: level 'bad', 'warning' or 'note'."""

  level: str
  text: str


def make(
    subject: subject_lib.Subject, statistics: statistics_lib.Statistics
) -> list[Sheet]:
  """All tables."""
  return [
      _lengths(statistics),
      _tokens(statistics),
      _fill(subject, statistics),
      *_duplicates(subject, statistics),
  ]


def _across(
    title: str, columns: Sequence[tuple[str, dict[str, str]]]
) -> Sheet:
  """A column for each feature: narrow enough for a phone."""
  labels = list(columns[0][1])
  return Sheet(
      title=title,
      head=['', *(name for name, _ in columns)],
      rows=[
          [label, *(values[label] for _, values in columns)]
          for label in labels
      ],
  )


def _lengths(statistics: statistics_lib.Statistics) -> Sheet:
  columns = []
  for each in statistics.lengths:
    count, limit = each.values.size, each.limit
    columns.append((each.name, {
        'examples': f'{count:,}',
        **{name: _number(value) for name, value in each.quantiles.items()},
        'limit': '–' if limit is None else f'{limit:,}',
        'cut off': '–' if limit is None else _share(each.num_truncated, count),
        'tokens lost': '–' if limit is None else f'{each.num_tokens_lost:,}',
        'empty': f'{each.num_empty:,}',
    }))  # fmt: skip
  return _across('Lengths in tokens', columns)


def _tokens(statistics: statistics_lib.Statistics) -> Sheet:
  return _across('Tokens', [
      (
          each.name,
          {
              'tokens': f'{each.total:,}',
              'ids used': f'{each.num_distinct:,} of {each.num_ids:,}',
              'unknown': (
                  '–' if each.num_unknown is None
                  else _share(each.num_unknown, each.total)
              ),
              'sentinels': _share(each.num_sentinels, each.total),
              'not in the vocabulary': f'{each.num_out_of_range:,}',
              'entropy': f'{each.entropy_bits:.2f} bits',
          },
      )
      for each in statistics.tokens
  ])  # fmt: skip


def _fill(
    subject: subject_lib.Subject, statistics: statistics_lib.Statistics
) -> Sheet:
  used = subject.packs_by if subject.layout.pack else subject_lib.ALONE
  return _across(
      'Fill: the part of rows that is no padding',
      [
          (
              how,
              {
                  'where': _WHO[how] + (' (as here)' if how == used else ''),
                  'rows': f'{count:,}',
                  'examples a row': (
                      f'{subject.num_examples / max(count, 1):.2f}'
                  ),
                  **{name: f'{part:.1%}' for name, part in fill.items()},
              },
          )
          for how, (count, fill) in statistics.fill.items()
      ],
  )


_WHO = {
    subject_lib.ALONE: 'pack = False',
    subject_lib.IN_ORDER: 'live tasks',
    subject_lib.BEST_FIT: 'from a cache',
}


def _duplicates(
    subject: subject_lib.Subject, statistics: statistics_lib.Statistics
) -> Iterator[Sheet]:
  yield Sheet(
      title='Duplicates',
      head=['of', 'compared', 'repeat an earlier one'],
      rows=[
          [each.name, f'{each.count:,}', _share(each.num_repeats, each.count)]
          for each in statistics.duplicates
      ],
      note='for inputs: how many are asked for more than one target',
  )
  rows = [
      [each.name, _excerpt(subject, each.name, number), f'{times:,}']
      for each in statistics.duplicates
      for number, times in each.worst
      if each.name != 'documents'
  ]
  if rows:
    yield Sheet(
        title='The most frequent of them',
        head=['of', 'text', 'times'], rows=rows, num_text=2,
    )  # fmt: skip


def _excerpt(subject: subject_lib.Subject, what: str, number: int) -> str:
  name = subject.layout.features[0]
  if what == 'examples' and name == 'inputs' and 'targets' in subject.examples:
    return ' ⟶ '.join(
        _text(subject, each, number) for each in ('inputs', 'targets')
    )
  return _text(subject, name, number)


def _text(subject: subject_lib.Subject, name: str, number: int) -> str:
  rows = subject.examples[name]
  start = int(rows.lengths[:number].sum())
  tokens = rows.values[start : start + int(rows.lengths[number])][:400]
  parts = token_texts.parts_of(tokens.tolist(), subject.vocabularies[name])
  text = token_texts.visible(''.join(text for _, text in parts))
  return text if len(text) <= _EXCERPT else f'{text[:_EXCERPT]}…'


def top_tokens(statistics: statistics_lib.Statistics) -> list[Sheet]:
  """The most frequent tokens of each feature."""
  return [
      Sheet(
          title=f'Most frequent tokens of {each.name}',
          head=['token', 'id', 'count', 'share'],
          rows=[
              [text, f'{token}', f'{count:,}', f'{count / each.total:.2%}']
              for token, text, count in each.top
          ],
      )
      for each in statistics.tokens
  ]


def findings(
    subject: subject_lib.Subject, statistics: statistics_lib.Statistics
) -> list[Finding]:
  """What to look at first."""
  return [
      *_bad_tokens(statistics),
      *_cut_off(statistics),
      *_repeated(statistics),
      *_other(subject, statistics),
  ]


def _bad_tokens(
    statistics: statistics_lib.Statistics,
) -> Iterator[Finding]:
  for each in statistics.tokens:
    if each.num_out_of_range:
      yield Finding(
          level='bad',
          text=f'{each.num_out_of_range:,} tokens of {each.name} are beyond '
          f'the vocabulary of {each.num_ids:,} ids: it is another one that '
          'these tokens are of',
      )
    if each.num_unknown and each.num_unknown > _MUCH * each.total:
      yield Finding(
          level='warning',
          text=f'{each.num_unknown / each.total:.1%} of the tokens of '
          f'{each.name} are unknown to the vocabulary',
      )


def _cut_off(statistics: statistics_lib.Statistics) -> Iterator[Finding]:
  for each in statistics.lengths:
    if each.num_truncated > _MUCH * each.values.size:
      yield Finding(
          level='warning',
          text=f'{each.num_truncated / each.values.size:.1%} of the examples '
          f'lose the end of their {each.name}: {each.num_tokens_lost:,} tokens '
          f'({each.num_tokens_lost / each.values.sum():.1%}) are beyond '
          f'{each.limit:,}',
      )
    if each.num_empty:
      yield Finding(
          level='warning',
          text=f'{each.num_empty:,} {each.name} have no token',
      )


def _repeated(statistics: statistics_lib.Statistics) -> Iterator[Finding]:
  for each in statistics.duplicates:
    if each.num_repeats > _MUCH * each.count:
      yield Finding(
          level='warning',
          text=f'{each.num_repeats / each.count:.1%} of the {each.count:,} '
          + (
              'inputs are asked for several targets'
              if each.name == statistics_lib.CONFLICTS
              else f'{each.name} repeat an earlier one'
          ),
      )


def _other(
    subject: subject_lib.Subject, statistics: statistics_lib.Statistics
) -> Iterator[Finding]:
  if subject.skipped:
    yield Finding(
        level='bad',
        text=f'{subject.skipped:,} corrupt lines or rows were left out (the '
        'log names the first)',
    )
  used = subject.packs_by if subject.layout.pack else subject_lib.ALONE
  fill = max(statistics.fill[used][1].values())
  best = max(statistics.fill[subject_lib.BEST_FIT][1].values())
  if best - fill > 0.05:
    yield Finding(
        level='note',
        text=f'rows are {fill:.0%} full where they are fullest; from a cache '
        f'(t5wild cache) they would be {best:.0%}',
    )
  for note in subject.notes:
    yield Finding(level='note', text=note)


def _number(value: float) -> str:
  return f'{value:,.0f}' if value >= 100 or value.is_integer() else (
      f'{value:,.1f}'
  )


def _share(count: int, total: int) -> str:
  if not count:
    return '0'
  share = count / max(total, 1)
  return f'{count:,} ({share:.{2 if share < 0.1 else 1}%})'
