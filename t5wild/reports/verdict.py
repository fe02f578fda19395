# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A comparison in words: how far apart, since when, why perhaps, how fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses

import numpy as np

from t5wild.reports import comparison as comparison_lib
from t5wild.reports import setting_differences
from t5wild.vitals import records as records_lib

# What arithmetic alone does in the first steps, relative; it grows from there.
# float32 rounds at 6e-8, and sums of thousands of terms multiply that; TF32
# rounds at 5e-4, bfloat16 at 2**-8.
_EXPECTED = {
    'parallelism': (1e-5, 'another mesh sums in another order'),
    'hardware': (4e-3, 'other hardware multiplies float32 by other means '
                 '(TF32, bfloat16 passes) unless the precision is pinned'),
    'precision': (4e-3, 'another dtype rounds otherwise'),
    'package': (1e-5, 'another compiler fuses and sums otherwise'),
}  # fmt: skip
# With one of these the runs are not meant to agree.
_OTHER_RUN = ('model', 'data', 'optimizer', 'seed', 'setting')
_EXPLAINED = 'That is expected from arithmetic'
_CAUSES = 3
_MAX_VALUE = 40  # characters
_CLEARLY = 2.0  # standard deviations between seeds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise:
  """How far repeated seeds of one recipe lie apart at their end.

  Attributes:
    runs: their names.
    deviation: standard deviation of the metric between them.
  """

  runs: Sequence[str]
  deviation: float


def verdict(comparison: comparison_lib.Comparison) -> list[str]:
  """Sentences on each run against the first, on speed, and on what is missing.
  """
  lines = []
  noise = noise_of(comparison)
  for name in comparison.left_out:
    lines.append(
        f'{name} is left out: it has no metric at a common step with '
        f'{comparison.runs[0].name} (another task, or another stats_period?).'
    )
  for run in comparison.runs[1:]:
    mine = [c for c in comparison.curves if c.run == run.name]
    lines += _numbers(comparison, mine, noise)
    lines += _programs_and_samples(comparison.runs[0], run)
  lines += _speed(comparison)
  if not comparison.differences and all(
      run.texts.settings for run in comparison.runs
  ):
    lines.append('Nothing that was written down differs between the runs.')
  for run in comparison.runs:
    absent = [
        words
        for words, there in (
            ('configuration', run.texts.settings),
            ('environment.json', run.texts.environment),
        )
        if not there
    ]
    if absent:
      lines.append(
          f'{run.name} left no {" and no ".join(absent)}: what differs there '
          'is not known.'
      )
  return lines


def _programs_and_samples(
    first: comparison_lib.Run, run: comparison_lib.Run
) -> list[str]:
  """Whether both compiled the same, and read the same samples."""
  lines = []
  ours, theirs = first.texts.program, run.texts.program
  if ours and theirs:
    lines.append(f'{run.name} {_program(ours, theirs)} {first.name}.')
  ours, theirs = first.texts.data, run.texts.data
  if ours and theirs:
    other = [name for name in {**ours, **theirs}
             if ours.get(name) != theirs.get(name)]  # fmt: skip
    told = (
        f'other samples than {first.name}, or in another order: their ledgers '
        f'differ in {", ".join(other[:_CAUSES])}'
        if other
        else f'the same samples as {first.name} at the same steps'
    )
    lines.append(f'By its ledger {run.name} read {told}.')
  return lines


