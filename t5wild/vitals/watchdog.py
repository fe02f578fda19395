# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A thread that ends a process whose training does not move.

It takes part in no collective, asks no device and touches no file before it has
decided, so it sees a hang that the run itself waits in. A second thread leaves
a sign of life each second, and where the time went: the loop only counts.
"""

import collections
from collections.abc import Callable, Mapping
import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
import time

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.vitals import goodput
from t5wild.vitals import heartbeats
from t5wild.vitals import patience as patience_lib
from t5wild.vitals import records
from t5wild.vitals import run_clock
from t5wild.vitals import stacks
from t5wild.vitals import stalls as stalls_lib
from t5wild.vitals import supervised
from t5wild.vitals import time_ledgers

_NUM_DURATIONS = 101
# The others get this long to write their stacks before the run is torn down.
_OTHERS_SECONDS = 1.0
# The file system may be what hangs: last words wait for it no longer than this.
_LAST_WORDS_SECONDS = 5.0
_SILENT_SECONDS = 5.0
_POLL_SECONDS = 0.5
_SKEW_SECONDS = 60.0  # between the clocks of two hosts
_SIGN_SECONDS = 1.0


class Watchdog:
  """Signs of life of a training process, and its end when it hangs.

  In gin, with `train_script.train.watchdog_cls = @watchdog.Watchdog` as in
  runs/pretrain.gin:

    watchdog.Watchdog.multiple = 10
    watchdog.Watchdog.phase_seconds = {'evaluate': 600}

  Attributes:
    on_hang: called with the exit code when the process must end.
  """

  def __init__(
      self,
      run_dir: run_dir_lib.RunDir,
      *,
      ledger: goodput.Ledger,
      process: int = 0,
      num_devices: int = 1,
      multiple: float | None = 20.0,
      min_seconds: float = 300.0,
      phase_seconds: Mapping[str, float | None] | None = None,
      price_per_device_hour: float | None = None,
  ):
    """Starts nothing yet; use as a context manager.

    Args:
      run_dir: The run's directory.
      ledger: Says what the loop does, and books it.
      process: Index of this process.
      num_devices: Of all processes together, for what a run costs.
      multiple: The process ends when no step has finished for so many times the
        median of the last steps. None: it is never ended.
      min_seconds: ... but not before so many seconds.
      phase_seconds: How long each other phase may take, in place of
        `patience.PHASE_SECONDS`; None: any time.
      price_per_device_hour: For `t5wild goodput`, in any currency.

    Raises:
      ValueError: For an argument that makes no sense.
    """
    self._patience = patience_lib.Patience(
        multiple=multiple, min_seconds=min_seconds, phase_seconds=phase_seconds
    )
    self._told = supervised.from_environment()
    folder = self._told.folder if self._told else run_dir.path
    self._attempt = self._told.attempt if self._told else 0
    self._dir = run_dir_lib.RunDir(folder)
    self._files = not self._dir.is_bucket
    self._ledger = ledger
    self._stalls = stalls_lib.Stalls(ledger)
    self._untold: collections.deque[stalls_lib.Stall] = collections.deque()
    self._process = process
    self._host = socket.gethostname()
    self._durations: collections.deque[float] = collections.deque(
        maxlen=_NUM_DURATIONS
    )
    self._step = self._first_step = 0
    self._rewound: tuple[int, int] | None = None
    self._ended: str | None = None
    self._is_measuring = False  # the first step begins before the loop does
    self._beat_at = self._seen_at = time.monotonic()
    self._busy_seconds = self._device_seconds = None
    self._phase = ''
    self._count = 0
    self._stacks_asked = self._request_time()
    self._books = time_ledgers.Books(
        self._dir, process=process, num_devices=num_devices,
        price_per_device_hour=price_per_device_hour,
        attempt=self._attempt,
    )  # fmt: skip
    self._writes = True
    self._orphaned = self._hangs = False
    self._started = time.time()
    self._newest = self._look()
    self._has_told = threading.Event()
    self._end = threading.Event()
    self._give_last = threading.Event()
    self._threads = [
        threading.Thread(target=work, name=name, daemon=True)
        for name, work in (('watchdog', self._watch), ('signs', self._give))
    ]
    self.on_hang: Callable[[int], None] = os._exit

  def __enter__(self):
    """Starts the threads."""
    # A supervisor that hears nothing more asks by SIGABRT for last words; that
    # works without Python's lock, which a hang may hold.
    if not faulthandler.is_enabled():
      faulthandler.enable()
    for thread in self._threads:
      thread.start()
    return self

  def __exit__(self, *exc):
    """Ends the threads, with a last sign of life."""
    watch, signs = self._threads
    self._end.set()
    watch.join(_LAST_WORDS_SECONDS)
    self._newest = self._look()
    self._give_last.set()
    signs.join(_LAST_WORDS_SECONDS)

  def begin(self, step: int) -> None:
    """Tells how many updates the first state holds."""
    self._step = self._first_step = step
    self._beat_at = time.monotonic()

  @property
  def step(self) -> int:
    """Updates handed to the device so far."""
    return self._step

  def tell_end(self, ended: str) -> None:
    """Tells how the attempt ended, for its books; before the `with` ends."""
    self._ended = ended

  def tell_times(self, busy: float, device: float | None) -> None:
    """Tells how long a step keeps the host busy, and a probe a device."""
    self._busy_seconds = busy
    if device is not None:
      self._device_seconds = device

  def beat(self, step: int) -> None:
    """Counts a step; all that the loop pays."""
    now = time.monotonic()
    if self._is_measuring:
      self._durations.append(now - self._beat_at)
    self._is_measuring = True
    self._beat_at = now
    if step <= self._step:
      self._note_rewind(step - 1)
    self._step = step

  def _note_rewind(self, step: int) -> None:
    """The loop goes on after an earlier step: what came since was in vain."""
    steps, lowest = self._rewound or (0, step)
    self._rewound = steps + self._step - step, min(lowest, step)

  def _watch(self) -> None:
    """Decides; waits for nothing but time."""
    self._stalls.poll()
    while not self._end.wait(_POLL_SECONDS):
      gap, stall = self._stalls.poll()
      if gap > stalls_lib.LATE_SECONDS:
        # Ctrl-Z, a suspended machine: nobody hung meanwhile.
        self._beat_at = self._seen_at = time.monotonic()
      if stall is not None:
        self._untold.append(stall)
      try:
        self._newest = newest = self._look()
        self._leave_if_orphaned()
        bound = self._bound(newest)
        if bound is not None and newest.phase_seconds > bound:
          self._hang(newest, bound)
      except Exception:  # a watchdog must not die of a detail
        logging.exception('The watchdog could not look; it goes on')

  def _look(self) -> heartbeats.Heartbeat:
    """What the loop does, and for how long nothing has moved."""
    now = time.monotonic()
    phase = self._ledger.open_kind()
    group = self._group(phase)
    if group != self._phase:
      self._phase, self._seen_at = group, now
    since = self._seen_at
    if group == patience_lib.STEP:
      since = max(since, self._beat_at)
    self._count += 1
    return heartbeats.Heartbeat(
        process=self._process,
        host=self._host,
        pid=os.getpid(),
        attempt=self._attempt,
        supervisor=self._told.supervisor if self._told else 0,
        count=self._count,
        seconds=time.time(),
        first_step=self._first_step,
        step=self._step,
        phase=phase,
        phase_seconds=now - since,
        median_step_seconds=patience_lib.median(self._durations),
        host_seconds=self._busy_seconds,
        device_seconds=self._device_seconds,
        ended=self._ended or '',
        dated=run_clock.now(),
    )

  def _group(self, phase: str) -> str:
    return self._patience.group(phase, has_stepped=self._is_measuring)

  def _bound(self, newest: heartbeats.Heartbeat) -> float | None:
    if stacks.in_debugger():
      return None
    return self._patience.bound(
        self._group(newest.phase),
        median=newest.median_step_seconds,
        num_steps=len(self._durations),
    )

  def _give(self) -> None:
    """Leaves signs of life; may wait for a file system."""
    while True:
      is_last = self._give_last.wait(_SIGN_SECONDS)
      try:
        self._write(self._newest)
        self._write_stacks_if_asked()
        self._tell_stalls()
      except Exception:  # the run does not live by its signs
        logging.exception('No sign of life could be left; the run goes on')
      if is_last:
        return

  def _write(self, heartbeat: heartbeats.Heartbeat) -> None:
    if not self._files:
      return
    try:
      heartbeats.write(self._dir, heartbeat)
      self._books.write(
          self._stalls.corrected(self._ledger.look()),
          first_step=self._first_step, step=self._step,
          hung=(heartbeat.phase, heartbeat.phase_seconds * self._hangs),
          ended=time_ledgers.HUNG if self._hangs else self._ended,
          rewound=self._rewound,
      )  # fmt: skip
      self._writes = True
    except OSError as error:
      if self._writes:
        logging.warning(
            'No sign of life can be left in %s (%s); the run goes on.',
            self._dir.path, error,
        )  # fmt: skip
      self._writes = False

  def _hang(self, newest: heartbeats.Heartbeat, bound: float) -> None:
    """Says what hangs, on stderr and in the files, and ends the process."""
    what = (
        f'process {self._process} hangs in {newest.phase!r} after step '
        f'{newest.step}: nothing finished for {newest.phase_seconds:.1f} s, '
        f'allowed are {bound:.1f} s'
    )
    self._hangs = True
    _say(what)
    told = threading.Thread(
        target=self._tell, args=(newest, what), name='last_words', daemon=True
    )
    told.start()
    if self._files and self._has_told.wait(_LAST_WORDS_SECONDS):
      time.sleep(_OTHERS_SECONDS)
      told.join(stacks.NATIVE_SECONDS)
    else:
      stacks.write(None, what)
    self.on_hang(exit_codes.HUNG.code)

  def _tell(self, newest: heartbeats.Heartbeat, what: str) -> None:
    if not self._files:
      return
    # First of all: it is what the others look for.
    heartbeats.replace(self._dir.stacks_request, what)
    place = self._dir.stacks(self._process)
    stacks.write(place, what)
    laggards = [f'  {name}' for name in self._laggards()]
    self._record(
        'hang', newest.phase_seconds, '\n'.join([what, *laggards])
    )
    self._write(newest)
    _say(
        '\n'.join([
            *laggards,
            f'  All stacks are in {place}. Raise watchdog.Watchdog.multiple, '
            '.min_seconds or .phase_seconds if nothing was wrong.',
        ])
    )
    self._has_told.set()
    stacks.write_native(place)

  def _laggards(self) -> list[str]:
    found = [
        one
        for one in heartbeats.read_all(self._dir)
        # Each host may have a supervisor, with numbers of its own; what is
        # older than this process is left from an attempt before.
        if one.seconds > self._started - _SKEW_SECONDS
    ]
    return heartbeats.laggards(
        found, now=time.time(), silent_seconds=_SILENT_SECONDS
    )

  def _tell_stalls(self) -> None:
    while self._untold:
      stall = self._untold.popleft()
      text = f'process {self._process} on {self._host}: {stall}'
      logging.warning('%s', text)
      if self._files:
        self._record('stalled', stall.seconds, text, at=stall.ended_at)

  def _record(
      self, name: str, seconds: float, text: str, *, at: float | None = None
  ) -> None:
    writer = records.RecordWriter(self._dir.events_jsonl)
    writer.write([
        records.Record(
            self._step, at or run_clock.now(), self._process,
            f'watchdog/{name}', seconds, 'seconds', text,
        )  # fmt: skip
    ])
    writer.close()

  def _request_time(self) -> int:
    try:
      return os.stat(self._dir.stacks_request).st_mtime_ns
    except OSError:
      return 0

  def _write_stacks_if_asked(self) -> None:
    asked = self._request_time() if self._files else 0
    if asked > self._stacks_asked:
      self._stacks_asked = asked
      stacks.write(
          self._dir.stacks(self._process),
          f'process {self._process} after step {self._step}, because another '
          'one hangs',
      )

  def _leave_if_orphaned(self) -> None:
    """Stops in good order when the supervisor was killed."""
    if self._orphaned or self._told is None:
      return
    if self._told.supervisor_is_gone():
      self._orphaned = True
      logging.warning('The supervisor is gone: stopping as upon SIGTERM')
      # To the main thread: only there does Python answer signals, and another
      # one would let it sleep on.
      signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)


def _say(text: str) -> None:
  print(text, file=sys.stderr, flush=True)  # noqa: T201 -- the last words
