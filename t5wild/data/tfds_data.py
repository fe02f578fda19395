# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Refuses a task whose TFDS data is not to be had, before anything compiles.

TFDS alone tells of it late, or of no splits, or tries for minutes.
"""

from typing import Any

from absl import logging

from t5wild import reachability
from t5wild.data import prepared_data

_BUCKET = 'gs://tfds-data'
_ITS_OWN_BUILDERS = 'tensorflow_datasets.'


def check(tasks: list[Any], *, use_cached: bool) -> None:
  """Sees to it that the data of each task is there, or can be made.

  Raises:
    FileNotFoundError: for data that is neither, with the folders looked at.
  """
  for task in tasks:
    reader = getattr(task.source, 'tfds_dataset', None)
    if reader is None or reader.tfds_splits or not reader.name:
      continue  # no data of TFDS's, or of several data sets
    if use_cached and task.supports_caching and task.cache_dir:
      continue
    _check(task, str(reader.name), reader.data_dir)


def _check(task: Any, name: str, data_dir: str | None) -> None:
  folders = prepared_data.data_dirs(None if data_dir is None else str(data_dir))
  if '://' in folders[0]:
    if not reachability.is_reachable(folders[0]):
      raise FileNotFoundError(_absent(task, name, folders, why=_no_network()))
    return
  found = prepared_data.find(name, folders)
  if found is not None and (found.files is None or _reads_files(task.source)):
    return
  builder = _make_builder(task, name, folders)
  if builder.info.splits:  # prepared in a way that is not looked for here
    return
  can_download = reachability.is_reachable(_BUCKET)
  is_theirs = type(builder).__module__.startswith(_ITS_OWN_BUILDERS)
  if is_theirs and not can_download:
    raise FileNotFoundError(_absent(task, name, folders, why=_no_network()))
  logging.info('TFDS prepares %s in %s.', name, builder.data_dir)
  try:
    builder.download_and_prepare()
  except Exception as error:
    raise FileNotFoundError(
        _absent(task, name, folders, why=f'TFDS cannot prepare it: {error!r}')
    ) from error


def _make_builder(task: Any, name: str, folders: list[str]) -> Any:
  try:
    return task.source.tfds_dataset.builder
  except Exception as error:
    reason = f'TFDS cannot read it: {str(error).splitlines()[0]}'
    raise FileNotFoundError(
        _absent(task, name, folders, why=reason)
    ) from error


def _reads_files(source: Any) -> bool:
  return getattr(source, 'reads_plain_files', False)


def _no_network() -> str:
  return (
      'nothing can be downloaded, for no answer came within '
      f'{reachability.TIMEOUT_SECONDS:.0f} s'
  )


def _absent(task: Any, name: str, folders: list[str], *, why: str) -> str:
  dataset = name.partition(':')[0]
  looked_in = '\n'.join(
      f'  {place}' for place in prepared_data.places(name, folders)
  )
  files = ' or train.jsonl, train.parquet' if _reads_files(task.source) else ''
  return (
      f'the data set {name!r} of the task {task.name!r} is not there. Looked '
      f'in:\n{looked_in}\nand {why}. Expected the files of TFDS{files} there. '
      f'If it lies in DIR/{dataset}, give --tfds_data_dir DIR (or set '
      f'TFDS_DATA_DIR); else prepare it where there is a network: tfds build '
      f'{dataset} --data_dir DIR'
  )
