# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `t5wild train`: takes its flags, and makes up its records.

Its loss after `steps` is `x + 1 / steps`, for the binding `x`; `x` of 'boom'
fails, 'nan' diverges, 'sleep' waits to be killed. A second start in a folder is
told in `starts`.
"""

import ast
import os
import sys
import time

from t5wild import exit_codes
from t5wild.vitals import records as records_lib


def main(argv) -> int:
  """Trains for no time at all; returns an exit code."""
  bound = {}
  for flag in argv:
    name, _, value = flag.partition('=')
    if name.startswith('--gin.'):
      bound[name.removeprefix('--gin.')] = value
  folder = bound['MODEL_DIR']
  with open(os.path.join(folder, 'starts'), 'a', encoding='utf-8') as file:
    file.write(f'{os.environ.get("PLACE", "")}\n')
  steps = int(bound.get('TRAIN_STEPS', 10))
  x = ast.literal_eval(bound['x'])
  if x == 'boom':
    sys.stderr.write('something went wrong\n')
    return exit_codes.FAILED.code
  if x == 'nan':
    return exit_codes.NON_FINITE.code
  if x == 'sleep' and not os.path.exists(os.path.join(folder, 'awake')):
    time.sleep(60)
  loss = (0 if x == 'sleep' else x) + 1 / steps
  writer = records_lib.RecordWriter(os.path.join(folder, 'metrics.jsonl'))
  writer.write([
      records_lib.Record(steps, 1.0, 0, 'training_eval/made/loss', loss),
      records_lib.Record(steps, 1.0, 0, 'train/timing/mfu', 0.1),
  ])
  writer.close()
  return exit_codes.DONE.code


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
