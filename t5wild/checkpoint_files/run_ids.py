# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which run a checkpoint is of: an id that a run has, and writes into each.

A checkpoint of another run is whole by all its hashes, and may have the same
shapes: copied over one of a run's own it would be gone on from in silence. A
copy of a whole MODEL_DIR has the id, and goes on. What has no id (an older
checkpoint, T5X's) is anybody's.
"""

import json
import os
import secrets

from absl import logging
from etils import epath

from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import small_files
from t5wild.checkpoint_files import steps

FILE = 'run_id.json'  # in MODEL_DIR
OWNER_FILE = 't5wild_run.json'  # in a tier: says which MODEL_DIR it is of
IN_CHECKPOINT = 'run.json'  # in the folder of hashes, written with them
_ADOPTED = 'adopted.json'
_KEY = 'run_id'


class ForeignError(steps.NotACheckpointError):
  """A checkpoint of another run than the one that looks at it."""


def to_text(run_id: str) -> str:
  """Returns the contents of a file that says an id."""
  return json.dumps({_KEY: run_id})


def establish(model_dir: str, *, source: str | None) -> str:
  """Returns the id of a run, which it gets at its first start.

  Args:
    model_dir: The run directory, which is there.
    source: Its own checkpoint that it goes on from, whose id it takes where it
      has lost its own (MODEL_DIR was deleted, and a tier's is taken); or None.

  Returns:
    The id; '' where it cannot be kept, since the next start would take another.
  """
  run_id = of_directory(model_dir)
  if run_id:
    return run_id
  run_id = (source and of_checkpoint(source)) or secrets.token_hex(8)
  try:
    _write(epath.Path(model_dir) / FILE, run_id)
  except OSError:
    logging.exception('%s gets no id; nor do its checkpoints', model_dir)
    return ''
  return run_id


def leave(directory: str, run_id: str) -> None:
  """Makes a store that of a run, which has an id, unless it is somebody's.

  Raises:
    OSError: It cannot be written.
  """
  if run_id and not of_store(directory):
    _write(epath.Path(directory) / FILE, run_id)


def of_directory(directory: str) -> str:
  """Returns the id of the run that a store belongs to; '': it has none."""
  root = epath.Path(steps.absolute_path(directory))
  try:
    return _read(root / FILE)
  except ValueError as error:
    logging.error(
        '%s is damaged (%s): checkpoints are taken whatever run they are of, '
        'and the run gets the id of the one that it goes on from',
        root / FILE, error,
    )  # fmt: skip
    return ''


def of_store(directory: str) -> str:
  """The same, of a tier by the run directory that it names."""
  found = of_directory(directory)
  if found:
    return found
  try:
    owner = epath.Path(steps.absolute_path(directory)) / OWNER_FILE
    return of_directory(json.loads(owner.read_text())['model_dir'])
  except (OSError, ValueError, LookupError, TypeError):
    return ''


def of_checkpoint(checkpoint: str | os.PathLike[str]) -> str:
  """Returns the id of the run that saved a checkpoint; '': it has none.

  Raises:
    steps.NotACheckpointError: The file that says it is damaged.
  """
  file = epath.Path(checkpoint) / file_hashes.FOLDER / IN_CHECKPOINT
  try:
    return _read(file)
  except ValueError as error:
    raise steps.NotACheckpointError(
        f'{file} is damaged ({error}), expected the id of the run that saved '
        'it: take an older checkpoint, or a copy'
    ) from error


def _read(file: epath.Path) -> str:
  """The id in a file; '' without one.

  Raises:
    ValueError: It holds something else.
  """
  try:
    text = file.read_text()
  except (FileNotFoundError, NotADirectoryError):
    return ''
  try:
    return str(json.loads(text)[_KEY])
  except (ValueError, LookupError, TypeError) as error:
    raise ValueError(f'{type(error).__name__}: {error}') from error


def _write(file: epath.Path, run_id: str) -> None:
  small_files.replace(file, to_text(run_id))


def problem(checkpoint: str | os.PathLike[str], run_id: str) -> str | None:
  """What is wrong with the run of a checkpoint; None if nothing is.

  Args:
    checkpoint: Its folder.
    run_id: The id of the run that looks at it; '': it has none.

  Raises:
    steps.NotACheckpointError: The file that says its run is damaged.
  """
  found = of_checkpoint(checkpoint)
  if not run_id or found in ('', run_id):
    return None
  try:
    if _read(epath.Path(checkpoint) / _ADOPTED) == run_id:
      return None
  except ValueError as error:
    logging.error('%s is damaged: %s', epath.Path(checkpoint) / _ADOPTED, error)
  return (
      f'it was saved by another run (id {found}), expected one of this run '
      f'(id {run_id}): remove it; or, to go on from it on purpose, run: t5wild '
      f'checkpoints adopt {epath.Path(checkpoint).parent} --step '
      f'{os.fspath(checkpoint).rstrip("/").rsplit("_", 1)[-1]}'
  )


def check(checkpoint: str | os.PathLike[str], run_id: str) -> None:
  """Refuses a checkpoint of another run.

  Raises:
    ForeignError: It is one.
    steps.NotACheckpointError: The file that says its run is damaged.
  """
  told = problem(checkpoint, run_id)
  if told is not None:
    raise ForeignError(told)


def adopt(checkpoint: str | os.PathLike[str], run_id: str) -> None:
  """Makes a checkpoint one of a run, as a person told; its files stay.

  Raises:
    OSError: It cannot be written to.
  """
  _write(epath.Path(checkpoint) / _ADOPTED, run_id)


def disown(checkpoint: str | os.PathLike[str]) -> None:
  """Takes it back."""
  (epath.Path(checkpoint) / _ADOPTED).unlink(missing_ok=True)
