# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of single arrays in a checkpoint of Orbax.

Orbax reads an array as a whole, or into its sharding. Where layers are stacked
or taken apart on the way, a shard of the model is part of many arrays.
"""

import json
from typing import Any

from etils import epath
import numpy as np
import tensorstore as ts

from t5wild.checkpoints import kvstores
from t5wild.checkpoints import steps
from t5wild.checkpoints import stored as stored_lib

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


def read_part(
    folder: epath.Path, name: str, index: tuple[slice, ...]
) -> np.ndarray:
  """Returns a part of an array.

  Args:
    folder: The folder of the arrays.
    name: The array's key, with dots.
    index: Start and stop of each dimension.

  Raises:
    steps.NotACheckpointError: The array is damaged.
  """
  try:
    array = ts.open(_make_spec(folder, name), open=True, read=True).result()
    stored_lib.check_memory(name, index, array.dtype.numpy_dtype)
    return np.asarray(array[index].read().result())
  except ValueError as error:  # TensorStore raises nothing narrower.
    raise steps.NotACheckpointError(
        f'{name} in {folder} cannot be read ({error}), expected an array as '
        'Orbax writes: the checkpoint is damaged; copy it again'
    ) from error


def _make_spec(folder: epath.Path, name: str) -> dict[str, Any]:
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
