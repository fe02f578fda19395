# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What checkpoints a run has, in all its stores, and what is known of each."""

from collections.abc import Sequence
import dataclasses
import json
import os

from etils import epath

from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import named_steps
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps

# In MODEL_DIR: where else the run keeps checkpoints.
STORES_FILE = 'checkpoint_stores.json'
UNKNOWN = 'health unknown'  # where the file of it is damaged


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
  """A complete checkpoint.

  Attributes:
    step: Its step.
    store: The directory around it.
    path: Its folder.
    num_bytes: Of all its files.
    health: A state of `health`, or `UNKNOWN`.
    reason: Why it is in quarantine, or ''.
    is_pinned: Whether it stays whatever a run keeps.
    has_hashes: Whether its files have checksums.
    problem: Why it is not what it seems: of another step or run; None if it is.
  """

  step: int
  store: str
  path: str
  num_bytes: int
  health: str
  reason: str
  is_pinned: bool
  has_hashes: bool
  problem: str | None


def write_stores(model_dir: str, directories: Sequence[str]) -> None:
  """Leaves in MODEL_DIR where else its run keeps checkpoints.

  Raises:
    OSError: It cannot be written.
  """
  text = json.dumps({'stores': list(directories)}, indent=1)
  (epath.Path(model_dir) / STORES_FILE).write_text(text)


def stores(directory: str | os.PathLike[str]) -> list[str]:
  """Returns a directory and the other stores that its run has."""
  return _stores(steps.absolute_path(directory))[0]


def _stores(directory: str) -> tuple[list[str], str | None]:
  """The same, and what is wrong with the file that names the others."""
  file = epath.Path(directory) / STORES_FILE
  others, damage = [], None
  try:
    text = file.read_text()
    others = [str(each) for each in json.loads(text)['stores']]
  except OSError:
    pass  # A run has none before its first start.
  except (ValueError, KeyError, TypeError) as error:
    damage = (
        f'{file} is damaged ({type(error).__name__}: {error}), expected the '
        'other stores of the run: its tiers are not looked at; start the run, '
        'which writes it anew, or name each store'
    )
  return [directory, *others], damage


def damages(directory: str | os.PathLike[str]) -> list[str]:
  """What is wrong with what a run knows of its checkpoints, if anything."""
  found, damage = _stores(steps.absolute_path(directory))
  told = [] if damage is None else [damage]
  for store in found:
    try:
      told.append(health.look(store)[1])
    except health.DamagedError as error:
      told.append(str(error))
  return [damage for damage in told if damage is not None]


def entries(directory: str | os.PathLike[str]) -> list[Entry]:
  """Returns the complete checkpoints of a run, by step and store."""
  run_id = run_ids.of_store(os.fspath(directory))
  found = [
      _entry_if_there(
          store,
          step,
          run_id,
          health.Health(state=UNKNOWN)
          if known is None
          else known.get(step, health.Health()),
      )
      for store in stores(directory)
      for known in [_known(store)]
      for step in steps.complete_steps(store)
  ]
  there = [entry for entry in found if entry is not None]
  return sorted(there, key=lambda entry: entry.step)


def _known(store: str) -> dict[int, health.Health] | None:
  try:
    return health.read(store)
  except health.DamagedError:
    return None


def problem(checkpoint: str, run_id: str) -> str | None:
  """Why a checkpoint is not what it seems, if that can be told without reading.

  Args:
    checkpoint: Its folder.
    run_id: Of the run around it; '': it has none.
  """
  try:
    return named_steps.problem(checkpoint) or run_ids.problem(
        checkpoint, run_id
    )
  except steps.NotACheckpointError as error:
    return str(error)


def _entry_if_there(
    store: str, step: int, run_id: str, known: health.Health
) -> Entry | None:
  """None where its run has removed it since it was listed."""
  try:
    entry = _entry(store, step, run_id, known)
  except OSError:
    if steps.is_complete(steps.get_checkpoint_dir(store, step)):
      raise
    return None
  is_there = entry.problem is None or steps.is_complete(entry.path)
  return entry if is_there else None


def _entry(store: str, step: int, run_id: str, known: health.Health) -> Entry:
  path = steps.get_checkpoint_dir(store, step)
  root = epath.Path(path)
  try:
    file_hashes.read(path)
    has_hashes = True
  except file_hashes.NoHashesError:
    has_hashes = False
  return Entry(
      step=step,
      store=store,
      path=path,
      num_bytes=sum(
          (root / name).stat().length for name in file_hashes.names(path)
      ),
      health=known.state,
      reason=known.reason,
      is_pinned=pins.is_pinned(path),
      has_hashes=has_hashes,
      problem=problem(path, run_id),
  )
