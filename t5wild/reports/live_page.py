# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a run, made anew as the run goes on, for this machine only."""

from __future__ import annotations

from collections.abc import Callable
import errno
from http import server
import logging
import threading
import time

_ADDRESS = '127.0.0.1'
_NAMES = ('127.0.0.1', 'localhost')
_LEAST_SECONDS = 10.0  # between two pages


class PortTakenError(OSError):
  """Nothing can be served there; the message has three parts."""


class LivePage:
  """Serves one page on localhost, from threads of its own."""

  def __init__(self, make_page: Callable[[], str], *, port: int):
    """Starts to serve.

    Args:
      make_page: makes the page as it is now; what it raises is answered with
        its message.
      port: 0 = any that is free.

    Raises:
      PortTakenError: it is in use, or may not be used.
    """
    self._make_page = make_page
    self._lock = threading.Lock()
    self._page: tuple[int, bytes] = (503, b'')
    self._made: float | None = None
    try:
      self._server = server.ThreadingHTTPServer(
          (_ADDRESS, port), self._handler()
      )
    except (OSError, OverflowError) as error:
      raise PortTakenError(_told(port, error)) from error
    self._server.daemon_threads = True
    self._thread = threading.Thread(
        target=self._server.serve_forever, name='live_page', daemon=True
    )
    self._thread.start()

  @property
  def url(self) -> str:
    """Where the page is."""
    return f'http://{_ADDRESS}:{self._server.server_address[1]}/'

  def close(self) -> None:
    """Ends it."""
    self._server.shutdown()
    self._server.server_close()
    self._thread.join()

  def _current(self) -> tuple[int, bytes]:
    """Status and page; made anew after a while, by one thread at a time."""
    with self._lock:
      now = time.monotonic()
      if self._made is None or now - self._made > _LEAST_SECONDS:
        try:
          self._page = 200, self._make_page().encode()
        except (ValueError, OSError) as error:
          self._page = 503, f'{error}\n'.encode()
        self._made = time.monotonic()
      return self._page

  def _handler(self) -> type[server.BaseHTTPRequestHandler]:
    current = self._current

    class Handler(server.BaseHTTPRequestHandler):

      def do_GET(self) -> None:
        """Answers with the page, and to nobody who comes by another name."""
        host = self.headers.get('Host', '').rsplit(':', 1)[0]
        if host not in _NAMES:  # a web site that points its name here
          self._answer(403, 'text/plain', b'only localhost\n')
        elif self.path.split('?')[0] != '/':
          self._answer(404, 'text/plain', b'there is only /\n')
        else:
          status, page = current()
          kind = 'text/html' if status == 200 else 'text/plain'
          self._answer(status, f'{kind}; charset=utf-8', page)

      def log_message(self, form: str, *values) -> None:
        """Keeps the terminal for the view."""
        logging.debug(form, *values)

      def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Cache-Control', 'no-store')
        self.send_header('X-Content-Type-Options', 'nosniff')
        self.end_headers()
        self.wfile.write(body)

    return Handler


def _told(port: int, error: OSError | OverflowError) -> str:
  why = str(error)
  if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
    why = 'another program uses it'
  return (
      f'The page cannot be served on port {port}: {why}\n'
      '  expected: a port from 1024 to 65535 that is free.\n'
      '  do: --serve=0 takes one that is free, and says which.'
  )
