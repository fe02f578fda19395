# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint from a stranger is read inside its own folder and nowhere else.

What a checkpoint says of where its arrays lie is data of whoever made it:
paths in it are taken as names below its folder or refused.
"""

from collections.abc import Iterable
import os
import stat

from t5wild.checkpoint_files import steps

_MEND = (
    'copy the files into the folder; or, if you trust whoever made it, set '
    'RestoreCheckpointConfig.trust_paths=True (t5wild convert: --trust_paths)'
)


class UnsafeCheckpointError(steps.NotACheckpointError):
  """A checkpoint that points out of its own folder."""


def unsafe(where: str, what: str) -> UnsafeCheckpointError:
  """Makes the error that refuses a checkpoint.

  Args:
    where: The file or folder that points out.
    what: How it does.
  """
  return UnsafeCheckpointError(
      f'{where} {what}, expected names inside the checkpoint, which is not '
      f'read outside its own folder: {_MEND}'
  )


def check_name(name: str, *, where: str) -> None:
  """Refuses what is no path below a folder.

  Raises:
    UnsafeCheckpointError: The name leads out, or to another store.
  """
  text = name.removesuffix('/')
  parts = text.split('/')
  if (
      not text
      or any(part in ('', '.', '..') for part in parts)
      or any(sign in text for sign in ('\\', '\0', '://', '|'))
  ):
    raise unsafe(where, f'names {name!r}')


def check_keys(keys: Iterable[str], *, where: str) -> None:
  """Refuses array names that would be paths out of the folder.

  Raises:
    UnsafeCheckpointError: A key has a part such as '..'.
  """
  for key in keys:
    check_name(key, where=f'{where} has an array that')


def check_files(folder: str | os.PathLike[str]) -> None:
  """Refuses links out of a local folder, and what is neither file nor folder.

  The folder itself may be a link: it is what the user named.

  Raises:
    UnsafeCheckpointError: Something below leads out.
  """
  if steps.is_bucket(folder):
    return
  root = os.path.realpath(folder)
  if not os.path.isdir(root):  # T5X's index, named by the user.
    root = os.path.realpath(os.path.dirname(os.path.abspath(folder)))
  for parent, folders, files in os.walk(root):
    for name in (*folders, *files):
      _check_file(os.path.join(parent, name), root)


def _check_file(path: str, root: str) -> None:
  kind = os.lstat(path).st_mode
  if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
    return
  if not stat.S_ISLNK(kind):
    raise unsafe(path, 'is neither a file nor a folder')
  target = os.path.realpath(path)
  if os.path.commonpath([root, target]) != root:
    raise unsafe(path, f'is a link to {target}')
