# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild report RUN`: a page that shows a run, while it goes on or afterwards.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import os
import sys

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.reports import contents as contents_lib
from t5wild.reports import history as history_lib
from t5wild.reports import html_document
from t5wild.reports import html_page
from t5wild.reports import markdown_page
from t5wild.reports import outputs as outputs_lib
from t5wild.reports import picture

_FORMATS = ('html', 'md', 'png')
_DESCRIPTION = """Writes what a run shows of itself: curves, events, where its
time and money went, samples, configuration, and what stands out. RUN is a
MODEL_DIR of t5wild or T5X, or a folder of TensorBoard events, such as
MaxText's; it may still be running, or broken."""


def main(argv: Sequence[str] | None = None) -> int:
  """Writes the report, and returns an exit code; `argv` without our name."""
  arguments = _parse(argv)
  try:
    formats = outputs_lib.formats(arguments.format, known=_FORMATS)
    outputs = _outputs(arguments.run, arguments.output, formats)
    contents = contents_lib.read_contents(
        arguments.run, price_per_device_hour=arguments.price_per_device_hour
    )
    for kind, path in outputs.items():
      outputs_lib.write(path, _made(kind, contents, outputs))
  except (history_lib.NoRunError, outputs_lib.BadOutputError) as error:
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


def _outputs(
    run: str, output: str | None, formats: Sequence[str]
) -> dict[str, str]:
  """Where each format goes; nowhere without a run, which is told first."""
  if not os.path.isdir(run):
    return {}
  if output is None:
    output = run_dir_lib.RunDir(run).join('report')
  return outputs_lib.places(output, formats)


def _made(kind: str, contents: contents_lib.Contents, outputs: dict[str, str]):
  """What is written: a text, or for a picture what writes it."""
  if kind == 'png':
    return lambda path: picture.draw(contents, path)
  if kind == 'html':
    return html_page.page(contents)
  beside = outputs.get('png')
  return markdown_page.page(
      contents, picture=beside and os.path.basename(beside)
  )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='t5wild report', description=_DESCRIPTION
  )
  parser.add_argument(
      'run', type=outputs_lib.path_of_a_run, metavar='RUN',
      help='the MODEL_DIR of a run',
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
      '--price_per_device_hour', type=outputs_lib.price, metavar='MONEY',
      help='what one device costs an hour; then the report says money, too',
  )
  return parser.parse_args(argv)  # fmt: skip


if __name__ == '__main__':
  sys.exit(main())
