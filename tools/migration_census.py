# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts which gin files of repositories written for T5X run unchanged.

  python tools/migration_census.py repos/*/* [--copies HASHES] [--draw 30]

Each folder is one repository, named by its last two parts. Left out of the
count is what rests on packages that are not installed, or on code of its own
other than tasks; and what is another framework's. Files whose git hash is in
the file HASHES (one a line) are copies of T5X's own. `--draw` prints files that
run, lowest sha256 of repository/path first: what the test of the draw builds.
"""

import argparse
import collections
import contextlib
import hashlib
import pathlib
import sys

from t5wild.compat import install
from t5wild.compat import migrate
from t5wild.compat import verdicts

_UNCHANGED, *_, _FOREIGN = verdicts.VERDICTS


def census(folder: str) -> dict[str, verdicts.FileReport]:
  """repository/path -> the report of each gin file of one repository."""
  root = pathlib.Path(folder).resolve()
  paths = sorted(map(str, root.rglob('*.gin')))
  repository = pathlib.PurePath(*root.parts[-2:])
  return {
      (repository / pathlib.Path(each.path).relative_to(root)).as_posix(): each
      for each in migrate.check(paths)
  }


def counted_as(report: verdicts.FileReport) -> str:
  """`runs`, `fails`, `foreign` or `left out`."""
  if report.verdict == _FOREIGN:
    return 'foreign'
  if report.runs_unchanged:
    return 'runs'
  kinds = [f.package or f.kind == verdicts.OWN_CODE for f in report.faults]
  return 'left out' if any(kinds) else 'fails'


def drawn(reports: dict[str, verdicts.FileReport], number: int) -> list[str]:
  """Names of files that run, lowest hash first."""
  names = [name for name in reports if counted_as(reports[name]) == 'runs']
  return sorted(names, key=lambda n: hashlib.sha256(n.encode()).hexdigest())[
      :number
  ]


def _is_copy(report: verdicts.FileReport, hashes: set[str]) -> bool:
  data = pathlib.Path(report.path).read_bytes()
  return hashlib.sha1(b'blob %d\0' % len(data) + data).hexdigest() in hashes


def main() -> None:
  """Prints the counts, then the draw."""
  parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
  parser.add_argument('folders', nargs='+')
  parser.add_argument('--copies')
  parser.add_argument('--draw', type=int, default=0)
  arguments = parser.parse_args()
  install.install()
  reports = {}
  with contextlib.redirect_stdout(sys.stderr):
    for folder in arguments.folders:
      reports |= census(folder)
  hashes = set()
  if arguments.copies:
    hashes |= set(pathlib.Path(arguments.copies).read_text().split())
  own = [each for each in reports.values() if not _is_copy(each, hashes)]
  for title, group in (('all', reports.values()), ('without copies', own)):
    counts = collections.Counter(map(counted_as, group))
    total = counts['runs'] + counts['fails']
    sys.stdout.write(
        f'{title}: {counts["runs"]} of {total} run '
        f'({100 * counts["runs"] / max(total, 1):.1f} %); '
        f'{counts["left out"]} left out, {counts["foreign"]} foreign\n'
    )
  for name in drawn(reports, arguments.draw):
    sys.stdout.write(f'{name}\n')


if __name__ == '__main__':
  main()
