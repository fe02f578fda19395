# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""At which rates tasks are mixed, and from which step on."""

from collections.abc import Mapping, Sequence
import dataclasses
import difflib

from t5wild.data import index_order

UNITS = ('examples', 'tokens')
Rates = Mapping[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
  """Rates from one step on.

  Attributes:
    step: whose batch is the first; 0 for those at the beginning.
    rates: of each task, in proportion; 0 for one that is left out.
  """

  step: int
  rates: Rates


def plan_stages(
    cached: Rates,
    *,
    rates: Rates | None,
    later: Mapping[int, Rates] | None,
    temperature: float,
) -> list[Stage]:
  """The rates of all tasks at the beginning, and those that follow.

  Args:
    cached: rates as the mixture was cached, of every task there is.
    rates: in the place of those; a task that is not named is left out.
    later: by the step from which on they hold, ascending.
    temperature: rates are taken to the power of one over this.

  Raises:
    ValueError: for names of no task, rates by which nothing is mixed, and
      steps that do not ascend.
  """
  steps = list(later or {})
  for step in steps:
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
      raise ValueError(
          f'rates_from_step has the step {step!r}: expected whole numbers from '
          "1 on, each with rates. Write {10000: {'task': 1.0}}."
      )
  if steps != sorted(steps):
    raise ValueError(
        f'the steps of rates_from_step are {steps}: expected them to ascend. '
        'Bring them into order.'
    )
  given = [(0, 'rates', cached if rates is None else rates)]
  for step in steps:
    given.append((step, f'rates_from_step[{step}]', (later or {})[step]))
  stages: list[Stage] = []
  for step, name, wanted in given:
    _check_rates(wanted, cached, name=f'CachedDatasetConfig.{name}')
    _check_names(wanted, cached, name=name)
    whole = {task: float(wanted.get(task, 0.0)) for task in cached}
    index_order.check_rates(whole)
    stages.append(
        Stage(
            step=step,
            rates={
                task: rate ** (1 / temperature) if rate else 0.0
                for task, rate in whole.items()
            },
        )
    )
  return stages


def _check_rates(wanted: object, cached: Rates, *, name: str) -> None:
  """Refuses what names no rate of any task."""
  is_known = isinstance(wanted, Mapping) and all(
      isinstance(rate, int | float) and not isinstance(rate, bool)
      for rate in wanted.values()
  )
  if is_known and wanted:
    return
  what = 'names no task' if wanted == {} else f'is {wanted!r}'
  mend = (
      'None takes those of the cached mixture. '
      if name.endswith('.rates')
      else ''
  )
  whole = dict.fromkeys(sorted(cached), 1.0)
  raise ValueError(
      f'{name} {what}: expected a number for one at least of the tasks '
      f'{sorted(cached)}. {mend}Write it as {whole}; a rate of 0 leaves a task '
      'out.'
  )


def _check_names(wanted: Rates, cached: Rates, *, name: str) -> None:
  unknown = sorted(set(wanted) - set(cached))
  if not unknown:
    return
  near = [
      match
      for task in unknown
      for match in difflib.get_close_matches(task, list(cached), n=1)
  ]
  raise ValueError(
      f'CachedDatasetConfig.{name} name {unknown}: expected tasks of the '
      f'caches, which are {sorted(cached)}'
      + (f' (did you mean {near}?)' if near else '')
      + '. Correct the names, or cache those tasks too.'
  )


def of_records(
    rates: Sequence[float],
    *,
    tokens_per_record: Sequence[float],
    examples_per_record: Sequence[float],
    is_cut: Sequence[bool],
    unit: str,
) -> list[float]:
  """Rates by which records are mixed, so that what is asked for comes out.

  Where an objective cuts all text, examples are about as long for all tasks, so
  a task of long records gives fewer of them: rates of examples are of tokens.

  Args:
    rates: of each task.
    tokens_per_record: mean of each task.
    examples_per_record: about, of each task; asked where some are whole.
    is_cut: whether an objective cuts its records.
    unit: 'examples' or 'tokens'.
  """
  read = [cut for rate, cut in zip(rates, is_cut, strict=True) if rate]
  of_one = examples_per_record
  if unit == 'tokens' or all(read):
    of_one = tokens_per_record
  return [rate / each for rate, each in zip(rates, of_one, strict=True)]
