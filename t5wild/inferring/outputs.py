# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An output file made of chunks, so that a killed run goes on after the last.

A chunk counts when its marker is there, which is written after it; the output
when its own is. A process may be killed between any two lines here.
"""

from collections.abc import Callable, Mapping
import glob
import json
import os
import shutil
from typing import Any

from etils import epath

from t5wild.partitioning import distributed

COMPLETED = '.COMPLETED'
_SETTINGS = '-settings.json'


class BadOutputError(ValueError):
  """An output that is there and is not this run's."""


def merge_chunks_to_file(
    output_dir: str, output_fname: str, tmp_dir: str, step: int | None
) -> None:
  """Joins the chunks of one output in order (T5X's signature)."""
  del step
  chunks = sorted(epath.Path(tmp_dir).glob(
      f'{glob.escape(output_fname)}-chunk?????'
  ))
  final = epath.Path(output_dir) / output_fname
  is_bucket = '://' in os.fspath(output_dir)
  # On a disk the file appears whole; in a bucket every object does.
  path = final if is_bucket else final.parent / f'{final.name}.merging'
  with path.open('wb') as merged:
    for chunk in chunks:
      with chunk.open('rb') as file:
        shutil.copyfileobj(file, merged)
    merged.flush()
    if not is_bucket:
      os.fsync(merged.fileno())
  if not is_bucket:
    path.replace(final)


class Output:
  """One output file and its chunks.

  Attributes:
    name: Name of the file.
    is_complete: Whether all of it is there already.
  """

  def __init__(
      self,
      directory: str,
      name: str,
      *,
      tmp_name: str,
      settings: Mapping[str, Any],
      merge_fn: Callable[..., None] | None = merge_chunks_to_file,
  ):
    """Looks at what is there; every process calls it, process 0 looks.

    Args:
      directory: Where the output goes.
      name: Name of the file.
      tmp_name: Name of the folder of its chunks, in `directory`.
      settings: What the output depends on; of other settings it is refused.
      merge_fn: Joins the chunks, which then go; None leaves them.

    Raises:
      BadOutputError: The output, or part of it, is of something else.
    """
    self.name = name
    self._directory = epath.Path(directory)
    self._final = self._directory / name
    self._marker = self._directory / f'{name}{COMPLETED}'
    self._tmp = self._directory / tmp_name
    # By name: outputs of several modes share the folder, as T5X names it.
    self._tmp_settings = self._tmp / f'{name}{_SETTINGS}'
    self._merge_fn = merge_fn
    self._settings = json.loads(json.dumps(settings))
    error = found = None
    if distributed.process_index() == 0:
      try:
        found = self._look()
      except BadOutputError as bad:
        error = str(bad)
    (found, error), *others = distributed.meet(
        f'output {name}', value=[found, error]
    )
    del others
    if error is not None:
      raise BadOutputError(error)
    self.is_complete, digests = found
    self._digests = {int(chunk): digest for chunk, digest in digests.items()}

  def _look(self) -> tuple[bool, dict[int, str]]:
    """Returns whether it is complete, and the digest of each chunk there."""
    if self._marker.exists():
      self._check_same(self._marker)
      self._remove_chunks()
      return True, {}
    if self._tmp_settings.exists():
      self._check_same(self._tmp_settings)
      return False, self._done_chunks()
    if self._final.exists():
      raise BadOutputError(
          f'{self._final} exists, and nothing says what it is of: expected no '
          'such file, or one of the same inputs and settings. Choose another '
          'output, or remove it.'
      )
    return False, {}

  def start(self) -> None:
    """Makes the folder of chunks, and says what they are of; process 0 only."""
    self._tmp.mkdir(parents=True, exist_ok=True)
    if not self._tmp_settings.exists():
      _write_whole(self._tmp_settings, json.dumps(self._settings, indent=1))

  def _check_same(self, path: epath.Path) -> None:
    there = json.loads(path.read_text())
    lines = [
        _both_sides(key, there.get(key), self._settings.get(key))
        for key in sorted(there.keys() | self._settings.keys())
        if there.get(key) != self._settings.get(key)
    ]
    if lines:
      raise BadOutputError(
          f'{self._final} is, or is to be, of other inputs or settings:\n'
          + '\n'.join(lines)
          + '\nExpected the same, to go on with it. Choose another output, or '
          f'remove {self._final}, {path} and what is beside it.'
      )

  def _done_chunks(self) -> dict[int, str]:
    found = {}
    for marker in self._tmp.glob(
        f'{glob.escape(self.name)}-chunk?????{COMPLETED}'
    ):
      number = marker.name.removesuffix(COMPLETED)[-5:]
      found[int(number)] = marker.read_text()
    return found

  def is_done(self, chunk: int, *, digest: str) -> bool:
    """Whether a chunk is there already.

    Raises:
      BadOutputError: It is there, of other inputs.
    """
    there = self._digests.get(chunk)
    if there is not None and there != digest:
      raise BadOutputError(
          f'the inputs have changed since chunk {chunk} of {self._final} was '
          f'written:\n  then: {there}\n  now:  {digest}\nExpected the same, to '
          'go on with it. Restore the inputs, or choose another output.'
      )
    return there is not None

  def write(
      self, chunk: int, *, digest: str, write: Callable[[str], None]
  ) -> None:
    """Writes a chunk by `write(path)`, then its marker; process 0 only."""
    path = self._tmp / f'{self.name}-chunk{chunk:05}'
    write(os.fspath(path))
    _write_whole(path.parent / f'{path.name}{COMPLETED}', digest)

  def finish(self) -> None:
    """Joins the chunks and marks the output complete; process 0 only."""
    if self._merge_fn is not None:
      self._merge_fn(
          os.fspath(self._directory), self.name, os.fspath(self._tmp), None
      )
    _write_whole(self._marker, json.dumps(self._settings, indent=1))
    self._remove_chunks()

  def _remove_chunks(self) -> None:
    if self._merge_fn is None or not self._tmp.exists():
      return
    for path in self._tmp.glob(f'{glob.escape(self.name)}-*'):
      path.unlink()
    if self._tmp.exists() and not any(self._tmp.iterdir()):
      self._tmp.rmdir()


def _both_sides(name: str, there: Any, asked: Any) -> str:
  """Lines on what differs; of lists only what one of them lacks."""
  if isinstance(there, list) and isinstance(asked, list):
    there, asked = (
        [x for x in there if x not in asked],
        [x for x in asked if x not in there],
    )
  return f'  {name}\n    there: {there}\n    asked: {asked}'


def _write_whole(path: epath.Path, text: str) -> None:
  """Writes a small file that appears whole or not at all."""
  if '://' in os.fspath(path):
    path.write_text(text)
    return
  partial = path.parent / f'{path.name}.tmp'
  partial.write_text(text)
  partial.replace(path)
