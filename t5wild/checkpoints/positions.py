# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the data of a run stood at a checkpoint, to disk and back, by Orbax.

One file where the position is that of all hosts, which the data say; else one
for each process.
"""

import base64
from collections.abc import Mapping
import dataclasses
import json
import os
import re
from typing import Any

from absl import logging
from etils import epath
import jax
import numpy as np
import orbax.checkpoint as ocp

from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import steps

OF_ALL_FILE = 'position.json'
# As `data.reader_protocol` has it: this room does not see that one.
OF_ALL_HOSTS = 'of_all_hosts'
_OWN_FILE = re.compile(r'process_\d+-of-(\d+)\.json\Z')


class PositionHandler(ocp.JsonCheckpointHandler):
  """Writes a position, by process 0 alone where it is that of all."""

  def __init__(self):
    """Writes nothing yet."""
    super().__init__(
        filename=_own_file(jax.process_index(), jax.process_count()),
        # No primary: every process writes its own.
        multiprocessing_options=ocp.options.MultiprocessingOptions(
            primary_host=None
        ),
    )
    self._of_all = ocp.JsonCheckpointHandler(
        filename=OF_ALL_FILE,
        multiprocessing_options=ocp.options.MultiprocessingOptions(
            primary_host=0
        ),
    )

  async def async_save(
      self, directory: epath.Path, item: Any = None, args: Any = None
  ) -> Any:
    """See Orbax's."""
    position = _encode(args.position)
    if position.get(OF_ALL_HOSTS):
      return await self._of_all.async_save(directory, position)
    return await super().async_save(directory, position)


@ocp.args.register_with_handler(PositionHandler, for_save=True)
@dataclasses.dataclass
class PositionSave(ocp.args.CheckpointArgs):
  """A position to save.

  Attributes:
    position: of this process.
  """

  position: Mapping[str, Any]

  def __post_init__(self):
    """Refuses what cannot be written, before anything is."""
    _encode(self.position)


@ocp.args.register_with_handler(PositionHandler, for_restore=True)
@dataclasses.dataclass
class PositionRestore(ocp.args.CheckpointArgs):
  """Nothing; Orbax takes no handler without such a class."""


def _own_file(process: int, count: int) -> str:
  return f'process_{process:05d}-of-{count:05d}.json'


def read_position(
    checkpoint: str, *, process: int, count: int
) -> dict[str, Any] | None:
  """Returns the position in the data that a process goes on from, or None.

  With another number of processes than at the save, a process gets that of an
  old one; the reader says whether it can go on from there.

  Raises:
    ValueError: That of some of the processes is lost.
  """
  folder = epath.Path(checkpoint) / steps.DATASET_ITEM
  shared = folder / OF_ALL_FILE
  if shared.exists():
    return _parse(shared)
  file = folder / _own_file(process, count)
  if not file.exists():
    # No glob: below a folder such as `runs[1]` one finds nothing.
    there = folder.iterdir() if folder.is_dir() else ()
    others = sorted(path for path in there if path.suffix == '.json')
    if not others:
      return None
    _check_all_there([path.name for path in others], checkpoint)
    file = others[process % len(others)]
    logging.warning(
        '%s was saved by %d processes and is read by %d: process %d takes the '
        'position in the data from %s',
        checkpoint, len(others), count, process, file.name,
    )  # fmt: skip
  return _parse(file)


def _parse(file: epath.Path) -> dict[str, Any]:
  """Reads a position.

  Raises:
    ValueError: The file is damaged.
  """
  try:
    found = _decode(json.loads(file.read_text()))
  except (ValueError, TypeError) as error:
    raise ValueError(f'{file} cannot be read ({error})') from error
  if not isinstance(found, dict):
    raise ValueError(f'{file} holds {str(found)[:80]}, expected names')
  return found


def _check_all_there(names: list[str], checkpoint: str) -> None:
  found = [_OWN_FILE.match(name) for name in names]
  counts = {int(match.group(1)) for match in found if match}
  if counts and counts != {len(names)}:
    raise ValueError(
        f'{checkpoint} holds the positions {names}, expected one of each of '
        f'{max(counts)} processes: take an older checkpoint, or a copy'
    )


def was_saved(checkpoint: str) -> bool:
  """Whether a checkpoint was saved with a position, and should have it still.

  By its own record: Orbax's list of its parts, else the list of its files. Of
  one of ours that has lost both, by what the checkpoints beside it hold.
  """
  folder = epath.Path(checkpoint)
  if (folder / steps.DATASET_REMOVED).exists():
    return False
  handlers = _handlers(folder)
  if handlers is not None:
    # Those of T5X hold a position of another kind.
    return str(handlers.get(steps.DATASET_ITEM)).startswith('t5wild.')
  try:
    files = file_hashes.read(checkpoint)
    return any(name.startswith(f'{steps.DATASET_ITEM}/') for name in files)
  except file_hashes.NoHashesError:
    pass
  return (folder / file_hashes.FOLDER).is_dir() and any(
      (other / steps.DATASET_ITEM).is_dir()
      for other in map(epath.Path, _beside(folder))
  )


def _handlers(folder: epath.Path) -> dict[str, Any] | None:
  """By whom each part was written; None: not known."""
  try:
    record = json.loads((folder / '_CHECKPOINT_METADATA').read_text())
    handlers = record['item_handlers']
  except (OSError, ValueError, LookupError, TypeError):
    return None
  return handlers if isinstance(handlers, dict) else None


def _beside(folder: epath.Path) -> list[str]:
  directory = os.fspath(folder.parent)
  return [
      steps.get_checkpoint_dir(directory, step)
      for step in steps.complete_steps(directory)
  ]


def _encode(value: Any) -> Any:
  """Makes JSON of nested dicts, lists, numbers, strings and bytes."""
  if isinstance(value, Mapping):
    return {str(key): _encode(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [_encode(item) for item in value]
  if isinstance(value, bytes):
    return {'__bytes__': base64.b64encode(value).decode('ascii')}
  if isinstance(value, np.generic):
    return value.item()
  if value is None or isinstance(value, bool | int | float | str):
    return value
  raise TypeError(
      f'the position in the data holds {value!r} of {type(value)}, expected '
      'dicts, lists, numbers, strings and bytes: mend the state_dict() of the '
      'reader'
  )


def _decode(value: Any) -> Any:
  if isinstance(value, dict):
    if value.keys() == {'__bytes__'}:
      return base64.b64decode(value['__bytes__'])
    return {key: _decode(item) for key, item in value.items()}
  if isinstance(value, list):
    return [_decode(item) for item in value]
  return value
