# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Trains what is missing, one run after another or several at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
import dataclasses
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from t5wild import exit_codes
from t5wild.experiments import folder as folder_lib
from t5wild.experiments import points as points_lib
from t5wild.experiments import recipes

TRAIN = (sys.executable, '-m', 't5wild.train')
_LOOK_SECONDS = 0.5
_SAVE_SECONDS = 120.0  # for a run that was told to stop
# Of a log's end: where its own message is, and not a thread's or a library's.
_TAIL_BYTES = 20_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
  """One run that is to reach some steps.

  Attributes:
    point: what it binds.
    steps: TRAIN_STEPS; None = the recipe's.
  """

  point: points_lib.Point
  steps: int | None = None


class Runner:
  """Trains jobs in processes of their own, each in its folder."""

  def __init__(
      self,
      recipe: recipes.Recipe,
      folder: folder_lib.Folder,
      *,
      num_parallel: int = 1,
      environments: Sequence[Mapping[str, str]] = (),
      program: Sequence[str] | None = None,
      say: Callable[[str], None] = print,
  ):
    """Starts nothing.

    Args:
      recipe: of all runs.
      folder: of the experiment.
      num_parallel: runs at a time.
      environments: variables of each place where a run goes, such as which GPU
        it sees; as many as runs at a time, or none.
      program: that takes the flags of `t5wild train`; None: that itself.
      say: takes a line for a person.

    Raises:
      points.BadExperimentError: another number of environments.
    """
    if not isinstance(num_parallel, int) or num_parallel < 1:
      raise points_lib.BadExperimentError(
          f'num_parallel is {num_parallel!r}\n  expected: 1 or more.\n'
          '  do: num_parallel = 1'
      )
    if environments and len(environments) != num_parallel:
      raise points_lib.BadExperimentError(
          f'There are {len(environments)} environments for {num_parallel} runs '
          'at a time\n  expected: one each, or none.\n'
          f'  do: num_parallel = {len(environments)}'
      )
    self._recipe = recipe
    self._folder = folder
    self._num_parallel = num_parallel
    self._places: queue.SimpleQueue = queue.SimpleQueue()
    for each in environments or [{}] * num_parallel:
      self._places.put(each)
    self._program = program or TRAIN
    self._say = say
    self._stopping = threading.Event()
    self._alive: set[subprocess.Popen] = set()
    self._lock = threading.Lock()

  def run(
      self,
      jobs: Sequence[Job],
      *,
      when_done: Callable[[Job], None] = lambda job: None,
  ) -> None:
    """Trains those that are not done; returns when no more can be.

    Args:
      jobs: in the order in which they are begun.
      when_done: called after each that reached its end; what it raises stops
        the others.
    """
    missing = [job for job in jobs if self._is_missing(job)]
    with futures.ThreadPoolExecutor(self._num_parallel) as pool:
      waiting = [(job, pool.submit(self._train, job)) for job in missing]
      try:
        self._see_done(waiting, when_done)
      except BaseException:
        self._stop()
        raise

  def _see_done(self, waiting, when_done: Callable[[Job], None]) -> None:
    for job, future in waiting:
      future.result()
      if self._folder.run(job.point).is_done(job.steps):
        when_done(job)

  def _is_missing(self, job: Job) -> bool:
    status = self._folder.run(job.point).status(job.steps)
    return status not in ('done', 'diverged')

  def _stop(self) -> None:
    """Tells all runs to save and end."""
    self._stopping.set()
    with self._lock:
      alive = list(self._alive)
    for process in alive:
      process.send_signal(signal.SIGTERM)
    until = time.monotonic() + _SAVE_SECONDS
    for process in alive:
      try:
        process.wait(max(0.1, until - time.monotonic()))
      except subprocess.TimeoutExpired:
        process.kill()

  def _train(self, job: Job) -> None:
    place = self._places.get()
    try:
      if not self._train_if_free(job, place):
        self._say(
            f'{job.point.name} is trained by another process: waiting for it'
        )
        while not self._train_if_free(job, place):
          time.sleep(_LOOK_SECONDS)
    finally:
      self._places.put(place)

  def _train_if_free(self, job: Job, place: Mapping[str, str]) -> bool:
    """Trains unless another process does; False: it does."""
    run = self._folder.run(job.point)
    if self._stopping.is_set() or run.is_done(job.steps):
      return True
    with run.taken() as descriptor:
      if descriptor is None:
        return False
      self._train_taken(job, run, descriptor, place)
    return True

  def _train_taken(
      self,
      job: Job,
      run: folder_lib.RunFolder,
      descriptor: int,
      place: Mapping[str, str],
  ) -> None:
    if run.is_done(job.steps):
      return  # by whoever had it until now
    before = run.end()
    run.forget_end()
    bindings = dict(job.point.bindings)
    if job.steps is not None:
      bindings['TRAIN_STEPS'] = job.steps
    flags = self._recipe.flags(bindings, model_dir=run.run_dir.path)
    start = time.monotonic()
    with open(run.log, 'ab') as log, self._lock:
      if self._stopping.is_set():
        return
      process = subprocess.Popen(
          [*self._program, *flags],
          stdin=subprocess.DEVNULL, stdout=log, stderr=log,
          env={**os.environ, **place}, pass_fds=[descriptor],
          # Ctrl-C is for us: we tell our runs ourselves.
          start_new_session=True,
      )  # fmt: skip
      self._alive.add(process)
    code = process.wait()
    with self._lock:
      self._alive.discard(process)
    seconds = time.monotonic() - start + (before.seconds if before else 0.0)
    end = folder_lib.End(
        code=code,
        steps=job.steps,
        seconds=seconds,
        why='' if code == exit_codes.DONE.code else _why(run.log, code),
    )
    run.write_end(end)
    told = f': {end.why}' if end.why else ''
    self._say(
        f'{job.point.name}: {run.ended_as(job.steps)} after {seconds:.0f} s'
        f'{told}'
    )


def _why(log: str, code: int) -> str:
  """How a run ended, in a line."""
  if code < 0:
    return f'killed by {signal.Signals(-code).name}'
  known = {each.code: each.name for each in vars(exit_codes).values()
           if isinstance(each, exit_codes.Exit)}  # fmt: skip
  with open(log, 'rb') as file:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _TAIL_BYTES))
    lines = file.read().decode(errors='replace').splitlines()
  told = [line.strip() for line in lines if line.strip()]
  last = told[-1][:300] if told else 'it printed nothing'
  return f'exit {code} ({known.get(code, "unknown")}): {last}'
