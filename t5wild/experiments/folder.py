# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""An experiment on disk: what it is of, its runs, and how each ended.

  FOLDER/experiment.json     recipe and method, held against a changed file
  FOLDER/runs/NAME/          MODEL_DIR of a run
  FOLDER/runs/NAME/log.txt   what it printed
  FOLDER/runs/NAME/run.lock  taken, by the kernel, while the run lives
  FOLDER/runs/NAME/end.json  how it ended; absent while it runs or if killed
  FOLDER/runs/NAME/reached.json  most steps that it was done with

Only exit code 0 makes a run count as done, and it is written down after the
process was seen to end so. A run that was done with some steps stays so while
more are made, and when it is killed in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import fcntl
import json
import os
from typing import Any

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.experiments import points as points_lib

STATUSES = {
    'done': 'reached its end',
    'diverged': 'loss or gradients were not finite',
    'failed': 'ended with an error; tried again by the next command',
    'killed': 'ended before its time; goes on with the next command',
    'running': 'is being trained now',
    'missing': 'not begun',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class End:
  """How a run ended.

  Attributes:
    code: its exit code; negative: the signal that killed it.
    steps: that it was to reach; None = those of the recipe.
    seconds: that it took, all attempts together.
    why: the last line of its log, where it failed.
  """

  code: int
  steps: int | None
  seconds: float
  why: str = ''


class RunFolder:
  """The folder of one run."""

  def __init__(self, path: str):
    """Names the folder; touches nothing."""
    self.run_dir = run_dir_lib.RunDir(path)
    self.log = self.run_dir.join('log.txt')
    self._lock = self.run_dir.join('run.lock')
    self._end = self.run_dir.join('end.json')
    self._reached_file = self.run_dir.join('reached.json')

  def end(self) -> End | None:
    """How it ended; None = it did not, or nobody saw it."""
    try:
      with open(self._end, encoding='utf-8') as file:
        return End(**json.load(file))
    except (FileNotFoundError, ValueError, TypeError):
      return None

  def write_end(self, end: End) -> None:
    """Writes down how it ended."""
    is_done = end.code == exit_codes.DONE.code
    if is_done and end.steps is not None and end.steps > self._reached():
      write_json(self._reached_file, {'steps': end.steps})
    write_json(self._end, dataclasses.asdict(end))

  def forget_end(self) -> None:
    """Begins anew: until the next end it counts as killed."""
    with contextlib.suppress(FileNotFoundError):
      os.remove(self._end)

  def is_done(self, steps: int | None) -> bool:
    """Whether it has reached a number of steps, or the recipe's."""
    if steps is not None and self._reached() >= steps:
      return True
    end = self.end()
    if end is None or end.code != exit_codes.DONE.code:
      return False
    if steps is None or end.steps is None:
      return steps == end.steps
    return end.steps >= steps

  def _reached(self) -> int:
    try:
      with open(self._reached_file, encoding='utf-8') as file:
        return int(json.load(file)['steps'])
    except (FileNotFoundError, ValueError, TypeError, LookupError):
      return -1

  def status(self, steps: int | None = None) -> str:
    """One of `STATUSES`."""
    if not self.is_done(steps) and self.is_taken():
      return 'running'
    return self.ended_as(steps)

  def ended_as(self, steps: int | None = None) -> str:
    """One of `STATUSES`, of a run that nobody trains or that is ours."""
    if self.is_done(steps):
      return 'done'
    end = self.end()
    if end is None:
      return 'killed' if os.path.exists(self.log) else 'missing'
    if end.code == exit_codes.NON_FINITE.code:
      return 'diverged'
    if end.code == exit_codes.DONE.code:
      return 'missing'  # longer is asked for
    if end.code < 0 or end.code == exit_codes.PREEMPTED.code:
      return 'killed'
    return 'failed'

  def is_taken(self) -> bool:
    """Whether some process trains it."""
    try:
      descriptor = os.open(self._lock, os.O_RDWR)
    except FileNotFoundError:
      return False
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      return True
    finally:
      os.close(descriptor)
    return False

  @contextlib.contextmanager
  def taken(self) -> Iterator[int | None]:
    """Takes it, if nobody has; gives the lock's descriptor, or None.

    A process that inherits the descriptor holds the lock as long as it lives,
    also where ours is killed: nobody trains in a folder where that still does.
    """
    os.makedirs(self.run_dir.path, exist_ok=True)
    descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      os.close(descriptor)
      yield None
      return
    try:
      yield descriptor
    finally:
      os.close(descriptor)


class Folder:
  """The folder of an experiment."""

  def __init__(self, path: str):
    """Names the folder; touches nothing."""
    self.path = path

  def join(self, name: str) -> str:
    """A file in it."""
    return os.path.join(self.path, name)

  def run(self, point: points_lib.Point) -> RunFolder:
    """The folder of a point's run."""
    return RunFolder(os.path.join(self.path, 'runs', point.name))

  def open_for(self, described: Mapping[str, Any]) -> None:
    """Makes the folder, or sees that it is of the same experiment.

    Args:
      described: JSON of all that old and new runs must have in common.

    Raises:
      points.BadExperimentError: it is of another one.
    """
    path = self.join('experiment.json')
    described = json.loads(json.dumps(described))
    if not os.path.exists(path):
      if os.path.isdir(self.path) and os.listdir(self.path):
        raise points_lib.BadExperimentError(
            f'{self.path!r} is there, and no folder of an experiment\n'
            '  expected: a new or empty folder, or one of this experiment.\n'
            '  do: --output=ANOTHER_FOLDER'
        )
      os.makedirs(self.path, exist_ok=True)
      write_json(path, described)
      return
    with open(path, encoding='utf-8') as file:
      old = json.load(file)
    if old != described:
      raise points_lib.BadExperimentError(_changed(self.path, old, described))


def write_json(path: str, value: Any) -> None:
  """Writes a file whole or not at all."""
  partial = f'{path}.{os.getpid()}.partial'
  with open(partial, 'w', encoding='utf-8') as file:
    json.dump(value, file, indent=1)
  os.replace(partial, path)


def _changed(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> str:
  lines = []
  for name, a, b in _differences(old, new, ''):
    lines += [f'    {name}, of its runs: {a}', f'    {name}, now:         {b}']
  told = '\n'.join(lines)
  return (
      f'{path!r} holds runs of something else\n{told}\n'
      '  expected: the recipe, the bindings and the method of its runs; values '
      'may be added.\n'
      '  do: --output=ANOTHER_FOLDER, or change it back'
  )


def _differences(
    old: Any, new: Any, name: str
) -> Iterator[tuple[str, Any, Any]]:
  if isinstance(old, dict) and isinstance(new, dict):
    for key in dict.fromkeys((*old, *new)):
      inner = f'{name}.{key}' if name else key
      yield from _differences(
          old.get(key, '(not there)'), new.get(key, '(not there)'), inner
      )
  elif old != new:
    yield name, old, new
