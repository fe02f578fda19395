# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""TensorStore's name of a place in a checkpoint folder, local or a bucket."""

import os
from typing import Any
import urllib.parse

from t5wild.checkpoint_files import steps

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
  spec = {
      'driver': _BUCKETS[url.scheme],
      'bucket': url.netloc,
      'path': f'{url.path.strip("/")}/{below}',
  }
  return spec | s3_settings() if url.scheme == 's3' else spec


def s3_settings() -> dict[str, Any]:
  """Returns what TensorStore's driver of S3 does not read by itself.

  That is where AWS's own variables say that the server is, and to give up in a
  minute or two, not in a quarter of an hour: who waits for it has a retry of
  its own, and tells.
  """
  settings: dict[str, Any] = {'s3_request_retries': {'max_retries': 6}}
  for name in ('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'):
    if os.environ.get(name):
      settings['endpoint'] = os.environ[name].rstrip('/')
      break
  for name in ('AWS_REGION', 'AWS_DEFAULT_REGION'):
    if os.environ.get(name):
      settings['aws_region'] = os.environ[name]
      break
  return settings
