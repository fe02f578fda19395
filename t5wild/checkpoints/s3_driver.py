# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets Orbax write and read arrays on S3, by TensorStore's own driver.

Orbax names places to TensorStore for folders and `gs://` only: `s3://bucket`
would be a folder `s3:` to it. It is asked for the same place on `gs://`, and
the driver's name in its answer is changed; both drivers' specs are alike.
"""

import functools
from typing import Any

from orbax.checkpoint._src.serialization import tensorstore_utils

from t5wild.checkpoint_files import kvstores

_S3 = 's3://'
_GCS = 'gs://'
_GCS_DRIVERS = ('gcs', 'gcs_grpc')


@functools.cache
def install() -> None:
  """Teaches Orbax `s3://`, in this process, once."""
  build = tensorstore_utils.build_kvstore_tspec

  @functools.wraps(build)
  def build_for_s3_too(directory, *args, **kwargs):
    directory = str(directory)
    if not directory.startswith(_S3):
      return build(directory, *args, **kwargs)
    return _on_s3(build(directory.replace(_S3, _GCS, 1), *args, **kwargs))

  tensorstore_utils.build_kvstore_tspec = build_for_s3_too


def _on_s3(spec: Any) -> Any:
  """A spec with every driver of GCS replaced by that of S3."""
  if isinstance(spec, list):
    return [_on_s3(part) for part in spec]
  if not isinstance(spec, dict):
    return spec
  changed = {key: _on_s3(value) for key, value in spec.items()}
  if changed.get('driver') in _GCS_DRIVERS:
    return changed | {'driver': 's3'} | kvstores.s3_settings()
  return changed
