# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tells a person who is away: by webhook, mail command or file, once each.

Addresses and tokens come from the environment or from a file and are written
nowhere: no message, record, log or error of ours holds one.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import json
import logging
import os
import queue
import re
import shlex
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

WEBHOOK_VARIABLE = 'T5WILD_WEBHOOK'
WEBHOOK_FILE_VARIABLE = 'T5WILD_WEBHOOK_FILE'
SECRET_VARIABLES = (WEBHOOK_VARIABLE, WEBHOOK_FILE_VARIABLE)
_SEND_SECONDS = 20.0
_CLOSE_SECONDS = 30.0
ALIVE = 'alive'  # never held back: whoever asked for it set how often
_STOP = object()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Targets:
  """Where alerts go; all of them that are set.

  Attributes:
    webhook: an address that takes Slack's JSON. A secret: not in `repr`.
    mail_command: a command line that reads the text on its standard input,
      e.g. `mail -s t5wild me@example.org`.
    file: a path; each alert is one JSON object a line.
  """

  webhook: str | None = dataclasses.field(default=None, repr=False)
  mail_command: str | None = None
  file: str | None = None

  def __post_init__(self):
    """Refuses what cannot be sent to, without showing a secret."""
    if self.webhook is not None:
      scheme = urllib.parse.urlsplit(self.webhook).scheme
      if scheme not in ('https', 'http'):
        raise ValueError(
            f'the webhook has the scheme {scheme!r} (its address is a secret '
            f'and not shown), expected https://...: set {WEBHOOK_VARIABLE}, or '
            f'{WEBHOOK_FILE_VARIABLE} to a file that holds it'
        )
    if self.mail_command is not None and not shlex.split(self.mail_command):
      raise ValueError(
          f'--mail_command is {self.mail_command!r}, expected a command that '
          "reads standard input: --mail_command='mail -s t5wild me@host'"
      )


def webhook_from(environment: Mapping[str, str]) -> str | None:
  """The webhook that the environment or its file names; None without one.

  Raises:
    ValueError: the file cannot be read, or is empty.
  """
  if environment.get(WEBHOOK_VARIABLE):
    return environment[WEBHOOK_VARIABLE].strip()
  path = environment.get(WEBHOOK_FILE_VARIABLE)
  if not path:
    return None
  try:
    with open(path, encoding='utf-8') as file:
      address = file.read().strip()
  except OSError as error:
    raise ValueError(
        f'{WEBHOOK_FILE_VARIABLE} is {path!r}, which cannot be read '
        f'({error.strerror}): expected a file that holds the address. Correct '
        'the path or its permissions.'
    ) from None
  if not address:
    raise ValueError(
        f'{WEBHOOK_FILE_VARIABLE} is {path!r}, which is empty: expected the '
        "webhook's address in it"
    )
  return address


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
  """An environment for processes that send no alerts."""
  return {k: v for k, v in environment.items() if k not in SECRET_VARIABLES}


class Alerts:
  """Sends alerts from a thread; the caller waits for nothing.

  The same alert (kind and text, numbers aside) is sent once in
  `repeat_seconds`; the next one after that says how many were left out.
  """

  def __init__(
      self,
      targets: Targets,
      *,
      run: str,
      repeat_seconds: float = 3600.0,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the thread.

    Args:
      targets: where to.
      run: named in every alert.
      repeat_seconds: how long an alert is not repeated.
      clock: seconds.
    """
    self._targets = targets
    self._run = run
    self._repeat = repeat_seconds
    self._clock = clock
    self._sent: dict[str, tuple[float, int]] = {}
    self._queue: queue.SimpleQueue = queue.SimpleQueue()
    self._failing: set[str] = set()
    self._thread = threading.Thread(
        target=self._work, name='alerts', daemon=True
    )
    self._thread.start()

  def send(self, kind: str, text: str) -> bool:
    """Sends an alert, unless it was sent a short while ago.

    Args:
      kind: one word, e.g. `restart`, `stopped`, `alive`.
      text: what happened.

    Returns:
      Whether it goes out.
    """
    key = f'{kind}: {re.sub(r"[0-9]+", "#", text)}'
    now = self._clock()
    at, left_out = self._sent.get(key, (-self._repeat, 0))
    if now - at < self._repeat and kind != ALIVE:
      self._sent[key] = at, left_out + 1
      return False
    self._sent[key] = now, 0
    if left_out:
      text += f'\n({left_out} more like this since the last alert)'
    self._queue.put((kind, text))
    return True

  def close(self) -> None:
    """Waits a bounded time for what is under way."""
    self._queue.put(_STOP)
    self._thread.join(_CLOSE_SECONDS)

  def _work(self) -> None:
    ways: Sequence[tuple[str, Callable[[str, str], None]]] = [
        (name, way)
        for name, way, is_set in (
            ('the webhook', self._post, self._targets.webhook),
            ('the mail command', self._mail, self._targets.mail_command),
            ('the alert file', self._append, self._targets.file),
        )
        if is_set
    ]
    while (item := self._queue.get()) is not _STOP:
      for name, way in ways:
        try:
          way(*item)
          self._failing.discard(name)
        except Exception as error:  # noqa: BLE001 -- a run outlives its alerts
          self._tell_failure(name, error)

  def _tell_failure(self, name: str, error: Exception) -> None:
    if name in self._failing:
      return
    self._failing.add(name)
    # Not the error's own text: it may hold the address.
    reason = type(error).__name__
    if isinstance(error, urllib.error.HTTPError):
      reason = f'HTTP status {error.code}'
    logging.warning(
        'An alert did not get through by %s (%s); the run goes on.',
        name, reason,
    )  # fmt: skip

  def _post(self, kind: str, text: str) -> None:
    body = json.dumps({'text': f'*t5wild {kind}* `{self._run}`\n{text}'})
    request = urllib.request.Request(
        self._targets.webhook,
        data=body.encode(),
        headers={'Content-Type': 'application/json'},
    )
    with urllib.request.urlopen(request, timeout=_SEND_SECONDS):
      pass

  def _mail(self, kind: str, text: str) -> None:
    subprocess.run(
        shlex.split(self._targets.mail_command),
        input=f't5wild {kind}: {self._run}\n\n{text}\n',
        text=True,
        timeout=_SEND_SECONDS,
        check=True,
        capture_output=True,
        env=without_secrets(os.environ),
    )

  def _append(self, kind: str, text: str) -> None:
    line = json.dumps({
        'seconds': time.time(), 'kind': kind, 'run': self._run, 'text': text,
    })  # fmt: skip
    with open(self._targets.file, 'a', encoding='utf-8') as file:
      file.write(line + '\n')
