# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Copies a checkpoint to another store, whole or not at all, and checked.

What is read is held against the checksums of the save: a damaged checkpoint is
not copied over good ones. What was written is read once more on a disk; of a
bucket its sizes are looked at.
"""

import contextlib
import os
import shutil

from etils import epath

from t5wild.checkpoint_files import array_hashes
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import named_steps
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps

# As those that a killed save leaves, so that the same hand clears them.
_HALF = '.orbax-checkpoint-tmp-copy'
_NOT_COPIED = (pins.FILE,)


class DamagedSourceError(steps.NotACheckpointError):
  """A checkpoint that is not as it was saved, and was to be copied."""


class OtherCheckpointError(steps.NotACheckpointError):
  """Where a copy was to go lies another checkpoint, which stays."""


def copy(
    source: str | os.PathLike[str], target: str, *, replace: bool = False
) -> int:
  """Copies a complete checkpoint; returns the bytes.

  A whole copy that is there already is left alone; one that is damaged, and a
  folder that was emptied, are replaced.

  Args:
    source: Its folder, on a disk or in a bucket.
    target: The folder to be, of the same name in another directory.
    replace: Whether another state of the same run is replaced, too: the run
      has made the step anew.

  Raises:
    DamagedSourceError: The source is damaged; the target stays as it is.
    OtherCheckpointError: Another run's checkpoint lies there, or another
      state that is not to be replaced.
    OSError: One of them cannot be read, or written.
  """
  if steps.is_complete(target):
    _check_same_run(source, target)
    is_whole = _is_whole(source, target)
    is_same = _has_same_arrays(source, target)
    if is_whole and is_same:
      return 0
    # What its own list of files calls damaged may have any numbers.
    if is_whole is not False and not is_same and not replace:
      raise OtherCheckpointError(_other(source, target, 'has other numbers'))
  _check_source(epath.Path(source))
  place = epath.Path(target if steps.is_bucket(target) else target + _HALF)
  try:
    num_bytes = _copy_files(epath.Path(source), place)
    if not steps.is_bucket(target):
      _check_copy(place)
      steps.replace_checkpoint(target, place)
    return num_bytes
  except BaseException:
    _remove(place)
    raise


def _check_same_run(source, target: str) -> None:
  ours = run_ids.of_checkpoint(source)
  try:
    theirs = run_ids.of_checkpoint(target)
  except steps.NotACheckpointError:
    return  # damaged, and replaced
  if ours and theirs and ours != theirs:
    raise OtherCheckpointError(
        _other(source, target, f'was saved by another run (id {theirs})')
    )


def _other(source, target: str, what: str) -> str:
  return (
      f'{target} {what}, expected nothing there, or a copy of {source}: it is '
      'not replaced; mirror to another folder, or remove that one'
  )


def _is_whole(source, target: str) -> bool | None:
  """Whether a copy is damaged; None: it has no list of files that says it."""
  if not steps.is_bucket(target):
    with contextlib.suppress(file_hashes.NoHashesError):
      return not file_hashes.verify(target).damages
  return True if _sizes(target) == _sizes(source) else None


def _sizes(checkpoint) -> dict[str, int]:
  root = epath.Path(checkpoint)
  return {
      name: (root / name).stat().length
      for name in file_hashes.names(checkpoint)
      if file_hashes.is_hashed(name) and name != steps.COMMIT_MARKER
  }


def _has_same_arrays(source, target: str) -> bool:
  try:
    return array_hashes.read(source) == array_hashes.read(target)
  except file_hashes.NoHashesError:
    return file_hashes.have_same_files(source, target)


def _check_source(source: epath.Path) -> None:
  seeming = named_steps.problem(source) or run_ids.problem(
      source, run_ids.of_store(os.fspath(source.parent))
  )
  if seeming is not None:
    raise DamagedSourceError(_damaged(source, seeming))
  try:
    gone = file_hashes.missing(source)
  except file_hashes.NoHashesError:
    return
  if gone:
    raise DamagedSourceError(_damaged(source, str(gone[0])))


def _copy_files(source: epath.Path, place: epath.Path) -> int:
  _remove(place)
  try:
    expected = file_hashes.read(source)
  except file_hashes.NoHashesError:
    expected = {}
  num_bytes = 0
  # In a bucket the marker makes it complete.
  for name in sorted(
      file_hashes.names(source), key=lambda n: (n == steps.COMMIT_MARKER, n)
  ):
    if name in _NOT_COPIED:
      continue
    found = _copy_file(source / name, place / name)
    num_bytes += found['bytes']
    if expected.get(name, found) != found:
      raise DamagedSourceError(
          _damaged(source, f'{name} has other bytes than when it was saved')
      )
  if not expected and not steps.is_bucket(source):
    _check_arrays(source)
  marker = place / steps.COMMIT_MARKER
  if not marker.exists():  # of an older writer, on a disk
    marker.write_text('copied')
  return num_bytes


def _check_arrays(source: epath.Path) -> None:
  """Decodes the arrays of a checkpoint that has no list of files."""
  if not array_hashes.has_any(source):
    return
  from t5wild.checkpoint_files import stored_arrays  # TensorStore, numpy

  try:
    for key, what in stored_arrays.damages(source):
      raise DamagedSourceError(_damaged(source, f'array {key} {what}'))
  except file_hashes.NoHashesError as error:
    raise DamagedSourceError(_damaged(source, str(error))) from error


def _damaged(source, what: str) -> str:
  return (
      f'{source} is damaged ({what}), expected it as it was saved: it is not '
      'copied; take an older one'
  )


def _copy_file(source: epath.Path, target: epath.Path) -> dict:
  target.parent.mkdir(parents=True, exist_ok=True)
  with target.open('wb') as stream:
    found = file_hashes.hash_file(source, on_block=stream.write)
    if '://' not in os.fspath(target):
      stream.flush()
      os.fsync(stream.fileno())
  size = target.stat().length
  if size != found['bytes']:
    raise OSError(
        f'{target} has {size:,} bytes after {found["bytes"]:,} were written, '
        'expected as many: the store lost some; it is tried again later'
    )
  return found


def _check_copy(place: epath.Path) -> None:
  try:
    damages = file_hashes.verify(place).damages
  except file_hashes.NoHashesError:
    return
  if damages:
    raise OSError(
        f'{place} does not hold what was written ({damages[0]}), expected the '
        'same bytes: the store is damaged; mirror to another one'
    )


def _remove(place: epath.Path) -> None:
  if '://' in os.fspath(place):
    if place.exists():
      place.rmtree(missing_ok=True)
    return
  shutil.rmtree(place, ignore_errors=True)
