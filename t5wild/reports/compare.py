# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild compare RUN RUN...`: how runs differ, since when, and perhaps why."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import sys

from t5wild import exit_codes
from t5wild.reports import alignment
from t5wild.reports import comparison as comparison_lib
from t5wild.reports import comparison_page
from t5wild.reports import history as history_lib
from t5wild.reports import outputs as outputs_lib
from t5wild.reports import verdict

_FORMATS = ('html', 'md', 'json')
_DESCRIPTION = """Holds runs against the first of them: the first step whose
numbers differ and by how much, what differs in configuration, code, packages
and hardware, and what each makes of its devices and of money. Runs that differ
in nothing but their seed tell what is noise."""


def main(argv: Sequence[str] | None = None) -> int:
  """Compares, and returns an exit code; `argv` without our name."""
  arguments = _parse(argv)
  try:
    formats = outputs_lib.formats(arguments.format, known=_FORMATS)
    places = outputs_lib.places(arguments.output, formats)
    comparison = comparison_lib.compare(
        _read(arguments.runs, _prices(arguments))
    )
    for kind, path in places.items():
      outputs_lib.write(path, _made(kind, comparison, arguments.by))
  except (
      history_lib.NoRunError,
      comparison_lib.NothingInCommonError,
      alignment.NoAxisError,
      outputs_lib.BadOutputError,
  ) as error:
    sys.stderr.write(f'{error}\n')
    return exit_codes.BAD_CONFIG.code
  sys.stdout.writelines(f'{line}\n' for line in verdict.verdict(comparison))
  sys.stdout.writelines(f'{path}\n' for path in places.values())
  return exit_codes.DONE.code


def _read(
    paths: Sequence[str], prices: Sequence[float | None]
) -> list[comparison_lib.Run]:
  names = comparison_lib.names_of(paths)
  return [
      comparison_lib.read_run(path, name=name, price_per_device_hour=price)
      for path, name, price in zip(paths, names, prices, strict=True)
  ]


def _prices(arguments: argparse.Namespace) -> list[float | None]:
  """One for each run: given once for all, one each, or not at all."""
  prices = arguments.price_per_device_hour
  count = len(arguments.runs)
  if prices is None:
    return [None] * count
  if len(prices) == 1:
    return list(prices) * count
  if len(prices) != count:
    raise outputs_lib.BadOutputError(
        f'There are {len(prices)} prices for {count} runs\n'
        '  expected: one for all, or one each, in the order of the runs.\n'
        '  do: --price_per_device_hour=2.5,1.2'
    )
  return list(prices)


def _made(kind: str, comparison: comparison_lib.Comparison, by: str) -> str:
  if kind == 'html':
    return comparison_page.html(comparison, by=by)
  if kind == 'md':
    return comparison_page.markdown(comparison)
  return comparison_page.as_json(comparison)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='t5wild compare', description=_DESCRIPTION
  )
  parser.add_argument(
      'runs', nargs='+', metavar='RUN', type=outputs_lib.path_of_a_run,
      help='two MODEL_DIRs or more; the first is held against the others',
  )
  parser.add_argument(
      '--by', choices=alignment.AXES, default='step',
      help='what the curves are drawn over; by default steps',
  )
  parser.add_argument(
      '--output', metavar='PATH', default='comparison',
      help='the file to write, with or without its ending; by default '
      '`comparison` in the working directory',
  )
  parser.add_argument(
      '--format', default='html', metavar='html,md,json',
      help='html (the page), md (Markdown), json; by default html',
  )
  parser.add_argument(
      '--price_per_device_hour', metavar='MONEY,...',
      type=lambda text: [outputs_lib.price(each) for each in text.split(',')],
      help='what one device costs an hour: once for all runs, or one each; by '
      'default what gin told each run',
  )
  arguments = parser.parse_args(argv)
  if len(arguments.runs) < 2:
    parser.error(
        f'{arguments.runs[0]!r} alone cannot be compared; expected two runs or '
        'more; t5wild report shows a single one'
    )
  return arguments  # fmt: skip


if __name__ == '__main__':
  sys.exit(main())
