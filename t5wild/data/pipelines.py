# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""tf.data pipelines: options, failures, numpy batches, saved iterators.

TensorFlow is imported when a function here is called, not before.
"""

import atexit
import collections
from collections.abc import Iterator
import contextlib
import io
import os
import pathlib
import tempfile
import threading
import traceback
from typing import Any
import weakref
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
    _forget_frames(error)
    for failure in tuple(_failures):
      # Another pipeline may have failed since: its text is not in this error.
      if str(failure) in error.message:
        _failures.remove(failure)
        raise failure from None
    raise


def _forget_frames(error: BaseException | None) -> None:
  """Empties an error's frames, which would keep its pipeline alive."""
  while error is not None:
    traceback.clear_frames(error.__traceback__)
    error = error.__cause__ or error.__context__


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
  # One call an example for maps that follow each other, as seqio's do.
  options.experimental_optimization.map_fusion = True
  # Python code of ours in a pipeline is a function of its arguments.
  options.experimental_external_state_policy = (
      tf.data.experimental.ExternalStatePolicy.IGNORE
  )
  return dataset.with_options(options)


class PipelineIterator:
  """Iterator of a pipeline's elements as numpy arrays, which can be closed.

  It is closed at the latest when Python ends, and still can run threads: a
  pipeline that is alive after that may wait for Python for ever, and the
  process with it.
  """

  def __init__(self, dataset: Any):
    """Starts the pipeline."""
    self._lock = threading.Lock()
    self._inner = iter(dataset)
    _open_iterators.add(self)

  def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
    """Returns itself."""
    return self

  def __next__(self) -> dict[str, np.ndarray]:
    """Returns the next element; nothing comes after `close`."""
    with self._lock:
      if self._inner is None:
        raise StopIteration
      with failures_told():
        element = next(self._inner)
    return {name: np.asarray(tensor) for name, tensor in element.items()}

  def close(self) -> None:
    """Ends the pipeline and its threads."""
    with self._lock:
      self._inner = None

  def save(self) -> bytes:
    """Its state as bytes; raises what TensorFlow does if that cannot be."""
    with self._lock:
      return _save_iterator(self._inner)

  def load(self, snapshot: bytes) -> None:
    """Goes to a state that `save` gave for an equal pipeline."""
    with self._lock:
      _load_iterator(self._inner, snapshot=snapshot)


# What is still open when Python ends.
_open_iterators: weakref.WeakSet[PipelineIterator] = weakref.WeakSet()


@atexit.register
def _close_iterators() -> None:
  for iterator in tuple(_open_iterators):
    iterator.close()


def _save_iterator(iterator: Any) -> bytes:
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


def _load_iterator(iterator: Any, *, snapshot: bytes) -> None:
  """Brings an iterator to the state that `_save_iterator` gave."""
  import tensorflow as tf

  with tempfile.TemporaryDirectory(prefix='t5wild_data_') as folder:
    with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
      archive.extractall(folder)
    status = tf.train.Checkpoint(iterator=iterator).read(
        os.path.join(folder, 'state')
    )
    status.assert_consumed()
