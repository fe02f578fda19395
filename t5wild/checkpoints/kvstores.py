# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""TensorStore's name of a place in a checkpoint folder, local or a bucket."""

import os
from typing import Any
import urllib.parse

from t5wild.checkpoints import steps

_BUCKETS = {'gs': 'gcs', 's3': 's3'}


def make_kvstore(folder: str | os.PathLike[str], path: str) -> dict[str, Any]:
  """Returns the spec of the keys below `folder/path`.

  Args:
    folder: A folder, or `gs://bucket/...` or `s3://bucket/...`.
    path: Relative to it; '' is the folder itself.

  Raises:
    steps.NotACheckpointError: It is on another store.
  """
  url = urllib.parse.urlsplit(os.fspath(folder))
  below = f'{path}/' if path else ''
  if not url.scheme:
    return {'driver': 'file', 'path': f'{os.fspath(folder)}/{below}'}
  if url.scheme not in _BUCKETS:
    raise steps.NotACheckpointError(
        f'{folder} is on {url.scheme}://, expected a folder or one of '
        f'{sorted(_BUCKETS)} to read single arrays from: copy it to one'
    )
  return {
      'driver': _BUCKETS[url.scheme],
      'bucket': url.netloc,
      'path': f'{url.path.strip("/")}/{below}',
  }
