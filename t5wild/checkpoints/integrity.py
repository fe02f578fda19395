# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What was restored is what was saved: hashes held against those of the save.

Orbax and TensorStore check no number that they read: with one byte flipped in
a file, a restore gave a wrong state without a word in 12 of 12 trials.
"""

from collections.abc import Callable, Mapping
import concurrent.futures
import dataclasses
from typing import Any

from absl import logging
from etils import epath
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import state_hashes
from t5wild.partitioning import distributed

ITEM = array_hashes.FOLDER
_MOST_NAMED = 5


class CorruptError(steps.NotACheckpointError):
  """A checkpoint that gives other numbers than were saved."""


class HashesHandler(ocp.AsyncCheckpointHandler):
  """Writes the hashes of a state as a part of its checkpoint, by Orbax."""

  async def async_save(self, directory: epath.Path, args: 'HashesSave'):
    """Begins to hash; Orbax waits for what it returns before it commits."""
    return [_Written(directory, args)]

  def save(self, directory: epath.Path, args: 'HashesSave') -> None:
    """Hashes and writes."""
    _Written(directory, args).result()

  def restore(self, directory: epath.Path, args: Any = None) -> None:
    """Nothing: hashes are read without Orbax."""
    raise NotImplementedError(
        f'{directory} was to be restored by Orbax, expected a call of '
        'array_hashes.read: it needs no Orbax'
    )


@ocp.args.register_with_handler(HashesHandler, for_save=True)
@dataclasses.dataclass
class HashesSave(ocp.args.CheckpointArgs):
  """What is hashed.

  Attributes:
    shapes: Shape of each array.
    dtypes: dtype in which each is saved.
    shares: Gives this process's share of each hash.
    run_id: Of the run that saves; '': it has none.
  """

  shapes: Mapping[str, tuple[int, ...]]
  dtypes: Mapping[str, Any]
  shares: Callable[[], Mapping[str, int]]
  run_id: str = ''


@ocp.args.register_with_handler(HashesHandler, for_restore=True)
@dataclasses.dataclass
class HashesRestore(ocp.args.CheckpointArgs):
  """Nothing; Orbax takes no handler without such a class."""


class _Written:
  """Hashes that are computed beside the writing of arrays."""

  def __init__(self, directory: epath.Path, args: HashesSave):
    self._directory = directory
    self._args = args
    pool = concurrent.futures.ThreadPoolExecutor(1, 'checkpoint_hashes')
    self._shares = pool.submit(args.shares)
    pool.shutdown(wait=False)

  def result(self, timeout: float | None = None) -> None:
    shares = self._shares.result(timeout)
    args = self._args
    text = array_hashes.to_text({
        key: (args.shapes[key], str(np.dtype(args.dtypes[key])), share)
        for key, share in shares.items()
    })
    name = array_hashes.file_name(jax.process_index(), jax.process_count())
    (self._directory / name).write_text(text)
    if args.run_id and jax.process_index() == 0:
      file = self._directory / run_ids.IN_CHECKPOINT
      file.write_text(run_ids.to_text(args.run_id))


def make_save_args(
    flat_state: Mapping[str, Any],
    *,
    dtypes: Mapping[str, Any],
    run_id: str = '',
) -> HashesSave:
  """Begins to hash a state; returns what `HashesHandler` takes.

  Args:
    flat_state: Arrays by key.
    dtypes: dtype in which each is saved; None for what is no array.
    run_id: Of the run that saves; '': it has none.
  """
  dtypes = {
      key: dtype
      for key, dtype in dtypes.items()
      if dtype is not None and array_hashes.can_hash(jnp.dtype(dtype))
  }
  flat_state = {key: flat_state[key] for key in dtypes}
  return HashesSave(
      shapes={key: np.shape(leaf) for key, leaf in flat_state.items()},
      dtypes=dtypes,
      shares=state_hashes.start_hashing(flat_state, dtypes=dtypes),
      run_id=run_id,
  )


def check_restored(
    checkpoint: str,
    restored: Mapping[str, jax.Array],
    *,
    sources: Mapping[str, str],
) -> None:
  """Refuses numbers that are not those that were saved.

  Arrays that were made of others, or rounded, as they were read, cannot be
  told by their hash: the files are read once more, then. Every process calls it
  alike.

  Args:
    checkpoint: Where they come from.
    restored: Arrays by key.
    sources: Key in the checkpoint of those that were taken as they are, or in
      another dtype.

  Raises:
    CorruptError: Names arrays and files.
  """
  expected = _expected(checkpoint)
  if expected is None:
    return
  dtypes = {
      key: np.dtype(jnp.dtype(expected[source][1]))
      for key, source in sources.items()
      if source in expected and _gives_back(restored[key], expected[source])
  }
  shares = state_hashes.start_hashing(
      {key: restored[key] for key in dtypes}, dtypes=dtypes
  )()
  by_process = distributed.meet('hashes of what was restored', value=shares)
  found = {
      key: sum(part[key] for part in by_process) % array_hashes.MODULUS
      for key in dtypes
  }
  wrong = [key for key in found if found[key] != expected[sources[key]][2]]
  others = [key for key in restored if key not in dtypes]
  if not wrong and not others:
    logging.info('%s: all %d arrays have their hash', checkpoint, len(found))
    return
  damages = damaged_files(checkpoint)
  if wrong:
    names = ', '.join(
        f'{key} (hash {found[key]:08x}, saved {expected[sources[key]][2]:08x})'
        for key in wrong[:_MOST_NAMED]
    )
    raise CorruptError(
        explain(checkpoint, f'wrong numbers in {names}', damages)
    )
  if damages:
    raise CorruptError(explain(checkpoint, 'damaged files', damages))
  if damages is None:
    logging.warning(
        '%s: %d of %d arrays are not checked against hashes, as they were '
        'rounded or made of others and the files have no checksums',
        checkpoint, len(others), len(restored),
    )  # fmt: skip


def _expected(checkpoint: str) -> dict[str, tuple] | None:
  """What process 0 reads of the hashes of the save; None: there are none."""
  value = None
  if distributed.process_index() == 0:
    try:
      value = array_hashes.read(checkpoint)
    except file_hashes.NoHashesError as error:
      logging.warning('Its numbers are not verified: %s', error)
  return distributed.meet('hashes of the save', value=value)[0]


def _gives_back(array: jax.Array, saved: tuple) -> bool:
  """Whether what was saved can be had back from the array, bit for bit."""
  shape, dtype, _ = saved
  have, want = jnp.dtype(array.dtype), jnp.dtype(dtype)
  if tuple(array.shape) != tuple(shape):
    return False
  floats = jnp.issubdtype(have, jnp.floating) and jnp.issubdtype(
      want, jnp.floating
  )
  return have == want or (floats and jnp.promote_types(have, want) == have)


def check_small_files(checkpoint: str, folder: str) -> None:
  """Refuses files of a folder that are not as they were saved.

  Raises:
    CorruptError: Names them.
  """
  if steps.is_bucket(checkpoint):
    return
  damages = file_hashes.damages_below(checkpoint, folder)
  if damages:
    raise CorruptError(
        explain(checkpoint, f'{folder}/', [str(each) for each in damages])
    )


def tell_missing(checkpoint: str) -> list[str]:
  """Returns which files are gone though what was asked for is whole."""
  if steps.is_bucket(checkpoint):
    return []
  try:
    return [damage.file for damage in file_hashes.missing(checkpoint)]
  except (file_hashes.NoHashesError, OSError):
    return []


def damaged_files(checkpoint: str) -> list[str] | None:
  """What is wrong with the files, told alike on all processes; None: unknown.

  Process 0 reads them all.
  """
  value = None
  if distributed.process_index() == 0 and not steps.is_bucket(checkpoint):
    try:
      value = [str(d) for d in file_hashes.verify(checkpoint).damages]
    except (file_hashes.NoHashesError, OSError) as error:
      logging.warning('The damaged file cannot be named: %s', error)
  return distributed.meet('damaged files', value=value)[0]


def explain(checkpoint: str, what: str, damages: list[str] | None) -> str:
  """Returns the error of a damaged checkpoint."""
  files = 'which file is damaged is not known'
  if damages:
    more = len(damages) - _MOST_NAMED
    files = '; '.join(damages[:_MOST_NAMED])
    files += f'; and {more} more' if more > 0 else ''
  elif damages is not None:
    files = 'all files are as they were written: memory or the disk lied before'
  return (
      f'{checkpoint} is damaged: {what}; {files}. Expected the numbers that '
      'were saved: take an older checkpoint, or a copy (t5wild checkpoints '
      'verify tells which are whole)'
  )
