# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A way to a server on this machine that can be shut and opened again."""

import contextlib
import socket
import threading

_CHUNK_BYTES = 1 << 16


class Gate:
  """Passes on what comes to its own port, while it is open."""

  def __init__(self, *, port: int, to_port: int):
    """Starts shut.

    Args:
      port: Where clients come to.
      to_port: Where the server listens.
    """
    self._port = port
    self._to_port = to_port
    self._sockets: list[socket.socket] = []

  def open(self) -> None:
    """Takes connections."""
    listener = socket.create_server(('127.0.0.1', self._port))
    self._sockets = [listener]
    threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

  def shut(self) -> None:
    """Ends every connection; who comes is refused."""
    for each in self._sockets:
      with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
      each.close()

  def _accept(self, listener: socket.socket) -> None:
    with contextlib.suppress(OSError):  # shut
      while True:
        inside, _ = listener.accept()
        self._sockets.append(inside)
        try:
          outside = socket.create_connection(('127.0.0.1', self._to_port))
        except OSError:  # no server there yet
          inside.close()
          continue
        self._sockets.append(outside)
        for ends in ((inside, outside), (outside, inside)):
          threading.Thread(target=_pump, args=ends, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
  with contextlib.suppress(OSError):  # shut, or gone
    while data := source.recv(_CHUNK_BYTES):
      sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
