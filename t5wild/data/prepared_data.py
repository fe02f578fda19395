# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where TFDS's data sets lie on disk, in TFDS's form or as plain files.

A data set `glue/cola:1.0.0` lies in DIR/glue/cola/1.0.0. Plain files, such as
those of the Hugging Face hub, may lie there too, or in DIR/glue/cola. Imports
neither seqio nor TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import os
import re

_TFDS_FILE = 'dataset_info.json'
_SUFFIXES = (
    '.jsonl', '.jsonl.gz', '.json', '.json.gz', '.parquet', '.arrow'
)
# Of 'c4-train.00000-of-01024.json.gz' and 'validation_matched-00000.parquet'.
_NAME = r'(?:train|validation|test)(?:_[a-z0-9]+)*'
_SPLIT = re.compile(rf'(?:^|-)({_NAME})(?=[-.])')
_SPLIT_FOLDER = re.compile(_NAME)
_VERSION = re.compile(r'\d+\.\d+\.\d+')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
  """A data set that is there.

  Attributes:
    folder: where its files are.
    version: of TFDS's; None for plain files without one.
    files: plain files of each split; None where the files are TFDS's.
  """

  folder: str
  version: str | None
  files: Mapping[str, tuple[str, ...]] | None


def data_dirs(given: str | None) -> list[str]:
  """Folders of TFDS data sets: the one given, else TFDS's own default."""
  if given:
    return [given]
  return [
      os.path.expanduser(
          os.environ.get('TFDS_DATA_DIR') or '~/tensorflow_datasets'
      )
  ]


def places(tfds_name: str, folders: Sequence[str]) -> list[str]:
  """Folders in which a data set is looked for, in that order."""
  name, _, version = tfds_name.partition(':')
  return [
      os.path.join(folder, name, *part)
      for folder in folders
      for part in (((version,), ()) if version else ((),))
  ]


def find(tfds_name: str, folders: Sequence[str]) -> Prepared | None:
  """Finds a data set: this version, then plain files, then another version.

  Args:
    tfds_name: such as 'glue/cola:1.0.0'.
    folders: see `data_dirs`; those with a scheme are passed over.
  """
  name, _, version = tfds_name.partition(':')
  for folder in folders:
    whole = os.path.join(folder, name)
    if '://' in folder or not os.path.isdir(whole):
      continue
    versions = [each for each in os.listdir(whole) if _VERSION.fullmatch(each)]
    versions.sort(key=lambda v: [int(part) for part in v.split('.')])
    # The one that is asked for, none (plain files), then the newest.
    tried = [version] if version in versions else []
    for each in (*tried, None, *reversed(versions)):
      found = _prepared(whole, each)
      if found is not None:
        return found
  return None


def _prepared(whole: str, version: str | None) -> Prepared | None:
  folder = os.path.join(whole, version) if version else whole
  if version and os.path.isfile(os.path.join(folder, _TFDS_FILE)):
    return Prepared(folder=folder, version=version, files=None)
  files = plain_files(folder)
  if not files:
    return None
  return Prepared(folder=folder, version=version, files=files)


def plain_files(folder: str) -> dict[str, tuple[str, ...]]:
  """Files of each split, by their names or by those of their folders."""
  found: dict[str, list[str]] = {}
  for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
    if entry.is_dir() and _SPLIT_FOLDER.fullmatch(entry.name):
      names = sorted(os.listdir(entry.path))
      paths = [os.path.join(entry.path, name) for name in names]
      found.setdefault(entry.name, []).extend(filter(_is_data, paths))
    elif _is_data(entry.name) and (split := split_of(entry.name)):
      found.setdefault(split, []).append(entry.path)
  return {split: tuple(paths) for split, paths in found.items() if paths}


def split_of(name: str) -> str | None:
  """The split that a file's name tells, such as 'c4-train.00000-of-01024'."""
  match = _SPLIT.search(name)
  return match[1] if match else None


def _is_data(path: str) -> bool:
  # Hugging Face's `save_to_disk` puts JSON beside its data that is none.
  is_data = path.endswith(_SUFFIXES)
  return is_data and os.path.basename(path) not in (
      'dataset_info.json', 'dataset_dict.json', 'state.json'
  )
