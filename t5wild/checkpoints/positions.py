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
from typing import Any

from absl import logging
from etils import epath
import jax
import numpy as np
import orbax.checkpoint as ocp

from t5wild.checkpoint_files import steps

OF_ALL_FILE = 'position.json'
# As `data.reader_protocol` has it: this room does not see that one.
OF_ALL_HOSTS = 'of_all_hosts'


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
  """
  folder = epath.Path(checkpoint) / steps.DATASET_ITEM
  shared = folder / OF_ALL_FILE
  if shared.exists():
    return _decode(json.loads(shared.read_text()))
  file = folder / _own_file(process, count)
  if not file.exists():
    # No glob: below a folder such as `runs[1]` one finds nothing.
    there = folder.iterdir() if folder.is_dir() else ()
    others = sorted(path for path in there if path.suffix == '.json')
    if not others:
      return None
    file = others[process % len(others)]
    logging.warning(
        '%s was saved by %d processes and is read by %d: process %d takes the '
        'position in the data from %s',
        checkpoint, len(others), count, process, file.name,
    )  # fmt: skip
  return _decode(json.loads(file.read_text()))


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
