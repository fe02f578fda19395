# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild migrate PATH...`: what of a T5X project runs here, what is missing.

Nothing of what is read is run; nothing is written but by --write.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import json
import os
import sys

from t5wild import exit_codes
from t5wild.compat import clean_copy
from t5wild.compat import install
from t5wild.compat import migrate
from t5wild.compat import verdicts

# As those of tools that check: 0 all is well, 1 something was found.
_SOME_DO_NOT_RUN = 1
_DESCRIPTION = """Says of each gin file and Python file written for T5X whether
it runs unchanged under t5wild, or what is missing, line by line. The files are
read, never run. The exit code is 0 where all run unchanged, 1 where some do
not, 2 where there is nothing to check."""


def main(argv: Sequence[str] | None = None) -> int:
  """Checks, and returns an exit code; `argv` without the program's name."""
  arguments = _parse(argv)
  problem = _problem(arguments.paths) or (
      arguments.write and clean_copy.problem_of(arguments.write)
  )
  if problem:
    return _refuse(problem)
  install.install()
  reports = migrate.check(
      arguments.paths, search_paths=arguments.gin_search_paths
  )
  if not reports:
    return _refuse(
        f'There is nothing of T5X in {", ".join(arguments.paths)}\n'
        '  expected: gin files (*.gin), or Python files that import t5x.\n'
        '  do: name another folder, or the files themselves.'
    )
  if arguments.write:
    try:
      copy = clean_copy.write(
          reports, arguments.paths, arguments.write,
          search_paths=arguments.gin_search_paths,
      )  # fmt: skip
    except clean_copy.DifferentRecipeError as error:
      return _refuse(str(error))
    except OSError as error:
      return _refuse(clean_copy.unwritable(arguments.write, error))
    sys.stderr.write(f'{_told(copy, arguments.write)}\n')
  if arguments.json:
    text = json.dumps(verdicts.as_json(reports), indent=2)
  else:
    texts = [
        verdicts.text_of(each, is_brief=arguments.brief) for each in reports
    ]
    text = '\n'.join([*texts, '', verdicts.summary_text(reports)])
  sys.stdout.write(f'{text}\n')
  if all(each.runs_unchanged for each in reports):
    return exit_codes.DONE.code
  return _SOME_DO_NOT_RUN


def _told(copy: clean_copy.Copy, out: str) -> str:
  """What was written, to stand beside the verdicts."""
  kept = [f'  {path}: {why}' for path, why in copy.as_they_were.items()]
  lines = [f"{len(copy.written)} gin files written to {out} in t5wild's words"]
  lines += [f'{len(kept)} copied word for word:', *kept] if kept else []
  if copy.left_out:
    lines.append(f'{len(copy.left_out)} left out, since they do not run')
  return '\n'.join(lines)


def _problem(paths: Sequence[str]) -> str | None:
  """What is wrong with the paths, or None."""
  missing = [path for path in paths if not os.path.exists(path)]
  if not missing:
    return None
  return (
      f'There is no {" and no ".join(map(repr, missing))}\n'
      '  expected: gin files, Python files, or folders of these.\n'
      '  do: correct the path; the working directory is '
      f'{os.getcwd()!r}.'
  )


def _refuse(problem: str) -> int:
  sys.stderr.write(f'{problem}\n')
  return exit_codes.BAD_CONFIG.code


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='t5wild migrate', description=_DESCRIPTION
  )
  parser.add_argument(
      'paths', nargs='+', metavar='PATH',
      help='a gin file, a Python file, or a folder: all gin files below it, '
      'and the Python files that import t5x',
  )
  parser.add_argument(
      '--gin_search_paths', type=lambda text: text.split(','), default=[],
      metavar='FOLDER,...',
      help='where included files are looked for, besides the folders above '
      'each file',
  )
  parser.add_argument(
      '--brief', action='store_true', help='one line a file, and the counts'
  )
  parser.add_argument(
      '--json', action='store_true', help='everything as JSON, for programs'
  )
  parser.add_argument(
      '--write', metavar='OUT',
      help="also write the gin files that run unchanged in t5wild's own words "
      'to this folder, which must be new or empty: imports, names and includes '
      'change, what they bind does not',
  )
  return parser.parse_args(argv)  # fmt: skip
