# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""All processes must read one checkpoint, where each reads it by a path.

Where MODEL_DIR lies on the hosts' own disks, one path is several folders. Each
may hold a whole checkpoint of the step, of other runs: a run would go on with
other parameters in each replica.
"""

import hashlib
import re
import time

from etils import epath

from t5wild.checkpoint_files import file_hashes
from t5wild.partitioning import distributed

_PATIENCE_SECONDS = 20.0  # a file system may show a new folder to others late
_PAUSE_SECONDS = 0.5
_ABSENT = ''
_TELLING = re.compile(r'run\.json\Z|arrays\.process_0+-')


class OtherSightError(ValueError):
  """Processes of one run see different files at one path."""


def check(checkpoint: str) -> None:
  """Compares what all processes see of a checkpoint; each calls it alike.

  Raises:
    OtherSightError: On all, where one does not see it, or sees another.
  """
  if distributed.process_count() == 1:
    return
  seen = _meet(checkpoint, patience_seconds=0)
  if _ABSENT in seen and set(seen) != {_ABSENT}:
    seen = _meet(checkpoint, patience_seconds=_PATIENCE_SECONDS)
  if len(set(seen)) == 1:
    return  # where nobody sees one, who reads it says what it is
  blind = [i for i, one in enumerate(seen) if one == _ABSENT]
  others = [i for i, one in enumerate(seen) if one not in (seen[0], _ABSENT)]
  told = [f'processes {blind} see no checkpoint there'] if blind else []
  if others:
    told.append(f'processes {others} see another one there than process 0')
  raise OtherSightError(
      f'{checkpoint}: {", ".join(told)}. Expected one folder that all hosts '
      'share: each has read its own disk. Set MODEL_DIR (or the path to '
      'restore) to shared storage, or copy that folder to the same place on '
      'every host.'
  )


def _meet(checkpoint: str, *, patience_seconds: float) -> list[str]:
  deadline = time.monotonic() + patience_seconds
  mine = _identity(checkpoint)
  while mine == _ABSENT and time.monotonic() < deadline:
    time.sleep(_PAUSE_SECONDS)
    mine = _identity(checkpoint)
  return distributed.meet('sight of the checkpoint', value=mine)


def _identity(checkpoint: str) -> str:
  """A hash of what tells a checkpoint from another; '': it is not there.

  Of the id of its run and of hashes of arrays; without them, of the names in
  the folder that never change.
  """
  root = epath.Path(checkpoint)
  told = hashlib.sha256()
  try:
    names = sorted(entry.name for entry in root.iterdir())
    if file_hashes.FOLDER in names:
      folder = root / file_hashes.FOLDER
      names = sorted(entry.name for entry in folder.iterdir())
      for name in filter(_TELLING.match, names):
        told.update((folder / name).read_bytes())
    else:
      told.update(' '.join(filter(file_hashes.is_hashed, names)).encode())
  except OSError:
    return _ABSENT
  return told.hexdigest()
