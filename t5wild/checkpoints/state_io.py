# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays and the data position of a checkpoint, to disk and back, by Orbax.

The format was chosen by measurement (2 GB of float32 on a local disk): OCDBT
with Orbax's default compression 80 to 240 MB/s, since zstd costs 7 CPU-seconds
and saves 7 percent of float32 noise; OCDBT without it 390 to 460; one file per
array without it about the same, with five times as many files. Readers find
the format out by themselves.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import integrity
from t5wild.checkpoints import orbax_arrays
from t5wild.checkpoints import positions
from t5wild.checkpoints import s3_driver
from t5wild.checkpoints import stored as stored_lib
from t5wild.checkpoints import transforms

# What Orbax and TensorStore raise for a checkpoint that is not whole.
_DAMAGES = (ValueError, OSError, LookupError)
# Larger arrays are cut into pieces of this size, so that a host of another
# mesh reads little more than what it needs.
_PIECE_BYTES = 64 * 1024 * 1024


@dataclasses.dataclass(frozen=True, eq=False)
class StoredArray(stored_lib.Stored):
  """An array in a checkpoint of Orbax.

  Attributes:
    folder: The folder of the arrays.
  """

  key: str
  shape: tuple[int, ...]
  dtype: np.dtype
  folder: epath.Path

  def read(self, index: stored_lib.Index) -> np.ndarray:
    """Returns a part.

    Orbax reads whole arrays, or those of a model with all its shardings: for a
    part of one, its files are opened here.
    """
    name = self.key.replace('/', '.')
    return orbax_arrays.read_part(self.folder, name, index)


def make_checkpointer(
    directory: str, *, timeout_seconds: int, name: str = ''
) -> ocp.AsyncCheckpointer:
  """Returns the writer of a run's checkpoints.

  Args:
    directory: Where they go; decides how one becomes complete.
    timeout_seconds: How long a save may take, and hosts wait for each other.
    name: Of the writer, the same on all hosts: the barriers of one that hangs
      are then not those of the next.
  """
  atomicity = _atomicity(directory)
  processes = _processes(name)
  handler = ocp.CompositeCheckpointHandler(
      composite_options=ocp.CompositeOptions(
          atomicity_options=atomicity, multiprocessing_options=processes
      ),
      **{
          steps.STATE_ITEM: _make_handler(processes),
          steps.DATASET_ITEM: positions.PositionHandler(),
          integrity.ITEM: integrity.HashesHandler(),
      },
  )
  return ocp.AsyncCheckpointer(
      handler,
      async_options=ocp.AsyncOptions(
          timeout_secs=timeout_seconds,
          # Made beside the loop, a directory that cannot be made would keep
          # the writing threads, and the end of the process, for minutes.
          create_directories_asynchronously=False,
      ),
      multiprocessing_options=processes,
      atomicity_options=atomicity,
  )


def _atomicity(directory: str) -> ocp.options.AtomicityOptions:
  """How a checkpoint becomes complete there: by a rename, or a marker."""
  modes = ocp.options.AtomicityMode
  return ocp.options.AtomicityOptions(
      mode=modes.COMMIT_FILE
      if steps.is_bucket(directory)
      else modes.ATOMIC_RENAME
  )


def _processes(name: str = '') -> ocp.options.MultiprocessingOptions:
  """All processes, by name: their barriers then go through the coordinator.

  Unnamed ones meet in a collective on the devices, which has no time limit and
  can cross with those of the next step.
  """
  if jax.process_count() == 1:
    return ocp.options.MultiprocessingOptions()
  return ocp.options.MultiprocessingOptions(
      active_processes=set(range(jax.process_count())),
      barrier_sync_key_prefix=f't5wild_checkpoint{name}',
  )


def _make_handler(
    processes: ocp.options.MultiprocessingOptions | None = None,
) -> ocp.PyTreeCheckpointHandler:
  s3_driver.install()
  return ocp.PyTreeCheckpointHandler(
      use_ocdbt=True,
      use_compression=False,
      multiprocessing_options=processes or _processes(),
  )


