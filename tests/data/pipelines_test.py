# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A process ends though a pipeline is at work; failures keep their kind."""

import pathlib
import subprocess
import sys

import pytest

from t5wild.data import pipelines

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# A pipeline that reads far ahead in Python code; without being closed it makes
# the process wait for ever (tried with TensorFlow 2.21 on Python 3.12).
_PROGRAM = """
import time
from t5wild.data import pipelines

tf = pipelines.start_tensorflow()

def slow(x):
  time.sleep(0.02)
  return x

dataset = tf.data.Dataset.range(10**6).map(
    lambda x: {'x': tf.numpy_function(slow, [x], tf.int64, stateful=False)},
    num_parallel_calls=2,
).prefetch(1000)
iterator = pipelines.PipelineIterator(dataset)
next(iterator)
raise SystemExit(7)
"""


def test_a_process_ends_though_a_pipeline_is_reading_ahead():
  pytest.importorskip('tensorflow')
  done = subprocess.run(
      [sys.executable, '-c', _PROGRAM],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      timeout=240,
      check=False,
  )
  assert done.returncode == 7, done.stderr


def test_nothing_comes_after_close():
  tf = pytest.importorskip('tensorflow')
  iterator = pipelines.PipelineIterator(
      tf.data.Dataset.range(3).map(lambda x: {'x': x})
  )
  assert next(iterator)['x'] == 0
  iterator.close()
  iterator.close()
  assert list(iterator) == []


def test_a_failure_of_tensorflow_itself_stays_as_it_is():
  tf = pytest.importorskip('tensorflow')
  dataset = tf.data.Dataset.range(3).map(
      lambda x: {'x': tf.io.decode_raw(tf.strings.as_string(x), tf.int64)}
  )
  with pytest.raises(tf.errors.InvalidArgumentError):
    next(pipelines.PipelineIterator(dataset))
