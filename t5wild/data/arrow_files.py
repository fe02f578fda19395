# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Opens Parquet and Arrow files; what cannot be read is told by its file.

Arrow files are streams, as Hugging Face's `datasets` writes them, or files with
a footer (Feather). pyarrow is imported when a function here is called.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import json
import os
from typing import Any

_FILE_MAGIC = b'ARROW1'


class UnreadableFileError(ValueError):
  """A file that is not what its name says; names it and the mend."""


@contextlib.contextmanager
def _failures_told(path: str, kind: str) -> Iterator[None]:
  import pyarrow

  try:
    yield
  except (pyarrow.ArrowException, OSError, EOFError) as error:
    if isinstance(error, FileNotFoundError):
      raise
    size = os.path.getsize(path)
    raise UnreadableFileError(
        f'{path} ({size} bytes) cannot be read as {kind} '
        f'({str(error).splitlines()[0][:200]}): expected a whole file; it is '
        'truncated, damaged or another kind of file. Copy it again, or leave '
        'it out.'
    ) from None


def open_parquet(path: str) -> Any:
  """Opens a Parquet file.

  Raises:
    UnreadableFileError: it is none, or truncated.
    ImportError: pyarrow is absent.
  """
  try:
    from pyarrow import parquet
  except ImportError:
    raise ImportError(
        f'{path} is a Parquet file, and pyarrow is not installed. '
        'Expected it to read the file; `pip install pyarrow` mends that.'
    ) from None
  with _failures_told(path, 'Parquet'):
    return parquet.ParquetFile(path)


def read_row_group(
    path: str, group: int, *, columns: Sequence[str] | None, batch_size: int
) -> Iterator[Any]:
  """Yields the record batches of a row group of a Parquet file."""
  with open_parquet(path) as opened, _failures_told(path, 'Parquet'):
    yield from opened.iter_batches(
        batch_size=batch_size, row_groups=[group], columns=columns
    )


def open_arrow(path: str) -> Any:
  """Opens an Arrow stream or file, mapped into memory.

  Raises:
    UnreadableFileError: it is none.
  """
  import pyarrow

  with _failures_told(path, 'Arrow'):
    source = pyarrow.memory_map(path)
    is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    source.seek(0)
    opener = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
    return opener(source)


def read_arrow_batches(path: str) -> Iterator[Any]:
  """Yields the record batches of an Arrow stream or file; copies nothing."""
  opened = open_arrow(path)
  with _failures_told(path, 'Arrow'):
    if hasattr(opened, 'num_record_batches'):
      for number in range(opened.num_record_batches):
        yield opened.get_batch(number)
    else:
      yield from opened


def label_names(schema: Any) -> Mapping[str, Sequence[str]]:
  """Names of the classes of columns of labels, as `datasets` writes them."""
  text = (schema.metadata or {}).get(b'huggingface')
  if text is None:
    return {}
  try:
    features = json.loads(text)['info']['features']
  except (ValueError, KeyError, TypeError):
    return {}  # another library's
  return {
      name: feature['names']
      for name, feature in features.items()
      if isinstance(feature, dict) and feature.get('_type') == 'ClassLabel'
  }
