# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild cache` in processes of its own, on a task that can be slow."""

import importlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from t5wild import cache
from t5wild import exit_codes
from tests import multiprocess

_TASKS = """
import os, time
import seqio
from t5wild.tasks import local_text

def slowly(dataset):
  def wait(example):
    time.sleep(float(os.environ.get('TEST_CACHE_SECONDS', '0')))
    return example
  import tensorflow as tf
  return dataset.map(lambda example: {
      'targets': tf.ensure_shape(
          tf.numpy_function(wait, [example['targets']], tf.string), []
      )
  })

task = local_text.text_task(
    os.environ['TEST_CACHE_TEXT'], name='one', held_out_fraction=0.2
)
seqio.TaskRegistry.add(
    'one', source=task.source,
    preprocessors=[slowly, *task.preprocessors],
    output_features=task.output_features,
)
"""
_TIMEOUT_SECONDS = 300


def make_project(folder: pathlib.Path) -> pathlib.Path:
  """Fills a folder with a module of tasks, and the text that they read."""
  (folder / 'cache_test_tasks.py').write_text(_TASKS)
  numbers = np.random.default_rng(0)
  (folder / 'text').mkdir()
  for index in range(12):
    words = map(str, numbers.integers(0, 10**6, 300))
    (folder / 'text' / f'{index:02}.txt').write_text(' '.join(words))
  return folder


def start(
    project: pathlib.Path, *arguments, seconds: float = 0.0, **options
) -> subprocess.Popen:
  """Starts a command in a session of its own; `seconds` for each document."""
  environment = multiprocess.process_environment(
      devices_per_process=1,
      extra={
          'TEST_CACHE_TEXT': str(project / 'text'),
          'TEST_CACHE_SECONDS': str(seconds),
      },
  )
  environment['PYTHONPATH'] += os.pathsep + str(project)
  return subprocess.Popen(
      [
          sys.executable, '-m', 't5wild.cli', 'cache',
          '--module=cache_test_tasks', *map(str, arguments),
      ],
      env=environment,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      start_new_session=True,
      **options,
  )  # fmt: skip


def run(project: pathlib.Path, *arguments, **options) -> tuple[int, str]:
  """(exit code, what was printed) of a command."""
  process = start(project, *arguments, **options)
  output, _ = process.communicate(timeout=_TIMEOUT_SECONDS)
  return process.returncode, output


def write_here(
    project: pathlib.Path, root: pathlib.Path, patch: pytest.MonkeyPatch
) -> None:
  """Writes the cache of the task 'one' in this process, shard after shard."""
  patch.syspath_prepend(str(project))
  patch.setenv('TEST_CACHE_TEXT', str(project / 'text'))
  importlib.import_module('cache_test_tasks')
  code = cache.main(['--task=one', f'--out={root}', '--num_processes=1'])
  assert code == exit_codes.DONE.code
