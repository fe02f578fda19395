# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium through its debugging pipe; needs no package."""

from __future__ import annotations

import base64
from collections.abc import Iterator
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any

_NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')
_PATIENCE_SECONDS = 60
_COMPLAINTS = ('Runtime.exceptionThrown', 'Log.entryAdded')


def program() -> str | None:
  """Path of a Chromium on this machine; None where there is none."""
  return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
  """One page. `complaints` holds what its console was told."""

  def __init__(self, read: int, write: int):
    self._read, self._write = read, write
    self._buffer = b''
    self._last_id = 0
    self._session: str | None = None
    self.complaints: list[str] = []
    self.requests: list[str] = []
    target = self.call('Target.createTarget', url='about:blank')['targetId']
    self._session = self.call(
        'Target.attachToTarget', targetId=target, flatten=True
    )['sessionId']
    for domain in ('Page', 'Runtime', 'Log', 'Network'):
      self.call(f'{domain}.enable')

  def call(self, method: str, **params: Any) -> dict[str, Any]:
    """Calls a method of the Chrome DevTools Protocol."""
    self._last_id += 1
    message = {'id': self._last_id, 'method': method, 'params': params}
    if self._session:
      message['sessionId'] = self._session
    os.write(self._write, json.dumps(message).encode() + b'\0')
    while True:
      answer = self._next()
      if answer.get('id') == self._last_id:
        if 'error' in answer:
          raise RuntimeError(f'{method}: {answer["error"]}')
        return answer['result']
      self._note(answer)

  def value_of(self, expression: str) -> Any:
    """The value of some JavaScript."""
    answer = self.call(
        'Runtime.evaluate',
        expression=expression,
        awaitPromise=True,
        returnByValue=True,
    )
    if 'exceptionDetails' in answer:
      raise RuntimeError(f'{expression}: {answer["exceptionDetails"]}')
    return answer['result'].get('value')

  def open(
      self,
      path: str,
      *,
      width: int,
      height: int,
      is_dark: bool,
      is_phone: bool,
      drawn: str = "document.documentElement?.dataset.drawn === 'yes'",
  ) -> None:
    """Opens a file, and waits until it is `drawn`, as a report's script says.
    """
    self.call(
        'Emulation.setDeviceMetricsOverride',
        width=width,
        height=height,
        deviceScaleFactor=2 if is_phone else 1,
        mobile=is_phone,
    )
    self.call('Emulation.setTouchEmulationEnabled', enabled=is_phone)
    scheme = 'dark' if is_dark else 'light'
    self.call(
        'Emulation.setEmulatedMedia',
        features=[{'name': 'prefers-color-scheme', 'value': scheme}],
    )
    self.call('Page.navigate', url=f'file://{os.path.abspath(path)}')
    # While the page comes there is no element yet.
    self.wait_for(drawn)

  def wait_for(self, expression: str) -> None:
    """Waits until some JavaScript is true."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not self.value_of(expression):
      if time.monotonic() > until:
        raise TimeoutError(f'{expression}; the console: {self.complaints}')
      time.sleep(0.1)

  def screenshot(self) -> bytes:
    """The visible part, as PNG."""
    return base64.b64decode(self.call('Page.captureScreenshot')['data'])

  def _next(self) -> dict[str, Any]:
    while b'\0' not in self._buffer:
      if not select.select([self._read], [], [], _PATIENCE_SECONDS)[0]:
        raise TimeoutError('Chromium does not answer')
      piece = os.read(self._read, 1 << 20)
      if not piece:
        raise RuntimeError('Chromium has ended')
      self._buffer += piece
    message, self._buffer = self._buffer.split(b'\0', 1)
    return json.loads(message)

  def _note(self, event: dict[str, Any]) -> None:
    method = event.get('method')
    if method in _COMPLAINTS or (
        method == 'Runtime.consoleAPICalled'
        and event['params']['type'] in ('error', 'warning', 'assert')
    ):
      self.complaints.append(json.dumps(event['params'])[:500])
    if method == 'Network.requestWillBeSent':
      self.requests.append(event['params']['request']['url'])


@contextlib.contextmanager
def started() -> Iterator[Browser]:
  """A Chromium of its own, ended with its folder afterwards."""
  to_it, from_us = os.pipe()
  to_us, from_it = os.pipe()

  def hand_over() -> None:
    # The protocol wants descriptors 3 and 4, and either may be in the way.
    kept = os.dup(to_it), os.dup(from_it)
    moved = [os.dup2(fd, 50 + i) for i, fd in enumerate(kept)]
    os.dup2(moved[0], 3)
    os.dup2(moved[1], 4)

  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    process = subprocess.Popen(
        [
            program(), '--headless=new', '--no-sandbox', '--disable-gpu',
            '--remote-debugging-pipe', f'--user-data-dir={folder}',
            'about:blank',
        ],
        preexec_fn=hand_over, close_fds=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_it)
    os.close(from_it)
    try:
      yield Browser(to_us, from_us)
    finally:
      process.terminate()
      process.wait()
      os.close(to_us)
      os.close(from_us)
