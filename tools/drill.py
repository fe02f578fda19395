# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Harms a run under `t5wild supervise`, again and again.

One JSON line for each fault, and a table at the end.

  t5wild supervise -- t5wild train ... --gin.MODEL_DIR=runs/a &
  python tools/drill.py runs/a --faults kill,stop,term --number 6
"""

import argparse
import dataclasses
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from t5wild import run_dir as run_dir_lib
from t5wild.launch import drill


def main() -> None:
  """Harms as asked."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('run', help='its MODEL_DIR, or --run_dir of supervise')
  parser.add_argument(
      '--faults', default='kill,term', help=f'of {",".join(drill.FAULTS)}'
  )
  parser.add_argument('--number', type=int, default=3)
  parser.add_argument(
      '--pause', type=float, default=30.0, help='seconds before each'
  )
  parser.add_argument('--timeout', type=float, default=1800.0)
  parser.add_argument('--seed', type=int, default=0)
  options = parser.parse_args()
  faults = options.faults.split(',')
  if wrong := sorted(set(faults) - set(drill.FAULTS)):
    parser.error(f'--faults has {wrong}: expected some of {list(drill.FAULTS)}')
  rng = random.Random(options.seed)
  run_dir = run_dir_lib.RunDir(options.run)
  results = []
  try:
    drill.living(run_dir)
    for index in range(options.number):
      time.sleep(options.pause)
      result = drill.harm(
          run_dir, faults[index % len(faults)], rng=rng,
          timeout_seconds=options.timeout,
      )  # fmt: skip
      results.append(result)
      sys.stdout.write(json.dumps(dataclasses.asdict(result)) + '\n')
      sys.stdout.flush()
  except (drill.NoRunError, TimeoutError) as error:
    sys.exit(f'{drill.table(results)}\n{error}' if results else str(error))
  sys.stdout.write(f'\n{drill.table(results)}\n')


if __name__ == '__main__':
  main()
