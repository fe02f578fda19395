# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a ladder tells: its laws, the run foretold, in words and as data."""

from __future__ import annotations

from collections.abc import Sequence
import csv
import dataclasses
import io
import json
from typing import Any

import numpy as np

from t5wild.experiments import ladder as ladder_lib
from t5wild.experiments import scaling_fit

_WELL_FITTED = 0.02  # of a loss, off the law, by the median of runs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Findings:
  """All that is told of a ladder.

  Attributes:
    metric: the loss that the laws are of.
    runs: that have a loss; the laws are fitted to them.
    lost: that have none, but were to be trained.
    target: the run foretold; with a loss if it was trained.
    law: of parameters and tokens.
    power_law: of compute; None with too few runs that nothing cheaper beats.
    predicted: the target's loss.
    lines: the same in words.
  """

  metric: str
  runs: Sequence[ladder_lib.Rung]
  lost: Sequence[ladder_lib.Rung]
  target: ladder_lib.Rung
  law: scaling_fit.Law
  power_law: scaling_fit.PowerLaw | None
  predicted: scaling_fit.Interval
  lines: Sequence[str] = ()

  @property
  def flops_per_parameter_and_token(self) -> float:
    """Of these models: the median over runs, about 6 where models are large."""
    return float(
        np.median([r.flops / r.num_parameters / r.tokens for r in self.runs])
    )


def find(
    rungs: Sequence[ladder_lib.Rung], *, metric: str, seed: int = 0
) -> Findings:
  """Fits the laws to the runs that have a loss.

  Args:
    rungs: the target comes last.
    metric: the name of the loss.
    seed: of the draws that tell how sure the laws are.

  Raises:
    scaling_fit.CannotFitError: those are too few.
  """
  *climbed, target = rungs
  runs = [r for r in climbed if r.result.value is not None]
  law = scaling_fit.fit(
      [r.num_parameters for r in runs],
      [r.tokens for r in runs],
      [r.result.value for r in runs],
      seed=seed,
  )
  power_law = scaling_fit.fit_power_law(
      [r.flops for r in runs], [r.result.value for r in runs], seed=seed
  )
  found = Findings(
      metric=metric,
      runs=runs,
      lost=[r for r in climbed if r.result.value is None],
      target=target,
      law=law,
      power_law=power_law,
      predicted=law.predicted(target.num_parameters, target.tokens),
  )
  return dataclasses.replace(found, lines=_lines(found))


def as_csv(rungs: Sequence[ladder_lib.Rung]) -> str:
  """A row a run."""
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerow([
      'size', 'parameters', 'tokens', 'steps', 'flops', 'loss', 'status',
      'seconds', 'run',
  ])  # fmt: skip
  for rung in rungs:
    result = rung.result
    writer.writerow([
        rung.size, rung.num_parameters, int(rung.tokens), rung.num_steps,
        f'{rung.flops:.6g}', '' if result.value is None else result.value,
        result.status, '' if result.seconds is None else result.seconds,
        rung.point.name,
    ])  # fmt: skip
  return text.getvalue()


def as_json(found: Findings) -> str:
  """The laws for programs."""
  scale_n, scale_d = found.law.scales
  target = found.target
  value: dict[str, Any] = {
      'metric': found.metric,
      'law': 'E + A / N^a + B / D^b',
      'E': dataclasses.asdict(found.law.irreducible),
      'A': scale_n,
      'B': scale_d,
      **{
          name: dataclasses.asdict(each)
          for name, each in found.law.exponents.items()
      },
      'target': {
          'parameters': target.num_parameters,
          'tokens': target.tokens,
          'flops': target.flops,
          'predicted': dataclasses.asdict(found.predicted),
          'measured': target.result.value,
      },
      'runs': len(found.runs),
      'runs_without_a_loss': [r.point.name for r in found.lost],
  }
  if found.power_law is not None:
    value['power_law_of_compute'] = {
        'exponent': dataclasses.asdict(found.power_law.exponent),
        'target': float(found.power_law.loss(target.flops)),
    }
  return json.dumps(value, indent=2) + '\n'


def _lines(found: Findings) -> list[str]:
  law, target = found.law, found.target
  exponents = law.exponents
  scale_n, scale_d = law.scales
  lines = []
  if found.lost:
    told = ', '.join(f'{r.point.name} {r.result.status}' for r in found.lost)
    lines.append(f'Left out, as they have no loss: {told}.')
  lines += [
      f'Of {len(found.runs)} runs: L = E + A / N^a + B / D^b, with '
      f'E {law.irreducible}, a {exponents["a"]}, b {exponents["b"]}, '
      f'A {scale_n:.3g}, B {scale_d:.3g}; in brackets 95 %.',
      f'They lie {_spread(found):.2%} off it, by their median.',
      'For the lowest loss of some compute, parameters grow as compute to the '
      f'power of {exponents["b/(a+b)"]}.',
      f'Foretold for {target.num_parameters:,} parameters and '
      f'{target.tokens:,.0f} tokens, {target.flops:.3g} operations: '
      f'{found.predicted}.',
  ]
  if found.power_law is not None:
    lines.append(
        'A plain power of compute, with nothing that stays, has the exponent '
        f'{found.power_law.exponent} and would say '
        f'{float(found.power_law.loss(target.flops)):.3g}.'
    )
  if target.result.value is not None:
    lines.append(_verdict(target.result.value, found.predicted))
  return lines + _warnings(found)


def _verdict(measured: float, predicted: scaling_fit.Interval) -> str:
  is_inside = predicted.low <= measured <= predicted.high
  return (
      f'It came to {measured:.4g}: {"within" if is_inside else "outside"} what '
      f'was foretold, {measured / predicted.value - 1:+.2%} off.'
  )


def _warnings(found: Findings) -> list[str]:
  lines = []
  if _spread(found) > _WELL_FITTED:
    lines.append(
        'The runs do not follow the law: look at the figures for a bend. Where '
        'the loss begins to fall late, as it does when a model learns a new '
        'thing, leave the shortest runs out or train all longer.'
    )
  for name, each in found.law.exponents.items():
    if each.high - each.low > each.value:
      lines.append(
          f'{name} is hardly known from these runs: a wider range of '
          f'{"sizes" if name == "a" else "tokens"} would tell it.'
          if name in ('a', 'b')
          else f'{name} is hardly known, and so neither is the best split.'
      )
  most = max(r.flops for r in found.runs)
  if found.target.flops > 100 * most:
    lines.append(
        f'The target costs {found.target.flops / most:,.0f} times the largest '
        'run: so far away the law itself is in doubt, whatever its brackets.'
    )
  return lines


def _spread(found: Findings) -> float:
  fitted = found.law.loss(
      [r.num_parameters for r in found.runs], [r.tokens for r in found.runs]
  )
  losses = np.array([r.result.value for r in found.runs])
  return float(np.median(np.abs(losses / fitted - 1)))
