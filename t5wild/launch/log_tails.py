# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a log file as it grows, and keeps its last lines.

A file and not a pipe: it is still there when the supervisor is not, and a
process that prints never waits for the one who reads.
"""

import collections
import os
from typing import BinaryIO

_NUM_LINES = 400
_MAX_BYTES = 1 << 20
_MAX_LINE = 1 << 16
_MAX_BEHIND = 8 * _MAX_BYTES  # at a pump; of more only the end is read


class LogTail:
  """One log; call `pump` now and then."""

  def __init__(self, path: str, *, shown: BinaryIO | None, prefix: str = ''):
    """Opens the file, which is there.

    Args:
      path: of the log.
      shown: where to show it; None: nowhere.
      prefix: before each line shown.
    """
    self._file = open(path, 'rb')  # noqa: SIM115 -- closed by close()
    self._shown = shown
    self._prefix = prefix.encode()
    self._rest = b''
    self._lines: collections.deque[str] = collections.deque(maxlen=_NUM_LINES)

  def pump(self) -> None:
    """Takes what is new, up to the end that the file has now.

    A process that prints faster than this reads must not keep the supervisor:
    what is too far behind is passed over. A file that was cut (logrotate) is
    read from its beginning.
    """
    end = os.fstat(self._file.fileno()).st_size
    start = self._file.tell()
    if end < start:
      self._jump(0, f'the log was cut from {start:,} to {end:,} bytes')
    elif end - start > _MAX_BEHIND:
      self._jump(
          end - _MAX_BYTES,
          f'{end - _MAX_BYTES - start:,} bytes of the log are not shown',
      )
    while self._file.tell() < end and (
        data := self._file.read(min(_MAX_BYTES, end - self._file.tell()))
    ):
      # A progress line is written over itself: each part is a line here.
      *whole, self._rest = (self._rest + data).replace(b'\r', b'\n').split(
          b'\n'
      )
      if len(self._rest) > _MAX_LINE:  # no line of text: it ends here
        whole, self._rest = [*whole, self._rest], b''
      self._take(whole)

  def _jump(self, place: int, why: str) -> None:
    self._file.seek(place)
    before, self._rest = self._rest, b''
    self._take([*filter(None, [before]), f'[{why}]'.encode()])

  def _take(self, lines: list[bytes]) -> None:
    self._lines.extend(
        line[:_MAX_LINE].decode(errors='replace') for line in lines
    )
    self._show(lines)

  def lines(self) -> list[str]:
    """The last lines, oldest first; the half one that ends it, too."""
    rest = [self._rest.decode(errors='replace')] if self._rest else []
    return [*self._lines, *rest]

  def close(self) -> None:
    """Shows the rest and closes the file."""
    self.pump()
    if self._rest:
      self._show([self._rest])
    self._file.close()

  def _show(self, lines: list[bytes]) -> None:
    if self._shown is None or not lines:
      return
    text = b''.join(self._prefix + line + b'\n' for line in lines)
    try:
      self._shown.write(text)
      self._shown.flush()
    except (BrokenPipeError, ValueError):
      self._shown = None  # Whoever read it has gone; the file has it all.


def open_log(path: str) -> BinaryIO:
  """Opens a new log for a process to write to."""
  os.makedirs(os.path.dirname(path), exist_ok=True)
  return open(path, 'ab')
