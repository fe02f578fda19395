# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a seqio task of files of tf.Examples, by T5X's name and arguments."""

from collections.abc import Mapping, Sequence
import functools
import hashlib
from typing import Any


def create_task_from_tfexample_file(  # T5X's signature
    paths: Sequence[str],
    file_type: str,
    inputs_key: str,
    targets_key: str | None,
    features: Mapping[str, Any],
    task_id: str | None = None,
) -> str:
  """Registers a task with a split 'infer' that reads TFRecord files.

  Args:
    paths: files or globs, of records that are tf.Examples.
    file_type: must be 'tfrecord'.
    inputs_key: the tf.Example's feature with the input text.
    targets_key: its feature with the target text, for scores; None: none.
    features: `seqio.Feature` of 'inputs' and, with `targets_key`, 'targets'.
    task_id: ending of the task's name; None: made of the other arguments, so
      that a second call gives the same task.

  Returns:
    The task's name.

  Raises:
    ValueError: another file type, no such file, or a feature that is missing.
  """
  if file_type != 'tfrecord':
    raise ValueError(
        f"file_type is {file_type!r}, expected 'tfrecord': convert the files, "
        'or give inferring.FileConfig another kind of file'
    )
  wanted = {'inputs', 'targets'} if targets_key else {'inputs'}
  if not wanted <= set(features):
    raise ValueError(
        f'features has {sorted(features)}, expected {sorted(wanted)}: add a '
        'seqio.Feature for each'
    )
  import seqio
  import tensorflow as tf

  paths = [paths] if isinstance(paths, str) else list(paths)
  if not tf.io.gfile.glob(paths):
    raise ValueError(
        f'no file matches paths = {paths!r}, expected TFRecord files: correct '
        'TF_EXAMPLE_FILE_PATHS'
    )
  keys = [inputs_key, *([targets_key] if targets_key else [])]
  text = ':'.join([*paths, inputs_key, targets_key or ''])
  name = f'infer_{task_id or hashlib.sha256(text.encode()).hexdigest()[:10]}'
  if name not in seqio.TaskRegistry.names():
    seqio.TaskRegistry.add(
        name,
        source=seqio.TFExampleDataSource(
            {'infer': paths},
            feature_description={
                key: tf.io.FixedLenFeature([], tf.string) for key in keys
            },
        ),
        preprocessors=[
            functools.partial(
                seqio.preprocessors.rekey,
                key_map={'inputs': inputs_key, 'targets': targets_key},
            ),
            seqio.preprocessors.tokenize_and_append_eos,
        ],
        output_features=dict(features),
    )
  return name
