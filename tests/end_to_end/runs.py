# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Starts `python -m t5wild.train` on the tiny recipe and reads what it left."""

import pathlib
import subprocess
import sys
import sysconfig
import time

from t5wild.vitals import records
from tests import multiprocess

RECIPE = pathlib.Path(__file__).with_name('tiny.gin')
TIMEOUT_SECONDS = 400


def arguments(model_dir, *, recipe=RECIPE, **bindings) -> list[str]:
  """Arguments to the interpreter; in bindings `__` stands for a dot."""
  text = sysconfig.get_paths()['stdlib'] + '/json'
  values = {'MODEL_DIR': model_dir, 'TEXT': text, **bindings}
  flags = [
      f'--gin.{name.replace("__", ".")}={value}'
      for name, value in values.items()
  ]
  return ['-m', 't5wild.train', f'--gin_file={recipe}', *flags]


def start(model_dir, *, log, num_devices: int = 1, **bindings):
  """Starts a run in the background; what it prints goes to the file `log`."""
  return subprocess.Popen(
      [sys.executable, *arguments(model_dir, **bindings)],
      env=multiprocess.process_environment(devices_per_process=num_devices),
      stdout=log,
      stderr=subprocess.STDOUT,
  )


def train(model_dir, *, num_devices: int = 1, **bindings) -> int:
  """Trains to the end; returns the exit code."""
  log = pathlib.Path(model_dir).with_suffix('.log')
  with log.open('ab') as file:
    process = start(model_dir, log=file, num_devices=num_devices, **bindings)
    code = process.wait(TIMEOUT_SECONDS)
  return code


def losses(model_dir) -> dict[int, float]:
  """Step -> `train/loss`; of a step trained twice, the last time."""
  path = pathlib.Path(model_dir) / 'metrics.jsonl'
  found = records.series(records.read_records(path), 'train/loss')
  return {record.step: record.value for record in found}


def wait_for_step(model_dir, step: int, process) -> None:
  """Returns when a step's record is there, or the process has ended."""
  path = pathlib.Path(model_dir) / 'metrics.jsonl'
  deadline = time.monotonic() + TIMEOUT_SECONDS
  while time.monotonic() < deadline and process.poll() is None:
    if path.exists() and step in losses(model_dir):
      return
    time.sleep(0.02)
