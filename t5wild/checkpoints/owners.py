# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which run a tier's directory belongs to: nobody goes on from another's."""

import json

from etils import epath

from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps

FILE = run_ids.OWNER_FILE


class NotOursError(ValueError):
  """A tier's directory with the checkpoints of another run."""


def check(directory: str, *, model_dir: str) -> None:
  """Refuses the directory of another run.

  Raises:
    NotOursError: It is one.
  """
  directory, model_dir = map(steps.absolute_path, (directory, model_dir))
  if steps.is_same_place(directory, model_dir):
    raise NotOursError(
        f'the directory of a tier is {directory}, which is MODEL_DIR, expected '
        'another place: a tier removes the checkpoints that it has too many '
        'of; bind it to a folder or a bucket path of its own'
    )
  file = epath.Path(directory) / FILE
  try:
    owner = json.loads(file.read_text())['model_dir']
  except FileNotFoundError:
    owner = None
  except (ValueError, KeyError, TypeError) as error:
    owner = repr(error)
  if owner is None and not steps.complete_steps(directory):
    return
  if owner != model_dir:
    said = 'a run that it does not name' if owner is None else owner
    raise NotOursError(
        f'{directory} holds checkpoints of {said}, expected none, or those of '
        f'{model_dir}: bind the directory of the tier to one of this run '
        f'alone; or, if the run was moved, write its MODEL_DIR into {FILE} '
        'there'
    )


def claim(directory: str, *, model_dir: str) -> None:
  """Makes a directory that of a run.

  Raises:
    NotOursError: It is that of another.
    steps.UnwritableError: It cannot be written.
  """
  check(directory, model_dir=model_dir)
  path = epath.Path(steps.absolute_path(directory))
  text = json.dumps({'model_dir': steps.absolute_path(model_dir)})
  try:
    path.mkdir(parents=True, exist_ok=True)
    (path / FILE).write_text(text)
  except OSError as error:
    raise steps.UnwritableError(
        f'{path} cannot be written ({error}), expected a store for '
        'checkpoints: set the directory of the tier to one that this user may '
        'write'
    ) from error
