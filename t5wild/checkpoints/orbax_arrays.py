# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of single arrays in a checkpoint of Orbax.

Orbax reads an array as a whole, or into its sharding. Where layers are stacked
or taken apart on the way, a shard of the model is part of many arrays.
"""

from etils import epath
import numpy as np
import tensorstore as ts

from t5wild.checkpoint_files import array_specs
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import stored as stored_lib


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
    spec = array_specs.make_spec(folder, name)
    array = ts.open(spec, open=True, read=True).result()
    stored_lib.check_memory(name, index, array.dtype.numpy_dtype)
    return np.asarray(array[index].read().result())
  except ValueError as error:  # TensorStore raises nothing narrower.
    raise steps.NotACheckpointError(
        f'{name} in {folder} cannot be read ({error}), expected an array as '
        'Orbax writes: the checkpoint is damaged; copy it again'
    ) from error
