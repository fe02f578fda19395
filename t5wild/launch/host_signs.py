# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Signs of life of the supervisors of a run's hosts: one small file each.

A sign lives while it changes: the clocks of two hosts are never compared.
"""

from collections.abc import Callable
import dataclasses
import glob
import json
import logging
import os
import threading
import time
from typing import Any
import uuid

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import heartbeats

_PERIOD_SECONDS = 0.5
_JOIN_SECONDS = 5.0
# Looks come each half second; one so much later was held up.
_BLIND_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostSign:
  """What a supervisor tells those of the other hosts.

  Attributes:
    host: its name among the hosts of the run.
    incarnation: of this supervisor; the next one on the host has another.
    planned: hosts that it was told of.
    processes: that it starts.
    coordinator: `host:port` where its process 0 would listen.
    knows: number of the newest round that it has read.
    waits: for the next round; else its processes run in that one.
    left: it was told to stop, and is gone.
    ended: how its processes ended in that round; None: they were not in it, or
      run still.
    ended_at: when, seconds since 1970.
    count: how many signs it has given.
  """

  host: str
  incarnation: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)
  planned: int
  processes: int
  coordinator: str
  knows: int = 0
  waits: bool = True
  left: bool = False
  ended: dict[str, Any] | None = None
  ended_at: float = 0.0
  count: int = 0


class Beacon:
  """Gives this host's signs, from a thread; the newest state at once."""

  def __init__(self, run_dir: run_dir_lib.RunDir, sign: HostSign):
    """Writes the first.

    Raises:
      OSError: it cannot be written.
    """
    self._path = run_dir.host_sign(sign.host)
    self._sign = sign
    self._lock = threading.Lock()
    self._end = threading.Event()
    self._is_troubled = False
    self._write()
    self._thread = threading.Thread(
        target=self._work, name='host_signs', daemon=True
    )
    self._thread.start()

  @property
  def sign(self) -> HostSign:
    """What it tells."""
    return self._sign

  def tell(self, **changes) -> None:
    """Tells something new."""
    with self._lock:
      self._sign = dataclasses.replace(self._sign, **changes)
    self._try_to_write()

  def close(self) -> None:
    """Gives no more signs."""
    self._end.set()
    self._thread.join(_JOIN_SECONDS)

  def _work(self) -> None:
    while not self._end.wait(_PERIOD_SECONDS):
      self._try_to_write()

  def _try_to_write(self) -> None:
    try:
      self._write()
      self._is_troubled = False
    except OSError:
      if not self._is_troubled:
        logging.exception('No sign of this host can be left; it goes on')
      self._is_troubled = True

  def _write(self) -> None:
    with self._lock:
      self._sign = dataclasses.replace(self._sign, count=self._sign.count + 1)
      heartbeats.replace(
          self._path,
          json.dumps(dataclasses.asdict(self._sign)),
          num_folders=2,
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
  """A sign, and for how long it has been the newest.

  Attributes:
    sign: the newest.
    age: seconds since it was first seen.
    has_changed: whether it was seen to follow another: it may be a stale file.
  """

  sign: HostSign
  age: float
  has_changed: bool


class Onlooker:
  """Reads the signs of all hosts and remembers when each was new."""

  def __init__(
      self,
      run_dir: run_dir_lib.RunDir,
      *,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Has seen nothing."""
    self._folder = run_dir.host_signs
    self._clock = clock
    self._first: dict[str, tuple[HostSign, float, bool]] = {}
    self._looked_at: float | None = None

  def look(self) -> list[Seen]:
    """The newest sign of each host, by name."""
    now = self._clock()
    found = {
        sign.host: sign
        for sign in map(
            _read, glob.glob(os.path.join(glob.escape(self._folder), '*.json'))
        )
        if sign is not None
    }
    # Whoever was stopped meanwhile, or cannot read, has not seen them cease.
    gap = 0.0 if self._looked_at is None else now - self._looked_at
    if gap > _BLIND_SECONDS:
      self._first = {
          host: (sign, at + gap, has_changed)
          for host, (sign, at, has_changed) in self._first.items()
      }
    for host, sign in found.items():
      before = self._first.get(host)
      if before is None or _mark(before[0]) != _mark(sign):
        self._first[host] = sign, now, before is not None
    if found:
      self._looked_at = now
    return [
        Seen(sign=sign, age=now - at, has_changed=has_changed)
        for _, (sign, at, has_changed) in sorted(self._first.items())
    ]


def _mark(sign: HostSign) -> tuple[str, int]:
  return sign.incarnation, sign.count


def _read(path: str) -> HostSign | None:
  try:
    with open(path, encoding='utf-8') as file:
      return HostSign(**json.load(file))
  except (OSError, ValueError, TypeError):
    return None
