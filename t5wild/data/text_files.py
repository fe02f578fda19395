# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds text files and says which are held out.

The same names give the same order and the same split on every machine,
whatever the order of its file system.
"""

from collections.abc import Sequence
import dataclasses
import glob
import hashlib
import os
import pathlib

TEXT_SUFFIXES = ('.txt', '.text', '.md', '.rst', '.py')
JSON_SUFFIXES = ('.jsonl', '.ndjson')
PARQUET_SUFFIXES = ('.parquet',)
# Folders that hold no text of the user's own.
SKIPPED_FOLDERS = ('__pycache__', 'site-packages', 'dist-packages')

_GLOB_CHARACTERS = ('*', '?', '[')


@dataclasses.dataclass(frozen=True, order=True, kw_only=True)
class TextFile:
  """A file of text.

  `name` is its path relative to the folder that was asked for, with forward
  slashes: it decides the order and the split, so that a corpus may move.
  """

  name: str
  path: str

  @property
  def is_compressed(self) -> bool:
    """Whether it is read through gzip."""
    return self.path.endswith('.gz')

  @property
  def kind(self) -> str:
    """'text', 'jsonl' or 'parquet', by the suffix before any '.gz'."""
    suffix = pathlib.PurePath(self.path.removesuffix('.gz')).suffix.lower()
    if suffix in JSON_SUFFIXES:
      return 'jsonl'
    return 'parquet' if suffix in PARQUET_SUFFIXES else 'text'


def find_text_files(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    suffixes: Sequence[str] = TEXT_SUFFIXES + JSON_SUFFIXES + PARQUET_SUFFIXES,
    skipped_folders: Sequence[str] = SKIPPED_FOLDERS,
) -> list[TextFile]:
  """Lists the text files of files, folders and globs, sorted by name.

  Args:
    paths: one or several. A folder stands for all files under it that have one
      of `suffixes`, plain or with '.gz' after it; hidden ones are left out. A
      file or a glob that names a file is taken whatever its suffix.
    suffixes: what counts as text in a folder.
    skipped_folders: names of folders not to look into.

  Returns:
    The files, without repetitions.

  Raises:
    FileNotFoundError: for a path that does not exist, a glob or a folder
      without any text file.
  """
  if isinstance(paths, str | os.PathLike):
    paths = [paths]
  if not paths:
    raise FileNotFoundError(
        f'no text to read: paths is {paths!r}, expected at least one file, '
        "folder or glob. Set the task's paths."
    )
  found: dict[str, TextFile] = {}
  for path in paths:
    for file in _files_of(
        os.path.expanduser(os.fspath(path)),
        suffixes=tuple(suffixes),
        skipped_folders=frozenset(skipped_folders),
    ):
      found.setdefault(os.path.realpath(file.path), file)
  return sorted(found.values())


def _files_of(
    path: str, *, suffixes: tuple[str, ...], skipped_folders: frozenset[str]
) -> list[TextFile]:
  if os.path.isfile(path):
    return [TextFile(name=os.path.basename(path), path=path)]
  if os.path.isdir(path):
    files = _files_under(
        path, suffixes=suffixes, skipped_folders=skipped_folders
    )
    if not files:
      raise FileNotFoundError(
          f'no text file under the folder {path!r}: expected names that end '
          f'in one of {", ".join(suffixes)}, plain or with .gz. Name the files '
          'by a glob, which takes any suffix, or extend suffixes.'
      )
    return files
  if any(character in path for character in _GLOB_CHARACTERS):
    root = _fixed_part(path)
    files = [
        TextFile(name=_relative(match, root=root), path=match)
        for match in glob.glob(path, recursive=True)
        if os.path.isfile(match)
    ]
    if files:
      return files
    raise FileNotFoundError(
        f'the glob {path!r} matches no file: expected at least one. Its fixed '
        f'part {root!r} {"exists" if os.path.isdir(root) else "is absent"}; '
        'correct the pattern (** goes into folders).'
    )
  raise FileNotFoundError(
      f'no such text file or folder: {path!r}. Expected a file, a folder or a '
      f'glob, seen from {os.getcwd()!r}. Correct the path'
      f'{_near(path)}.'
  )


def _near(path: str) -> str:
  """The longest part of the path that exists, as advice."""
  parent = os.path.dirname(os.path.abspath(path))
  while parent and not os.path.isdir(parent):
    parent = os.path.dirname(parent)
  return f' (it exists up to {parent!r})'


def _fixed_part(pattern: str) -> str:
  """The folder above a glob's first wild card."""
  parts = pathlib.PurePath(pattern).parts
  fixed = []
  for part in parts[:-1]:
    if any(character in part for character in _GLOB_CHARACTERS):
      break
    fixed.append(part)
  return os.path.join(*fixed) if fixed else '.'


def _relative(path: str, *, root: str) -> str:
  return pathlib.PurePath(os.path.relpath(path, root)).as_posix()


def _files_under(
    root: str, *, suffixes: tuple[str, ...], skipped_folders: frozenset[str]
) -> list[TextFile]:
  files = []
  for folder, names, leaves in os.walk(root):
    names[:] = sorted(
        name
        for name in names
        if name not in skipped_folders and not name.startswith('.')
    )
    for leaf in leaves:
      if leaf.startswith('.'):
        continue
      if leaf.lower().removesuffix('.gz').endswith(suffixes):
        path = os.path.join(folder, leaf)
        files.append(TextFile(name=_relative(path, root=root), path=path))
  return files


def is_held_out(name: str, *, fraction: float) -> bool:
  """Says whether the file of this name is for validation: hash < fraction.

  The answer depends on nothing but the name, so a file keeps its side while
  others come and go.
  """
  return _unit_hash(name) < fraction


def _unit_hash(name: str) -> float:
  digest = hashlib.sha256(name.encode('utf-8', 'surrogateescape')).digest()
  return int.from_bytes(digest[:8], 'big') / 2.0**64


def split_files(
    files: Sequence[TextFile], *, held_out_fraction: float
) -> dict[str, list[TextFile]]:
  """Splits files into 'train' and 'validation', each file whole.

  With a fraction above 0 neither side is empty: the file whose hash comes
  nearest is moved.

  Args:
    files: at least one, or two where any is to be held out.
    held_out_fraction: expected fraction of the files in 'validation', 0 for
      none (there is no such split then).

  Returns:
    Files by split, in order.

  Raises:
    ValueError: for a fraction outside [0, 1), or for one file to be split.
  """
  if not 0.0 <= held_out_fraction < 1.0:
    raise ValueError(
        f'held_out_fraction is {held_out_fraction!r}: expected a fraction of '
        'the files, from 0 (none) to below 1. Try 0.05.'
    )
  if held_out_fraction == 0.0:
    return {'train': list(files)}
  if len(files) < 2:
    raise ValueError(
        f'one file only ({files[0].path}), and held_out_fraction is '
        f'{held_out_fraction}: expected at least two files, as they are held '
        'out whole. Split the file, or set held_out_fraction = 0.'
    )
  by_hash = sorted(files, key=lambda file: (_unit_hash(file.name), file))
  count = sum(
      is_held_out(file.name, fraction=held_out_fraction) for file in files
  )
  count = min(max(count, 1), len(files) - 1)
  held_out = set(by_hash[:count])
  return {
      'train': [file for file in files if file not in held_out],
      'validation': [file for file in files if file in held_out],
  }
