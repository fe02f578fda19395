# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild report RUN`: a page that shows a run, while it goes on or afterwards.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import os
import sys
import tempfile

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.reports import history as history_lib
from t5wild.reports import html_document
from t5wild.reports import html_page
from t5wild.reports import markdown_page
from t5wild.reports import picture

_FORMATS = ('html', 'md', 'png')
_DESCRIPTION = """Writes what a run shows of itself: curves, events, where its
time and money went, samples, configuration, and what stands out. RUN is a
MODEL_DIR of t5wild or T5X, or a folder of TensorBoard events, such as
MaxText's; it may still be running, or broken."""


class BadOutputError(ValueError):
  """The report cannot be written there; the message has three parts."""


def main(argv: Sequence[str] | None = None) -> int:
  """Writes the report, and returns an exit code; `argv` without our name."""
  arguments = _parse(argv)
  try:
    formats = _formats(arguments.format)
    outputs = _outputs(arguments.run, arguments.output, formats)
    contents = contents_lib.read_contents(
        arguments.run, price_per_device_hour=arguments.price_per_device_hour
    )
    for kind, path in outputs.items():
      _write(kind, path, contents, outputs)
  except (history_lib.NoRunError, BadOutputError) as error:
    sys.stderr.write(f'{error}\n')
    return exit_codes.BAD_CONFIG.code
  for finding in contents.findings:
    sys.stdout.write(f'{finding.text}\n')
  sys.stdout.write(f'{contents.state}\n')
  if 'html' in outputs and html_document.packed_library() is None:
    sys.stderr.write(
        'The page has no curves: plotly is not installed. '
        f'Do: {html_document.INSTALL}\n'
    )
  sys.stdout.writelines(f'{path}\n' for path in outputs.values())
  return exit_codes.DONE.code


def _formats(text: str) -> list[str]:
  formats = text.split(',')
  unknown = [each for each in formats if each not in _FORMATS]
  if unknown:
    raise BadOutputError(
        f'There is no format {unknown[0]!r}\n'
        f'  expected: one or more of {",".join(_FORMATS)}.\n'
        '  do: --format=html,md,png'
    )
  return formats


def _outputs(
    run: str, output: str | None, formats: Sequence[str]
) -> dict[str, str]:
  """Where each format goes."""
  stem = (output or run_dir_lib.RunDir(run).join('report')).removesuffix('/')
  stem, ending = os.path.splitext(stem)
  if ending.lstrip('.') not in ('', *_FORMATS):
    stem += ending
  if not os.path.isdir(run):  # which is told first
    return {}
  folder = os.path.dirname(os.path.abspath(stem))
  why = run_dir_lib.why_unwritable(folder)
  if why is not None:
    raise BadOutputError(
        f'The report cannot be written to {folder!r}: {why}\n'
        '  expected: a folder to write to.\n'
        '  do: --output=/somewhere/else/report'
    )
  return {kind: f'{stem}.{kind}' for kind in formats}


def _write(
    kind: str,
    path: str,
    contents: contents_lib.Contents,
    outputs: dict[str, str],
) -> None:
  """Writes one format whole or not at all; a reader never sees half of it."""
  folder = os.path.dirname(os.path.abspath(path))
  try:
    os.makedirs(folder, exist_ok=True)
    handle, passing = tempfile.mkstemp(
        dir=folder, prefix='.report', suffix=f'.{kind}'
    )
    os.close(handle)
    try:
      _fill(kind, passing, contents, outputs)
      os.chmod(passing, 0o644)
      os.replace(passing, path)
    finally:
      if os.path.exists(passing):
        os.remove(passing)
  except OSError as error:
    raise BadOutputError(
        f'The report cannot be written to {path!r}: {error}\n'
        '  expected: a folder with room.\n'
        '  do: --output=/somewhere/else/report'
    ) from error


def _fill(
    kind: str,
    path: str,
    contents: contents_lib.Contents,
    outputs: dict[str, str],
) -> None:
  if kind == 'png':
    picture.draw(contents, path)
    return
  if kind == 'html':
    text = html_page.page(contents)
  else:
    beside = outputs.get('png')
    text = markdown_page.page(
        contents, picture=beside and os.path.basename(beside)
    )
  with open(path, 'w', encoding='utf-8') as file:
    file.write(text)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='t5wild report', description=_DESCRIPTION
  )
  parser.add_argument(
      'run', type=_path, metavar='RUN', help='the MODEL_DIR of a run'
  )
  parser.add_argument(
      '--output', metavar='PATH',
      help='the file to write, with or without its ending; by default '
      '`report` in RUN',
  )
  parser.add_argument(
      '--format', default='html', metavar='html,md,png',
      help='html (the page), md (Markdown), png (the curves); by default html',
  )
  parser.add_argument(
      '--price_per_device_hour', type=_price, metavar='MONEY',
      help='what one device costs an hour; then the report says money, too',
  )
  return parser.parse_args(argv)  # fmt: skip


def _path(text: str) -> str:
  if not text:
    raise argparse.ArgumentTypeError(
        'RUN is empty; expected the MODEL_DIR of a run; is a variable unset?'
    )
  return text


def _price(text: str) -> float:
  price = float(text)
  if not 0 <= price < float('inf'):
    raise argparse.ArgumentTypeError(
        f'{text!r} is no price; expected a number of at least 0, e.g. 2.5'
    )
  return price


if __name__ == '__main__':
  sys.exit(main())
