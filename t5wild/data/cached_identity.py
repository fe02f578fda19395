# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of all that decides the rows of caches up to some step.

What begins later is no part of them: rates and exclusions from a step that is
still to come may be changed in a run.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from t5wild.data import cached_sources
from t5wild.data import cached_windows
from t5wild.data import exclusions as exclusions_lib
from t5wild.data import fingerprints
from t5wild.data import model_rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Phase:
  """How records are mixed and divided from a step on.

  Attributes:
    step: whose batch is the first.
    rates: of records of each source, in proportion.
    asked: rates of tasks as they were asked for, which those are made of.
    division: of the order of records into windows.
  """

  step: int
  rates: Sequence[float]
  asked: Mapping[str, float]
  division: cached_windows.Division

  @property
  def in_words(self) -> str:
    """The rates that were asked for."""
    return ', '.join(
        f'{task} {rate:g}' for task, rate in self.asked.items() if rate
    )


class Identity:
  """The fingerprints, by what they are of; none depends on the seed.

  Words go with them, in a saved position too, to tell what has changed. They
  are cut off, since a position is small, and nothing is compared by them.
  """

  def __init__(
      self,
      sources: Sequence[cached_sources.CachedSource],
      phases: Sequence[Phase],
      *,
      exclusions: exclusions_lib.Exclusions,
      layout: model_rows.Layout,
      shuffle: bool,
  ):
    """Computes nothing yet."""
    self._sources = sources
    self._phases = phases
    self._exclusions = exclusions
    self._layout = layout
    self._shuffle = shuffle
    self._steps = sorted(
        {*exclusions.steps, *(phase.step for phase in phases)}
    )
    self._found: dict[int, dict[str, str]] = {}
    self._words: dict[int, dict[str, str]] = {}

  def at(self, step: int) -> dict[str, str]:
    """Those of the batches up to that of a step."""
    begun = sum(first <= step for first in self._steps)
    if begun not in self._found:
      self._found[begun] = self._compute(step)
    return self._found[begun]

  def words_at(self, step: int) -> dict[str, str]:
    """What can be told of each, of the batches up to that of a step."""
    begun = sum(first <= step for first in self._steps)
    if begun not in self._words:
      whole = self._compute_words(step)
      self._words[begun] = {
          name: text if len(text) <= _MOST_WORDS else f'{text[:_MOST_WORDS]}...'
          for name, text in whole.items()
          if text
      }
    return self._words[begun]

  def _compute_words(self, step: int) -> dict[str, str]:
    first, *later = [phase for phase in self._phases if phase.step <= step]
    read = [
        source
        for index, source in enumerate(self._sources)
        if any(phase.rates[index] for phase in (first, *later))
    ]
    layout = self._layout
    lengths = ', '.join(f'{k} {v}' for k, v in layout.lengths.items())
    changes = [f'from step {x.step}: {x.in_words}' for x in later]
    if excluded := self._exclusions.in_force(step):
      changes.append(
          f'{len(excluded)} documents left out, the last from step '
          f'{excluded[-1][0]}'
      )
    return {
        'caches': ', '.join(
            f'{source.manifest.task} {len(source)} records '
            f'{source.manifest.num_tokens} tokens'
            for source in read
        ),
        'order': (
            f'{first.in_words}; {"" if self._shuffle else "not "}shuffled; '
            f'{first.division.span(0)[1]} records a window'
        ),
        'making': (
            f'{layout.kind}{", packed" if layout.pack else ""}, {lengths}; '
            + ' '.join(dict.fromkeys(map(_rules_of, read)))
        ),
        'changes': '; '.join(changes),
    }

  def _compute(self, step: int) -> dict[str, str]:
    first, *later = [phase for phase in self._phases if phase.step <= step]
    read = [
        index
        for index in range(len(self._sources))
        if any(phase.rates[index] for phase in (first, *later))
    ]
    sources = [self._sources[index] for index in read]
    return {
        'caches': fingerprints.of_value(
            [source.manifest.fingerprint for source in sources]
        ),
        'order': fingerprints.of_value([
            [rate for rate in first.rates if rate],
            dataclasses.astuple(first.division),
            self._shuffle,
        ]),
        'making': fingerprints.of_value([
            repr(self._layout), *(repr(source.objective) for source in sources)
        ]),
        'changes': self._changes(later, step),
    }

  def _changes(self, later: Sequence[Phase], step: int) -> str:
    """Of what began after the first batch; empty where nothing did."""
    excluded = self._exclusions.in_force(step)
    if not later and not excluded:
      return ''
    names = [source.manifest.task for source in self._sources]
    return fingerprints.of_value([
        [
            [
                phase.step,
                {
                    name: rate
                    for name, rate in zip(names, phase.rates, strict=True)
                    if rate
                },
                dataclasses.astuple(phase.division),
            ]
            for phase in later
        ],
        excluded,
    ])


def _rules_of(source: cached_sources.CachedSource) -> str:
  """The objective, by its rules."""
  if source.objective is None:
    return 'as cached'
  return ' '.join(repr(each.rule) for each in source.objective.ingredients)


def difference(
    state: Mapping[str, Any],
    own: Mapping[str, Any],
    *,
    source: str,
    words: Mapping[str, str],
    step: int,
) -> str:
  """What differs between a saved position and the data; '' where nothing does.

  Args:
    state: the position.
    own: the seed and the fingerprints as they are now.
    source: what is read, for the message.
    words: that go with them.
    step: of the position.
  """
  differing = [key for key in own if state.get(key, '') != own[key]]
  if not differing:
    return ''
  saved_words = state.get(WORDS, {})
  lines = []
  for key in differing:
    saved, now = state.get(key) or 'none', own[key] or 'none'
    what = _MEANINGS[key]
    if key == 'seed':
      lines.append(f'  {what}: saved {saved}, now {now}')
      continue
    lines.append(f'  {what}:')
    for side, text, mark in (
        ('saved', saved_words.get(key), saved), ('now', words.get(key), now)
    ):  # fmt: skip
      told = f'{text}, ' if text else ''
      lines.append(f'    {side + ":":6} {told}fingerprint {mark}')
  return (
      f'the saved data position is not one in {source}; what differs:\n'
      + '\n'.join(lines)
      + '\nExpected the same, or rows would be lost and repeated. Restore '
      'what has changed'
      + (
          f' (new rates and exclusions may begin at step {step + 1} or later)'
          if 'changes' in differing or 'order' in differing
          else ''
      )
      + ', or go on in the changed data: '
      'data.CachedDatasetConfig.on_changed_data = "continue".'
  )


WORDS = 'words'  # of a position
_MOST_WORDS = 80
_MEANINGS = {
    'caches': 'the records of the caches (CACHE_DIR)',
    'order': 'their order (shuffle, rates, window_tokens)',
    'making': 'rows made of them (objective, lengths, packing, model)',
    'changes': (
        'what was changed at steps before (rates_from_step, exclude_from_step)'
    ),
    'seed': 'the seed',
}
