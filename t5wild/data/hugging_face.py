# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the files of a Hugging Face data set on this machine, by split.

What `save_to_disk` wrote, what `load_dataset` left in its cache, a clone or a
snapshot of a repository of the hub, a folder of files. `datasets` is not
needed: its files are Arrow, and JSON says where they are.
"""

from collections.abc import Mapping
import json
import os
import re
from typing import Any

from t5wild.data import prepared_data
from t5wild.data import tables

_DICT, _STATE, _INFO = 'dataset_dict.json', 'state.json', 'dataset_info.json'
_PREPARED = re.compile(r'-([a-z0-9_.]+?)(-\d{5}-of-\d{5})?\.arrow$', re.I)
Files = Mapping[str, tuple[tables.TableFile, ...]]


def cache_folders() -> dict[str, str]:
  """The folders in which `datasets` and the hub's client keep files."""
  home = os.path.expanduser(
      os.environ.get('HF_HOME') or '~/.cache/huggingface'
  )
  return {
      'datasets': os.environ.get('HF_DATASETS_CACHE')
      or os.path.join(home, 'datasets'),
      'hub': os.environ.get('HF_HUB_CACHE') or os.path.join(home, 'hub'),
  }


def find(dataset: str, *, config: str | None = None) -> Files:
  """Finds the files of each split.

  Args:
    dataset: a folder, or the name of a data set that is in a cache of this
      machine, such as 'wikitext' or 'org/name'.
    config: which of the data set, where it has several.

  Raises:
    FileNotFoundError: it is not there; with the folders looked at.
    ValueError: there are several, or files of a form that is not known.
  """
  path = os.path.expanduser(dataset)
  if os.path.isdir(path):
    return _in_folder(path, config=config)
  looked_in = []
  is_name = not path.startswith((os.sep, '.'))
  for kind, root in cache_folders().items() if is_name else ():
    name = dataset.replace('/', '___' if kind == 'datasets' else '--')
    folder = os.path.join(
        root, name if kind == 'datasets' else f'datasets--{name}'
    )
    looked_in.append(folder)
    if os.path.isdir(folder):
      look = _prepared if kind == 'datasets' else _snapshot
      return look(folder, config=config)
  places = [f'a folder, seen from {os.getcwd()!r}', *looked_in]
  near = ''.join(f'\n  {place}' for place in places)
  raise FileNotFoundError(
      f'there is no data set {dataset!r}: expected one of{near}\n'
      'Correct the path or the name; or, '
      'where there is a network, run datasets.load_dataset(...)'
      '.save_to_disk(FOLDER) and give that folder.'
  )


def _in_folder(folder: str, *, config: str | None) -> Files:
  """The files of a folder, whatever wrote it."""
  if os.path.exists(os.path.join(folder, _DICT)):
    return _saved_dict(folder)
  if os.path.exists(os.path.join(folder, _STATE)):
    state = _read_json(os.path.join(folder, _STATE))
    return {str(state.get('_split') or 'train'): _saved(folder, state)}
  if os.path.isdir(os.path.join(folder, 'snapshots')):
    return _snapshot(folder, config=config)
  found = _prepared_files(folder) or _plain(folder, config=config)
  if found:
    return found
  inner = [
      name
      for name in sorted(os.listdir(folder))
      if os.path.isdir(os.path.join(folder, name)) and name[0] != '.'
  ]
  if config is None and inner:
    raise ValueError(
        f'{folder} has no data itself, and the folders {inner}: expected '
        f'{_DICT} or {_STATE} (of save_to_disk), or files such as '
        "train.parquet. Give one of those folders, or set hugging_face's "
        'config to its name.'
    )
  raise FileNotFoundError(
      f'there is no data in {folder!r} (config {config!r}): expected {_DICT} '
      f'or {_STATE} (of save_to_disk), or .arrow, .parquet or .jsonl files. '
      'Correct the path.'
  )


def _saved_dict(folder: str) -> Files:
  path = os.path.join(folder, _DICT)
  splits = _read_json(path).get('splits')
  if not isinstance(splits, list):
    raise ValueError(_another_version(path, 'a list "splits"'))
  found = {}
  for split in splits:
    inner = os.path.join(folder, split)
    state = os.path.join(inner, _STATE)
    if not os.path.exists(state):
      raise FileNotFoundError(
          f'{path} names the splits {splits}, and {state} is not there: '
          'expected it for each. Copy the folder again, or save_to_disk anew.'
      )
    found[split] = _saved(inner, _read_json(state))
  return found


def _saved(
    folder: str, state: Mapping[str, Any]
) -> tuple[tables.TableFile, ...]:
  """The files of a split that `save_to_disk` wrote."""
  path = os.path.join(folder, _STATE)
  listed = state.get('_data_files')
  if not isinstance(listed, list) or not all(
      isinstance(each, dict) and 'filename' in each for each in listed
  ):
    raise ValueError(_another_version(path, 'a list "_data_files"'))
  if state.get('_indices_data_files') or state.get('_indices_files'):
    raise ValueError(
        _another_version(path, 'no table of indices beside the data')
    )
  names = [os.path.join(folder, each['filename']) for each in listed]
  missing = [name for name in names if not os.path.exists(name)]
  if missing:
    raise FileNotFoundError(
        f'{path} lists {len(names)} files, and {missing[0]} is not there: '
        'expected all. Copy the folder again, or save_to_disk anew.'
    )
  return _arrow_files(names, root=os.path.dirname(folder))