def _program(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
  whole, bare = list(ours)[:2]
  if ours[whole] == theirs.get(whole):
    return 'compiled the same program as'
  if ours[bare] == theirs.get(bare):
    return 'compiled the same program, but for its constants (seeds), as'
  counts = [
      f'{name.removeprefix("operations, ")} {theirs.get(name, "0")} '
      f'(there {ours.get(name, "0")})'
      for name in {**ours, **theirs}
      if name not in (whole, bare) and ours.get(name) != theirs.get(name)
  ]
  if not counts:
    return (
        'compiled another program, of the same operations in other places or '
        'shapes, than'
    )
  more = f' and {len(counts) - _CAUSES} more' if len(counts) > _CAUSES else ''
  return (
      f'compiled another program, with other numbers of operations '
      f'({", ".join(counts[:_CAUSES])}{more}), than'
  )


def noise_of(comparison: comparison_lib.Comparison) -> Noise | None:
  """From runs that differ in nothing but seeds; None with fewer than two."""
  first = comparison.runs[0]
  loss = _loss_of(comparison.curves)
  if loss is None:
    return None
  ends = {}
  for run in comparison.runs[1:]:
    found = setting_differences.differences([first.texts, run.texts])
    kinds = {d.kind for d in found} - set(setting_differences.NO_CAUSES)
    curve = [
        c
        for c in comparison.curves
        if c.run == run.name and c.metric == loss.metric
    ]
    if kinds == {'seed'} and curve:
      ends[first.name], ends[run.name] = curve[0].end
  if len(ends) < 2:
    return None
  return Noise(
      runs=list(ends), deviation=float(np.std(list(ends.values()), ddof=1))
  )


def _loss_of(
    curves: Sequence[comparison_lib.CurveDifference],
) -> comparison_lib.CurveDifference | None:
  """The curve that decides: the held-out loss, else the training loss."""
  losses = [c for c in curves if 'loss' in c.metric.rsplit('/', 1)[-1]]
  held_out = [c for c in losses if 'eval' in c.metric]
  # Two evaluations say less than a curve.
  long = [c for c in held_out if c.num_steps >= 2]
  return next(iter(long or losses), None)


def _numbers(
    comparison: comparison_lib.Comparison,
    curves: Sequence[comparison_lib.CurveDifference],
    noise: Noise | None,
) -> list[str]:
  name = curves[0].run
  first = comparison.runs[0].name
  differing = [c for c in curves if c.first_step is not None]
  if not differing:
    steps = max(c.num_steps for c in curves)
    return [
        f'{name} has the same numbers as {first}, bit for bit, at all '
        f'{steps:,} common steps.'
    ]
  training = [c for c in differing if c.metric.startswith('train/')]
  earliest = min(training or differing, key=lambda c: c.first_step)
  at = earliest.relative[np.argmax(earliest.relative > 0)]
  lines = [
      f'{name} differs from {first} first at step {earliest.first_step:,}, in '
      f'{_short(earliest.metric)}, {_by(at)}; {_largest(earliest)}.'
  ]
  reasons = _why(comparison, name, float(at))
  lines += reasons
  loss = _loss_of(curves)
  if loss is not None:
    # What arithmetic explains asks for no seeds.
    is_explained = any(line.startswith(_EXPLAINED) for line in reasons)
    lines.append(_end(loss, first, noise, is_explained=is_explained))
  return lines


def _by(relative: float) -> str:
  if not np.isfinite(relative):
    return 'where one of them is not finite'
  return f'by {relative:.1e} of its value'


def _largest(curve: comparison_lib.CurveDifference) -> str:
  if not np.isfinite(curve.largest):
    return f'from step {curve.largest_step:,} on one of them is not finite'
  return (
      f'the largest difference is {curve.largest:.1e} at step '
      f'{curve.largest_step:,}'
  )


def _why(
    comparison: comparison_lib.Comparison, name: str, at: float
) -> list[str]:
  """What may be behind it, and whether arithmetic alone may be."""
  names = [run.name for run in comparison.runs]
  place = names.index(name)
  telling = [
      d
      for d in comparison.differences
      if d.kind not in setting_differences.NO_CAUSES
      and d.values[0] != d.values[place]
  ]
  if not telling:
    return []
  kinds = list(dict.fromkeys(d.kind for d in telling))
  told = '; '.join(
      f'{d.name}: {_clipped(d.values[0])} against {_clipped(d.values[place])}'
      for d in telling[:_CAUSES]
  )
  lines = [f'Most telling of {len(telling):,} differences: {told}.']
  expected = [_EXPECTED[kind] for kind in kinds if kind in _EXPECTED]
  if any(kind in _OTHER_RUN for kind in kinds) or not expected:
    return lines
  bound, why = max(expected)
  if at <= bound:
    lines.append(
        f'{_EXPLAINED}: {why} (up to about {bound:.0e} in '
        'the first steps, and more from there on).'
    )
  else:
    lines.append(
        f'That is more than arithmetic explains: {why}, but by no more than '
        f'about {bound:.0e} in the first steps. Something else differs.'
    )
  return lines


def _clipped(value: str) -> str:
  """A value in a sentence; the table has the whole of it."""
  return value if len(value) <= _MAX_VALUE else f'{value[:_MAX_VALUE]}…'


def _end(
    loss: comparison_lib.CurveDifference,
    first: str,
    noise: Noise | None,
    *,
    is_explained: bool,
) -> str:
  a, b = loss.end
  text = (
      f'At the end of the common steps {_short(loss.metric)} is {b:.5g} in '
      f'{loss.run} and {a:.5g} in {first}'
  )
  if not np.isfinite([a, b]).all() or (noise is None and is_explained):
    return f'{text}.'
  if noise is None:
    return (
        f'{text}; whether that is more than noise is not known without runs '
        'that differ in their seed alone.'
    )
  if loss.run in noise.runs:
    return f'{text}; both are repeats of one recipe.'
  if not noise.deviation:
    return f'{text}; the repeated seeds do not differ.'
  ratio = abs(a - b) / noise.deviation
  judged = 'more than noise' if ratio > _CLEARLY else 'within noise'
  return (
      f'{text}: {judged}, {ratio:.1f} standard deviations of '
      f'{len(noise.runs)} seeds.'
  )


def _speed(comparison: comparison_lib.Comparison) -> list[str]:
  first = comparison.speeds[0]
  lines = []
  for speed in comparison.speeds[1:]:
    parts = []
    for words, a, b in (
        ('as many tokens a second', first.tokens_per_second,
         speed.tokens_per_second),
        ('as many a device', first.tokens_per_second_per_device,
         speed.tokens_per_second_per_device),
        ('as many for the same money', first.tokens_per_money,
         speed.tokens_per_money),
    ):  # fmt: skip
      if a and b:
        parts.append(f'{b / a:.2f} times {words}')
    if parts:
      told = ', '.join(parts)
      lines.append(f'{speed.run} makes {told}, held against {first.run}.')
  return lines


def _short(name: str) -> str:
  return name.replace(records_lib.LOSS, 'loss')
