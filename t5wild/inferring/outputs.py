# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An output file made of chunks, so that a killed run goes on after the last.

A chunk counts when its marker is there, which is written after it; the output
when its own is. A process may be killed between any two lines here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import json
import os
import re
import shutil
from typing import Any, IO

from etils import epath

from t5wild import run_dir
from t5wild.inferring import output_lock
from t5wild.partitioning import distributed

COMPLETED = '.COMPLETED'
_SETTINGS = '-settings.json'
_LOCK = '-lock'
# Of a chunk, as T5X names it: five digits, or more where there are more.
_CHUNK = re.compile(r'-chunk(\d{5,})\Z')


class BadOutputError(ValueError):
  """An output that is there and is not this run's, or cannot be."""


class NotWrittenError(OSError):
  """An output that could be written at first, and then no more."""


def merge_chunks_to_file(
    output_dir: str, output_fname: str, tmp_dir: str, step: int | None
) -> None:
  """Joins the chunks of one output in order (T5X's signature)."""
  del step
  by_number = {
      int(match.group(1)): path
      for path in _parts(epath.Path(tmp_dir), output_fname)
      if (match := _CHUNK.search(path.name))
  }
  chunks = [by_number[number] for number in sorted(by_number)]
  final = epath.Path(output_dir) / output_fname
  is_bucket = '://' in os.fspath(output_dir)
  if is_bucket:  # every object appears whole
    with final.open('wb') as merged:
      _copy_all(chunks, merged)
    return
  path = final.parent / f'{final.name}.merging'
  try:
    with path.open('wb') as merged:
      _copy_all(chunks, merged)
      merged.flush()
      os.fsync(merged.fileno())
  except OSError:  # a full disk needs the space
    path.unlink(missing_ok=True)
    raise
  path.replace(final)


def _parts(folder: epath.Path, name: str) -> list[epath.Path]:
  """What belongs to one output in a folder of chunks, whatever its name.

  No glob: one below a folder such as `runs[1]` finds nothing.
  """
  return [
      path for path in folder.iterdir() if path.name.startswith(f'{name}-')
  ]


