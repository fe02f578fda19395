# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files, T5X's and MaxText's too, without TensorFlow.

The messages are those of the `tensorboard` package; the parts of it that would
import TensorFlow are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import os
import struct

import numpy as np

from t5wild.reports import record_columns

_MARK = 'tfevents'
_LENGTH = struct.Struct('<Q')
_CHECKSUM_BYTES = 4
_HEAD_BYTES = _LENGTH.size + _CHECKSUM_BYTES
# The first parts of names that say what a number is of: T5X's and ours are
# folders, MaxText's are in its tags.
COLLECTIONS = ('train', 'training_eval', 'inference_eval', 'eval', 'learning',
               'perf', 'evaluation')  # fmt: skip
_MAX_DEPTH = 4  # folders below the run that are looked into


@dataclasses.dataclass(frozen=True, kw_only=True)
class Events:
  """What the event files of a run hold.

  Attributes:
    by_name: scalars; the name is the folder within the run and the tag.
    texts: name -> the texts with their steps, in the order of files.
    num_torn_files: files that end in the middle of an event, as those of a
      killed run or of one that goes on do.
  """

  by_name: dict[str, record_columns.Column]
  texts: dict[str, list[tuple[int, str]]]
  num_torn_files: int = 0


def event_files(folder: str) -> list[str]:
  """Paths of the event files below a folder, in order of their names."""
  found = []
  root = folder.rstrip('/')
  for path, folders, names in os.walk(root):
    depth = path[len(root) :].count(os.sep)
    folders[:] = sorted(
        name
        for name in folders
        if depth < _MAX_DEPTH and not name.startswith('checkpoint')
    )
    found += [
        os.path.join(path, name) for name in sorted(names) if _MARK in name
    ]
  return found


def read_events(folder: str, *, is_only_texts: bool = False) -> Events:
  """Reads all event files below a folder.

  Args:
    folder: of the run.
    is_only_texts: leave the scalars out, where another file has them.

  Raises:
    ModuleNotFoundError: there are such files and no `tensorboard`.
  """
  paths = event_files(folder)
  root = _root(folder, paths)
  rows: dict[str, list[tuple[int, float, float]]] = {}
  texts: dict[str, list[tuple[int, str]]] = {}
  torn = 0
  for path in paths:
    prefix = os.path.relpath(os.path.dirname(path), root)
    prefix = '' if prefix == '.' else prefix.replace(os.sep, '/') + '/'
    reader = _Reader(path)
    values = ((e, v) for e in reader for v in e.summary.value)
    names: dict[str, str] = {}
    for event, value in values:
      tag = value.tag
      name = names.get(tag) or names.setdefault(tag, prefix + tag)
      content = _content(value)
      if isinstance(content, str):
        texts.setdefault(name, []).append((event.step, content))
      elif content is not None and not is_only_texts:
        row = (event.step, event.wall_time, content)
        rows.setdefault(name, []).append(row)
    torn += reader.is_torn
  return Events(
      by_name={name: _column(name, found) for name, found in rows.items()},
      texts=texts,
      num_torn_files=torn,
  )


def _root(folder: str, paths: list[str]) -> str:
  """The folder that names begin below: MaxText's events may lie deeper."""
  if not paths:
    return folder
  shared = os.path.commonpath([os.path.dirname(path) for path in paths])
  below = os.path.relpath(shared, folder).split(os.sep)
  return folder if set(below) & set(COLLECTIONS) else shared


def _column(
    name: str, rows: list[tuple[int, float, float]]
) -> record_columns.Column:
  # Files of one folder follow one another by time, whatever their names.
  rows = sorted(rows, key=lambda row: row[1])
  steps, seconds, values = zip(*rows, strict=True)
  return record_columns.Column(
      name=name,
      unit='',
      steps=np.array(steps, np.int64),
      seconds=np.array(seconds, np.float64),
      values=np.array(values, np.float64),
  )


class _Reader:
  """The whole events of a file; afterwards, whether its end is torn.

  The file is cut into its records here: the reader of `tensorboard` checks each
  byte by a checksum in Python, which takes most of the time. What is torn shows
  by its length, and what is no event by the message.
  """

  def __init__(self, path: str):
    self._path = path
    self.is_torn = False

  def __iter__(self) -> Iterator:
    from google.protobuf import message
    from tensorboard.compat.proto import event_pb2

    parse = event_pb2.Event.FromString
    with open(self._path, 'rb') as file:
      data = memoryview(file.read())
    end, place = len(data), 0
    while place < end:
      # A record: its length, a checksum of that, itself, a checksum of itself.
      start = place + _HEAD_BYTES
      if start > end:
        self.is_torn = True
        return
      stop = start + _LENGTH.unpack_from(data, place)[0]
      place = stop + _CHECKSUM_BYTES
      if place > end:
        self.is_torn = True
        return
      try:
        yield parse(data[start:stop])
      except message.DecodeError:
        self.is_torn = True
        return


def _content(value) -> float | str | None:
  """A summary's number or text; None if it is neither."""
  kind = value.WhichOneof('value')
  if kind == 'simple_value':
    return value.simple_value
  if kind != 'tensor':
    return None
  from tensorboard.util import tensor_util

  plugin = value.metadata.plugin_data.plugin_name
  try:
    array = tensor_util.make_ndarray(value.tensor)
  except (TypeError, ValueError):
    return None
  if array.dtype.kind in 'OSU' and array.size:
    text = array.reshape(-1)[0]
    return text.decode('utf-8', 'replace') if isinstance(text, bytes) else text
  if plugin in ('', 'scalars') and array.size == 1:
    return float(array.reshape(()))
  return None
