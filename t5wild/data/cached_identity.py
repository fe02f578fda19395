# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of all that decides the rows of caches up to some step.

What begins later is no part of them: rates and exclusions from a step that is
still to come may be changed in a run.
"""

from collections.abc import Sequence
import dataclasses

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
    division: of the order of records into windows.
  """

  step: int
  rates: Sequence[float]
  division: cached_windows.Division


class Identity:
  """The fingerprints, by what they are of; none depends on the seed."""

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

  def at(self, step: int) -> dict[str, str]:
    """Those of the batches up to that of a step."""
    begun = sum(first <= step for first in self._steps)
    if begun not in self._found:
      self._found[begun] = self._compute(step)
    return self._found[begun]

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
