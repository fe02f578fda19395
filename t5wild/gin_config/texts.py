# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a gin file, on a disk or in a bucket, or says why not."""

import os

from t5wild import reachability

# The largest gin file of T5X's users has 40 KB.
MAX_BYTES = 16 * 2**20
_REMOTE = '://'


class UnreadableTextError(OSError):
  """A gin file without text; the message has what, expected and do."""


def is_remote(path: str) -> bool:
  """Whether a path names something that is on no disk of this machine."""
  return _REMOTE in path


def read(path: str) -> str:
  """The text of the gin file at a path.

  Raises:
    UnreadableTextError: It is not there, not allowed, out of reach, too large
      or no text.
  """
  try:
    data = _remote_bytes(path) if is_remote(path) else _local_bytes(path)
  except UnreadableTextError:
    raise
  except OSError as error:
    raise _unreadable(
        path,
        error.strerror or str(error),
        expected='a file that may be read.',
        do='mend the path, or its permissions.',
    ) from error
  try:
    text = data.decode('utf-8')
  except UnicodeDecodeError as error:
    raise _unreadable(
        path,
        str(error),
        expected='text in UTF-8.',
        do='name a gin file, or write this one anew as UTF-8.',
    ) from error
  # As Python reads text files.
  return text.replace('\r\n', '\n').replace('\r', '\n')


def _local_bytes(path: str) -> bytes:
  _check_size(path, os.path.getsize(path))
  with open(path, 'rb') as file:
    return file.read()


def _remote_bytes(path: str) -> bytes:
  if not reachability.is_reachable(path):
    raise _unreadable(
        path,
        'its storage gave no answer within '
        f'{reachability.TIMEOUT_SECONDS:.0f} s',
        expected='a bucket within reach, or a file of this machine.',
        do='copy the file here, and name the copy.',
    )
  from etils import epath  # cloud paths only

  try:
    remote = epath.Path(path)
  except KeyError as error:
    raise _unreadable(
        path,
        f'nothing here reads {path.partition(_REMOTE)[0]}://',
        expected='a file of this machine, or one on gs:// or s3://.',
        do='copy the file here, and name the copy.',
    ) from error
  try:
    _check_size(path, remote.stat().length)
    return remote.read_bytes()
  except UnreadableTextError:
    raise
  # Each store has errors of its own, TensorFlow's no OSErrors.
  except Exception as error:
    reason = (str(error) or repr(error)).splitlines()[0]
    raise _unreadable(
        path,
        f'its storage refused it: {reason[:300]}',
        expected='a file that this machine may read.',
        do='check its name and your credentials, or copy the file here.',
    ) from error


def _check_size(path: str, num_bytes: int) -> None:
  if num_bytes > MAX_BYTES:
    raise _unreadable(
        path,
        f'it has {num_bytes} bytes',
        expected=f'gin, of at most {MAX_BYTES} bytes.',
        do='name a gin file.',
    )


def _unreadable(
    path: str, why: str, *, expected: str, do: str
) -> UnreadableTextError:
  return UnreadableTextError(
      f'the gin file {path!r} cannot be read: {why}\n'
      f'  expected: {expected}\n'
      f'  do: {do}'
  )
