# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""tf.data pipelines: options, failures, numpy batches, saved iterators.

TensorFlow is imported when a function here is called, not before.
"""

import collections
from collections.abc import Iterator
import contextlib
import io
import os
import pathlib
import tempfile
from typing import Any
import zipfile

import numpy as np

_NUM_THREADS = 2

# What Python code inside a tf.data pipeline raised, newest last: TensorFlow
# hands on no more than its text.
_failures: collections.deque[BaseException] = collections.deque(maxlen=8)


@contextlib.contextmanager
def failures_kept() -> Iterator[None]:
  """Keeps what is raised inside, for `failures_told` to raise again."""
  try:
    yield
  except Exception as error:
    _failures.append(error)
    raise


@contextlib.contextmanager
def failures_told() -> Iterator[None]:
  """Raises a failure inside a pipeline as what it was, not TensorFlow's way."""
  import tensorflow as tf

  try:
    yield
  except tf.errors.OutOfRangeError:
    raise
  except tf.errors.OpError as error:
    for failure in tuple(_failures):
      # Another pipeline may have failed since: its text is not in this error.
      if str(failure) in error.message:
        _failures.remove(failure)
        raise failure from None
    raise


def start_tensorflow() -> Any:
  """Imports TensorFlow and keeps it off the accelerators.

  Returns:
    The module.
  """
  import tensorflow as tf

  for kind in ('GPU', 'TPU'):
    # Devices that TensorFlow has already taken cannot be hidden any more.
    with contextlib.suppress(RuntimeError):
      tf.config.set_visible_devices([], kind)
  return tf


def with_options(dataset: Any) -> Any:
  """Makes a tf.data pipeline deterministic and bounds its threads."""
  tf = start_tensorflow()
  options = tf.data.Options()
  options.deterministic = True
  options.threading.private_threadpool_size = _NUM_THREADS
  options.threading.max_intra_op_parallelism = 1
  # Python code of ours in a pipeline is a function of its arguments.
  options.experimental_external_state_policy = (
      tf.data.experimental.ExternalStatePolicy.IGNORE
  )
  return dataset.with_options(options)


def numpy_batches(dataset: Any) -> Iterator[dict[str, np.ndarray]]:
  """Yields the elements of a tf.data pipeline as numpy arrays."""
  iterator = iter(dataset)
  while True:
    try:
      with failures_told():
        batch = next(iterator)
    except StopIteration:
      return
    yield {name: np.asarray(tensor) for name, tensor in batch.items()}


def save_iterator(iterator: Any) -> bytes:
  """The state of a tf.data iterator as bytes."""
  import tensorflow as tf

  with tempfile.TemporaryDirectory(prefix='t5wild_data_') as folder:
    tf.train.Checkpoint(iterator=iterator).write(os.path.join(folder, 'state'))
    packed = io.BytesIO()
    with zipfile.ZipFile(
        packed, 'w', zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
      for path in sorted(pathlib.Path(folder).iterdir()):
        archive.writestr(path.name, path.read_bytes())
  return packed.getvalue()


def load_iterator(iterator: Any, *, snapshot: bytes) -> None:
  """Brings an iterator over an equal pipeline to the state of `save_iterator`.

  Raises whatever TensorFlow does where the pipeline is another.
  """
  import tensorflow as tf

  with tempfile.TemporaryDirectory(prefix='t5wild_data_') as folder:
    with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
      archive.extractall(folder)
    status = tf.train.Checkpoint(iterator=iterator).read(
        os.path.join(folder, 'state')
    )
    status.assert_consumed()
