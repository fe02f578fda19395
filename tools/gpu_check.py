# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks and measures the first device; writes one JSON file, part by part.

  python tools/gpu_check.py --output=gpu_check.json     # 8 minutes at most
  python tools/gpu_check.py --small                     # tiny sizes, any device

Needs jax, flax and t5wild; neither seqio nor TensorFlow. Exit code 1: a value
or gradient was not what it should be, or a part failed.
"""

import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

from gpu_checks import command_line  # noqa: E402 (after the path is set)

if __name__ == '__main__':
  sys.exit(command_line.main(sys.argv[1:]))
