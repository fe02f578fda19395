# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes recipes of T5X anew in t5wild's words, into a folder of their own.

What was written is read again before it is kept: each recipe must bind the
same objects, parameters and values as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import errno
import os
import pathlib
import re
import tempfile

from t5wild.compat import clean_gin
from t5wild.compat import finder
from t5wild.compat import gin_code
from t5wild.compat import gin_files
from t5wild.compat import verdicts
from t5wild.gin_config import findings
from t5wild.gin_config import reader

# What another file sets or reads: a model file alone is read by no run.
_OF_OTHERS = ('macro', 'required', 'unread')
_QUOTED = re.compile(r'include\s+(["\'])(?P<path>.+?)\1')


class DifferentRecipeError(ValueError):
  """A recipe that means something else once written anew."""


@dataclasses.dataclass(frozen=True)
class Copy:
  """What was written.

  Attributes:
    written: files in our words, below the folder.
    as_they_were: files copied word for word -> why.
    left_out: files of which nothing was written, since they do not run.
  """

  written: tuple[str, ...]
  as_they_were: Mapping[str, str]
  left_out: tuple[str, ...]


def problem_of(out: str) -> str | None:
  """Why nothing can be written to `out`, or None."""
  path = pathlib.Path(out)
  if not os.path.lexists(path):
    return _unwritable(path)
  try:
    if path.is_dir() and not any(path.iterdir()):
      return _unwritable(path)
  except OSError as error:
    return unwritable(out, error)
  return (
      f'{out!r} is there already, and not empty\n'
      '  expected: a folder to make, or an empty one; nothing is overwritten.\n'
      '  do: name another, or remove it.'
  )


def _unwritable(path: pathlib.Path) -> str | None:
  """Why a folder cannot be made at `path`, as far as is seen before it is."""
  whole = path.resolve()
  above = next(p for p in (whole, *whole.parents) if os.path.lexists(p))
  if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
    return None
  code = errno.EACCES if above.is_dir() else errno.ENOTDIR
  return unwritable(
      str(path), OSError(code, os.strerror(code), str(above))
  )


def unwritable(out: str, error: OSError) -> str:
  """What to tell of a folder that cannot be written."""
  where = f' ({error.filename})' if error.filename else ''
  return (
      f'{out!r} cannot be written: {error.strerror or error}{where}\n'
      '  expected: a place where a folder can be made, with room for the '
      'copies.\n'
      '  do: name another, or mend its permissions; nothing was written.'
  )


def write(
    reports: Sequence[verdicts.FileReport],
    paths: Sequence[str],
    out: str,
    *,
    search_paths: Sequence[str] = (),
) -> Copy:
  """Writes the gin files of `reports` that run, and what they include of these.

  Those that lack nothing but packages that are not installed are among them.

  Args:
    reports: of `migrate.check(paths)`.
    paths: files and folders; below a folder, places stay.
    out: an empty folder, or one to make.
    search_paths: folders of included files.

  Raises:
    DifferentRecipeError: a file would mean something else; nothing is written.
  """
  places = _places(reports, paths)
  recipes = [
      each
      for each in reports
      if each.kind == 'gin' and all(fault.package for fault in each.faults)
  ]
  texts: dict[str, str] = {}
  kept: dict[str, str] = {}
  with finder.silence(), _made_whole(out) as folder:
    for recipe in recipes:
      _add_texts(recipe.path, places, search_paths, texts, kept)
    for place, text in texts.items():
      target = pathlib.Path(folder, place)
      target.parent.mkdir(parents=True, exist_ok=True)
      target.write_text(text, encoding='utf-8')
    for recipe in recipes:
      _compare(recipe.path, places, search_paths, folder)
  return Copy(
      written=tuple(sorted(set(texts) - set(kept))),
      as_they_were=kept,
      left_out=tuple(
          path for path, place in places.items() if place not in texts
      ),
  )