def make_save_args(
    flat_state: Mapping[str, Any],
    *,
    dtype: str | None,
    dataset_state: Mapping[str, Any] | None,
    run_id: str = '',
) -> ocp.args.Composite:
  """Returns what the writer writes.

  Args:
    flat_state: Arrays by key.
    dtype: dtype that floating-point parameters are saved in, None for theirs.
    dataset_state: This process's position in the data, or None.
    run_id: Of the run that saves; '': it has none.
  """
  dtypes = {
      key: _target_dtype(key, leaf, dtype) for key, leaf in flat_state.items()
  }
  save_args = {
      key: ocp.SaveArgs(dtype=target, chunk_byte_size=_PIECE_BYTES)
      for key, target in dtypes.items()
  }
  items = {
      steps.STATE_ITEM: ocp.args.PyTreeSave(
          transforms.unflatten(flat_state),
          save_args=transforms.unflatten(save_args),
      ),
      integrity.ITEM: integrity.make_save_args(
          flat_state,
          dtypes={
              key: target or getattr(flat_state[key], 'dtype', None)
              for key, target in dtypes.items()
          },
          run_id=run_id,
      ),
  }
  if dataset_state is not None:
    items[steps.DATASET_ITEM] = positions.PositionSave(dataset_state)
  return ocp.args.Composite(**items)


def _target_dtype(key: str, leaf: Any, dtype: str | None):
  floating = jnp.issubdtype(getattr(leaf, 'dtype', np.int32), jnp.floating)
  if dtype is None or not transforms.is_target(key) or not floating:
    return None
  return jnp.dtype(dtype)


def read_structure(checkpoint: str) -> dict[str, StoredArray]:
  """Returns the arrays of a checkpoint by key, without their numbers.

  Raises:
    steps.NotACheckpointError: The path is none, or damaged.
  """
  folder = steps.state_folder(checkpoint)
  try:
    tree = _make_handler().metadata(folder).tree
    for key, leaf in transforms.flatten(tree).items():
      storage = getattr(leaf, 'storage', None)
      if storage is not None:
        stored_lib.check_pieces(
            key, shape=leaf.shape or (), pieces=storage.chunk_shape
        )
  # Orbax trusts what its description says.
  except (*_DAMAGES, TypeError, AttributeError) as error:
    raise steps.NotACheckpointError(
        f'{folder} is damaged: {_first_line(error)}, expected every array that '
        'its description names: copy it again, or take another one'
    ) from error
  return {
      key: StoredArray(
          key=key,
          shape=tuple(getattr(leaf, 'shape', None) or ()),
          dtype=np.dtype(leaf.dtype),
          folder=folder,
      )
      for key, leaf in transforms.flatten(tree).items()
      if hasattr(leaf, 'dtype')  # Empty dicts are stored as such.
  }


def read_arrays(
    folder: epath.Path, wanted: Mapping[str, jax.ShapeDtypeStruct | None]
) -> dict[str, Any]:
  """Reads arrays by key, each process only its shards.

  Args:
    folder: The folder of the arrays, as `steps.state_folder` gives it.
    wanted: dtype and sharding of each; None for a numpy array as saved.

  Raises:
    steps.NotACheckpointError: Arrays are damaged.
  """
  if not wanted:
    return {}
  restore_args = {
      key: ocp.RestoreArgs(restore_type=np.ndarray)
      if leaf is None
      else ocp.ArrayRestoreArgs(
          dtype=leaf.dtype, sharding=leaf.sharding, global_shape=leaf.shape
      )
      for key, leaf in wanted.items()
  }
  item = dict.fromkeys(wanted, 0)
  try:
    read = _make_handler().restore(
        folder,
        args=ocp.args.PyTreeRestore(
            item=transforms.unflatten(item),
            restore_args=transforms.unflatten(restore_args),
            partial_restore=True,
        ),
    )
  except Exception as error:
    # Orbax has a bare Exception for pieces that cannot be read.
    if type(error) is not Exception and not isinstance(error, _DAMAGES):
      raise
    named = [k for k in wanted if f"{k.replace('/', '.')}/" in str(error)]
    raise steps.NotACheckpointError(
        f'{folder} is damaged, {named or "one of its arrays"} cannot be read: '
        f'{_first_line(error)}, expected whole arrays: copy it again, or take '
        'another one'
    ) from error
  return transforms.flatten(read)


def _first_line(error: Exception) -> str:
  # What TensorStore says goes on with its whole spec.
  return str(error).split(' [tensorstore_spec=', 1)[0][:1000]
