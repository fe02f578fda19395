# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Prints the table of docs/scale.md from what `t5wild precompile` has written.

  python tools/scale_table.py FOLDER

FOLDER has a folder for each model, which was its --output_dir.
"""

import pathlib
import sys

from t5wild.planner import scale_table

MACHINES = (
    'h100:1x8', 'h100:8x8', 'h100:32x8', 'v5e:16x16', 'v5p:4x4x4', 'v6e:8x8'
)  # fmt: skip


def main(argv: list[str]) -> int:
  """Prints the table; returns an exit code."""
  if len(argv) != 2:
    print(__doc__, file=sys.stderr)  # noqa: T201 -- the product
    return 2
  found = scale_table.cells(pathlib.Path(argv[1]), MACHINES)
  print(scale_table.markdown(found))  # noqa: T201 -- the product
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv))
