# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Brings what a run appends to into its bucket, where nothing can be appended.

Records, events and traces are written on the local disk, as for any run. What
has changed is sent whole, now and then and at the end.
"""

from collections.abc import Sequence
import pathlib
import shutil
import tempfile
import time

from etils import epath

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import records as records_lib

SEND_PERIOD_SECONDS = 60.0


class BucketMirror:
  """A sink that sends what the sinks before it wrote to `run_dir`."""

  def __init__(self, bucket: run_dir_lib.RunDir):
    """Fetches the records of the run so far, if there are any.

    Args:
      bucket: The run's own directory.

    Raises:
      OSError: The bucket cannot be read.
    """
    self._bucket = epath.Path(bucket.path)
    self._folder = pathlib.Path(tempfile.mkdtemp(prefix='t5wild_run_'))
    self._sent: dict[str, tuple[int, int]] = {}
    self._last = time.monotonic()
    self.run_dir = run_dir_lib.RunDir(str(self._folder))
    self._fetch(pathlib.Path(self.run_dir.metrics_jsonl).name)

  def write(self, records: Sequence[records_lib.Record]) -> None:
    """Sends what has changed, where the last time is long ago."""
    del records
    if time.monotonic() - self._last > SEND_PERIOD_SECONDS:
      self.flush()

  def write_text(self, step: int, name: str, text: str) -> None:
    """Does nothing: it is sent with the next records."""

  def flush(self) -> None:
    """Sends what has changed.

    Raises:
      OSError: The bucket does not take it; it is sent again the next time.
    """
    self._last = time.monotonic()
    for path in sorted(self._folder.rglob('*')):
      if path.is_file():
        self._send(path)

  def close(self) -> None:
    """Sends what has changed, and removes the local files."""
    if self._folder.exists():
      self.flush()
      shutil.rmtree(self._folder)

  def _send(self, path: pathlib.Path) -> None:
    name = path.relative_to(self._folder).as_posix()
    data = path.read_bytes()
    version = (path.stat().st_mtime_ns, len(data))
    if self._sent.get(name) == version:
      return
    there = self._bucket / name
    try:
      there.parent.mkdir(parents=True, exist_ok=True)
      there.write_bytes(data)
    except Exception as error:  # each driver has its own kinds
      raise OSError(
          f'{there} cannot be written ({error}); it is kept as {path}'
      ) from error
    self._sent[name] = version

  def _fetch(self, name: str) -> None:
    there = self._bucket / name
    try:
      if there.exists():
        (self._folder / name).write_bytes(there.read_bytes())
    except Exception as error:  # each driver has its own kinds
      raise OSError(
          f'{there} cannot be read ({error}), expected a bucket that this '
          'machine reaches: mend its access, or set MODEL_DIR to a folder'
      ) from error
