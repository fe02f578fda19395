# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures t5wild; prints one JSON line per figure.

  python tools/benchmark.py step --runs=7 --core=1
  python tools/benchmark.py --help
"""

import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

from benchmarks import command_line  # noqa: E402 (after the path is set)

if __name__ == '__main__':
  command_line.main()