def _another_version(path: str, expected: str) -> str:
  return (
      f'{path} is of another version of `datasets`: expected {expected}, as '
      'save_to_disk of today writes. Load it with the version that wrote it '
      'and save it anew (load_from_disk(...).flatten_indices()'
      '.save_to_disk(FOLDER), or to_parquet).'
  )


def _read_json(path: str) -> Mapping[str, Any]:
  try:
    with open(path, encoding='utf-8') as file:
      found = json.load(file)
  except ValueError as error:
    raise ValueError(
        f'{path} is damaged ({error}): expected the JSON that save_to_disk '
        'wrote. Copy the folder again.'
    ) from None
  if not isinstance(found, dict):
    raise ValueError(_another_version(path, 'a JSON object'))
  return found


def _arrow_files(
    paths: list[str], *, root: str
) -> tuple[tables.TableFile, ...]:
  return tuple(
      tables.TableFile(
          name=os.path.relpath(path, root).replace(os.sep, '/'),
          path=path,
          kind=tables.kind_of(path) or 'arrow',
      )
      for path in paths
  )


def _prepared(folder: str, *, config: str | None) -> Files:
  """Of NAME/CONFIG/VERSION/HASH in the cache of `load_dataset`."""
  chosen = folder
  for wanted, what in ((config, 'config'), (None, 'version'), (None, 'hash')):
    names = sorted(
        name
        for name in os.listdir(chosen)
        if os.path.isdir(os.path.join(chosen, name))
        and not name.endswith('.incomplete')
    )
    if what == 'hash' and not names:
      break  # as old versions of `datasets` had it
    if wanted is None and len(names) == 1:
      wanted = names[0]
    if wanted not in names:
      raise ValueError(
          f'{chosen} has the {what}s {names}, and {wanted!r} is asked for: '
          f'expected one of them. Set hugging_face\'s config, or its dataset '
          'to the path of one of these folders.'
      )
    chosen = os.path.join(chosen, wanted)
  found = _prepared_files(chosen)
  if not found:
    raise FileNotFoundError(
        f'{chosen} has no .arrow file: expected what datasets.load_dataset '
        'leaves there. Load the data set again where there is a network.'
    )
  return found


def _prepared_files(folder: str) -> Files:
  """Of NAME-SPLIT[-00000-of-00002].arrow, as `load_dataset` prepares them."""
  if not os.path.exists(os.path.join(folder, _INFO)):
    return {}
  found: dict[str, list[str]] = {}
  for name in sorted(os.listdir(folder)):
    match = _PREPARED.search(name)
    if match and not name.startswith(('cache-', 'tmp')):  # of map and filter
      found.setdefault(match[1], []).append(os.path.join(folder, name))
  return {
      split: _arrow_files(paths, root=folder) for split, paths in found.items()
  }


def _snapshot(folder: str, *, config: str | None) -> Files:
  """Of datasets--ORG--NAME in the cache of the hub's client."""
  snapshots = os.path.join(folder, 'snapshots')
  main = os.path.join(folder, 'refs', 'main')
  names = sorted(os.listdir(snapshots)) if os.path.isdir(snapshots) else []
  if os.path.exists(main):
    with open(main, encoding='utf-8') as file:
      wanted = file.read().strip()
  else:
    wanted = names[0] if len(names) == 1 else None
  if wanted not in names:
    raise ValueError(
        f'{snapshots} has {names}, and {wanted!r} is the one of refs/main: '
        'expected it there. Give the path of one of these folders.'
    )
  return _in_folder(os.path.join(snapshots, wanted), config=config)


def _plain(folder: str, *, config: str | None) -> Files:
  """Of files named by their splits, here, in 'data' or in a config's folder."""
  parts = (config, f'data/{config}') if config else ('', 'data')
  for part in parts:
    where = os.path.join(folder, part)
    if not os.path.isdir(where):
      continue
    found = prepared_data.plain_files(where)
    if not found:
      found = _by_names(where)
    if found:
      return {
          split: _arrow_files(list(paths), root=folder)
          for split, paths in found.items()
      }
  return {}


def _by_names(folder: str) -> dict[str, list[str]]:
  """Tables of other kinds and names; one that tells no split is of 'train'."""
  found: dict[str, list[str]] = {}
  for name in sorted(filter(_is_data, os.listdir(folder))):
    split = prepared_data.split_of(name) or tables.TRAIN
    found.setdefault(split, []).append(os.path.join(folder, name))
  return found


def _is_data(name: str) -> bool:
  return (
      tables.kind_of(name) is not None
      and name not in (_DICT, _STATE, _INFO, 'dataset_infos.json')
      and not name.startswith(('.', 'cache-'))
  )