@contextlib.contextmanager
def _made_whole(out: str) -> Iterator[str]:
  """A folder to fill, which becomes `out` in one move if nothing is raised.

  An empty `out` stays the folder that it is, as it may be a working directory
  or a mount: what was made is moved into it.
  """
  target = pathlib.Path(out).resolve()
  is_there = target.is_dir()
  target.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(
      dir=target if is_there else target.parent,
      prefix=f'.{target.name}.partial-',
  ) as beside:
    folder = pathlib.Path(beside, 'recipes')
    folder.mkdir()
    yield str(folder)
    if not is_there:
      os.replace(folder, target)
      return
    for each in list(folder.iterdir()):
      os.replace(each, target / each.name)


def _places(
    reports: Sequence[verdicts.FileReport], paths: Sequence[str]
) -> dict[str, str]:
  """Real path of each gin file -> its place below the new folder."""
  folders = [os.path.abspath(path) for path in paths if os.path.isdir(path)]
  places = {}
  for report in reports:
    path = os.path.abspath(report.path)
    above = [f for f in folders if pathlib.Path(path).is_relative_to(f)]
    start = above[0] if above else os.path.dirname(path)
    if report.kind == 'gin':
      places[gin_code.real(path)] = pathlib.Path(
          os.path.relpath(path, start)
      ).as_posix()
  twice = {p for p in places.values() if list(places.values()).count(p) > 1}
  if twice:
    raise DifferentRecipeError(
        f'Several files would be written to {sorted(twice)}\n'
        '  expected: files of different names, or one folder of all.\n'
        '  do: name the folder, or write them one by one.'
    )
  return places


def _add_texts(
    path: str,
    places: Mapping[str, str],
    search_paths: Sequence[str],
    texts: dict[str, str],
    kept: dict[str, str],
) -> None:
  """Adds the new texts of a recipe and of what it includes of `places`."""
  file, report = gin_code.read(path, search_paths)
  for part in file.walk():
    place = places.get(gin_code.real(part.path))
    if place is None or place in texts:
      continue
    try:
      texts[place] = clean_gin.text_of(
          part, report.names_of.get(part.path, {}), _includes(part, places)
      )
    except clean_gin.NoCleanFormError as error:
      kept[place] = str(error)
      texts[place] = part.text


def _includes(
    file: reader.GinFile, places: Mapping[str, str]
) -> dict[str, str]:
  """Path of an include as written -> the path to write, where it is another."""
  found = {}
  for statement in file.statements:
    if not isinstance(statement, reader.Include):
      continue
    match = _QUOTED.search(statement.place.text)
    if match is None:
      continue
    written, path = match['path'], statement.file.path
    new = places.get(gin_code.real(path))
    if path == written and not os.path.exists(path):  # T5X's, served by us
      new = gin_files.path_of_ours(path)
    if new is not None:
      found[written] = new
  return found


def _is_of_file(finding: findings.Finding) -> bool:
  """Whether it is wrong whatever files are given with this one."""
  return not finding.is_hint and finding.kind not in _OF_OTHERS


def _compare(
    path: str,
    places: Mapping[str, str],
    search_paths: Sequence[str],
    folder: str,
) -> None:
  """Reads a recipe in both forms; raises where they are not the same."""
  _, before = gin_code.read(path, search_paths)
  originals = [
      *map(os.path.abspath, search_paths),
      *map(str, pathlib.Path(path).resolve().parents),
  ]
  place = places[gin_code.real(path)]  # before the working directory changes
  with contextlib.chdir(folder):
    _, after = gin_code.read(place, [folder, *originals])
  old, new = map(clean_gin.bindings_of, (before, after))
  different = [key for key in {**old, **new} if old.get(key) != new.get(key)]
  faults = [each for each in after.findings if _is_of_file(each)]
  if different or len(faults) > sum(map(_is_of_file, before.findings)):
    names = sorted({str(key[-1]) for key in different})
    raise DifferentRecipeError(
        f'{path!r} would mean something else when written anew: it differs in '
        f'{names}\n  {"; ".join(map(str, faults[:2]))}\n'
        '  expected: the same bindings.\n'
        '  do: run it as it is, and report this, with the file.'
    )