def _copy_all(chunks: Sequence[epath.Path], merged: IO[bytes]) -> None:
  for chunk in chunks:
    with chunk.open('rb') as file:
      shutil.copyfileobj(file, merged)


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
    self._lock = None
    self._num_chunks = 0
    self._share(self._look)

  def _share(self, look: Callable[[], tuple[bool, dict[int, str]]]) -> None:
    """Tells all processes what process 0 finds, or refuses."""
    error = found = None
    if distributed.process_index() == 0:
      try:
        found = look()
      except BadOutputError as bad:
        error = str(bad)
    told = distributed.meet(
        f'output {self.name}', value=[found, error, self._settings]
    )
    found, error, settings = told[0]
    if error is not None:
      raise BadOutputError(error)
    for process, (_, _, other) in enumerate(told):
      lines = _differences(settings, other)
      if lines:
        raise BadOutputError(
            f'process {process} has other inputs or settings for {self._final} '
            'than process 0 (there):\n' + '\n'.join(lines) + '\nExpected the '
            'same on all hosts: read from shared storage, or make the copies '
            'alike.'
        )
    self.is_complete, digests = found
    self._digests = {int(chunk): digest for chunk, digest in digests.items()}

  def _look(self) -> tuple[bool, dict[int, str]]:
    """Returns whether it is complete, and the digest of each chunk there."""
    if self._marker.exists() and self._is_what_is_marked_there():
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
    self._check_place()
    return False, {}

  def _is_what_is_marked_there(self) -> bool:
    """Whether a complete output has not been moved away, or is to be joined."""
    if self._merge_fn is None:
      return self._final.exists() or self._tmp_settings.exists()
    if self._merge_fn is merge_chunks_to_file:
      return self._final.exists()
    return not self._tmp_settings.exists()  # what it makes, it alone knows

  def _check_place(self) -> None:
    """Refuses a folder that cannot be written, as far as looking tells."""
    why = run_dir.why_unwritable(self._directory)
    if why is not None:
      raise self._unwritable(why)

  def _unwritable(self, why: object) -> BadOutputError:
    return BadOutputError(
        f'{self._final} cannot be written ({why}): expected a path in a folder '
        'that this user may write, with space left. Choose another output.'
    )

  def start(self) -> None:
    """Makes the folder of chunks, and says what they are of.

    All processes call it; process 0 looks again, under a lock, and writes.

    Raises:
      BadOutputError: Nothing can be written, or another job writes it.
    """
    self._share(self._claim)

  def _claim(self) -> tuple[bool, dict[int, str]]:
    try:
      self._tmp.mkdir(parents=True, exist_ok=True)
      self._lock = output_lock.OutputLock(
          os.fspath(self._tmp / f'{self.name}{_LOCK}')
      )
      is_complete, digests = self._look()
      if not is_complete:
        # Of an output that has been taken away.
        self._marker.unlink(missing_ok=True)
        if not self._tmp_settings.exists():
          _write_whole(self._tmp_settings, json.dumps(self._settings, indent=1))
    except output_lock.TakenError:
      raise BadOutputError(
          f'{self._final} is being written by another job: expected one at a '
          'time. Wait until it ends, or choose another output.'
      ) from None
    except OSError as error:
      raise self._unwritable(error) from None  # all is said
    return is_complete, digests

  def _check_same(self, path: epath.Path) -> None:
    lines = _differences(self._read_settings(path), self._settings)
    if lines:
      raise BadOutputError(
          f'{self._final} is, or is to be, of other inputs or settings:\n'
          + '\n'.join(lines)
          + '\nExpected the same, to go on with it. Choose another output, or '
          f'remove {self._final}, {path} and what is beside it.'
      )

  def _read_settings(self, path: epath.Path) -> dict[str, Any]:
    text = path.read_text()
    try:
      settings = json.loads(text)
    except ValueError:
      settings = None
    if not isinstance(settings, dict):
      raise BadOutputError(
          f'{path} is {text[:60]!r}: expected what an inference of t5wild '
          f'wrote there, the settings of {self._final}. Choose another output, '
          f'or remove {self._final}, {path} and what is beside it.'
      )
    return settings

  def _done_chunks(self) -> dict[int, str]:
    found = {}
    paths = {path.name: path for path in _parts(self._tmp, self.name)}
    for name, path in paths.items():
      match = _CHUNK.search(name.removesuffix(COMPLETED))
      if match and name.endswith(COMPLETED) and match.string in paths:
        found[int(match.group(1))] = path.read_text()
    return found

  def is_done(self, chunk: int, *, digest: str) -> bool:
    """Whether a chunk is there already.

    Raises:
      BadOutputError: It is there, of other inputs.
    """
    self._num_chunks = max(self._num_chunks, chunk + 1)
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
    """Writes a chunk by `write(path)`, then its marker; process 0 only.

    Raises:
      NotWrittenError: In vain.
    """
    path = self._tmp / f'{self.name}-chunk{chunk:05}'
    with self._told(path):
      write(os.fspath(path))
      _write_whole(path.parent / f'{path.name}{COMPLETED}', digest)

  def finish(self) -> None:
    """Joins the chunks and marks the output complete; process 0 only.

    Raises:
      BadOutputError: Chunks are there that these inputs have not.
      NotWrittenError: In vain, or chunks have gone.
    """
    self._check_all_there()
    self._check_no_others()
    with self._told(self._final):
      if self._merge_fn is not None:
        self._merge_fn(
            os.fspath(self._directory), self.name, os.fspath(self._tmp), None
        )
      _write_whole(self._marker, json.dumps(self._settings, indent=1))
    self._remove_chunks()
    self.close()

  def close(self) -> None:
    """Lets another job have the output."""
    if self._lock is not None:
      self._lock.close()
      self._lock = None

  def _check_all_there(self) -> None:
    gone = [
        number
        for number in range(self._num_chunks)
        if not (self._tmp / f'{self.name}-chunk{number:05}').exists()
    ]
    if gone:
      raise NotWrittenError(
          f'{len(gone)} of {self._num_chunks} chunks of {self._final} have '
          f'gone from {self._tmp} ({gone[:5]}): expected all of them. Leave '
          'that folder alone, and run the same command again.'
      )

  def _check_no_others(self) -> None:
    others = sorted(n for n in self._digests if n >= self._num_chunks)
    if others:
      raise BadOutputError(
          f'{self._tmp} holds chunks {others[:5]} of {self._final}, and the '
          f'inputs make {self._num_chunks}: they have become fewer since those '
          'were written. Expected the same, to go on with it. Restore the '
          f'inputs, or remove {self._tmp}.'
      )

  @contextlib.contextmanager
  def _told(self, path: epath.Path) -> Iterator[None]:
    """Says which file could not be written, and what then."""
    try:
      yield
    except BrokenPipeError:  # of what is shown beside it
      raise
    except OSError as error:
      raise NotWrittenError(
          f'{path} could not be written ({error}): expected space, and a '
          'folder that stays. The same command goes on from the last whole '
          'chunk: free space first.'
      ) from error

  def _remove_chunks(self) -> None:
    if self._merge_fn is None or not self._tmp.exists():
      return
    # The lock goes last: until then nobody else writes here.
    paths = _parts(self._tmp, self.name)
    for path in sorted(paths, key=lambda path: path.name.endswith(_LOCK)):
      path.unlink(missing_ok=True)
    # Other outputs may have chunks there; epath and the system say so.
    with contextlib.suppress(OSError, ValueError):
      self._tmp.rmdir()


def _differences(
    there: Mapping[str, Any], asked: Mapping[str, Any]
) -> list[str]:
  return [
      _both_sides(key, there.get(key), asked.get(key))
      for key in sorted(there.keys() | asked.keys())
      if there.get(key) != asked.get(key)
  ]


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
