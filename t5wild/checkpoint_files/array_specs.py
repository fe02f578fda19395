# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the arrays of a checkpoint of Orbax lie, as TensorStore is told it."""

import json
from typing import Any

from etils import epath

from t5wild.checkpoint_files import kvstores
from t5wild.checkpoint_files import steps

METADATA = '_METADATA'


def names(folder: epath.Path) -> list[str]:
  """Returns the keys of the arrays, as their description says; none is opened.

  Raises:
    steps.NotACheckpointError: The description is missing or damaged.
  """
  file = folder / METADATA
  try:
    tree = json.loads(file.read_text())['tree_metadata']
    return [
        '/'.join(str(part['key']) for part in leaf['key_metadata'])
        for leaf in tree.values()
    ]
  except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    raise steps.NotACheckpointError(
        f'{file} cannot be read ({error!r}), expected what Orbax writes about '
        'the arrays beside it: the checkpoint is damaged; copy it again'
    ) from error


def make_spec(folder: epath.Path, name: str) -> dict[str, Any]:
  """Returns the spec of an array.

  Args:
    folder: The folder of the arrays.
    name: The array's key, with dots.
  """
  metadata = json.loads((folder / METADATA).read_text())
  driver = 'zarr3' if metadata.get('use_zarr3') else 'zarr'
  if (folder / 'manifest.ocdbt').exists():
    return {
        'driver': driver,
        'kvstore': {
            'driver': 'ocdbt',
            'base': kvstores.make_kvstore(folder, ''),
            'path': f'{name}/',
        },
    }
  return {'driver': driver, 'kvstore': kvstores.make_kvstore(folder, name)}
