# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How far each checkpoint of a run can be trusted: `checkpoint_health.json`.

A saved state is a candidate until so many good steps were made from it: it is
then healthy. One that a fault followed is quarantined: nothing resumes from it,
rewinds to it or counts it, and a later save of the same step takes its place.
The file lies beside the checkpoints and is replaced as a whole, so that a
process killed at any moment leaves the old one or the new one. A copy lies
beside it: where the file is damaged all the same, the copy is taken and it is
told; where that is no better, nobody knows what is in quarantine, and nothing
is resumed from.
"""

from collections.abc import Collection
import dataclasses
import json
import os
import threading

from absl import logging
from etils import epath

from t5wild.checkpoint_files import small_files

FILE = 'checkpoint_health.json'
COPY = 'checkpoint_health.copy.json'
CANDIDATE = 'candidate'
HEALTHY = 'healthy'
QUARANTINED = 'quarantined'
_STATES = (CANDIDATE, HEALTHY, QUARANTINED)
# How the reason of a quarantine begins that is of one copy alone: its files
# are damaged, or another run's. Any other is a fault that followed the state.
DAMAGED = 'damaged: '
FOREIGN = 'foreign: '


class DamagedError(ValueError):
  """Nobody knows which checkpoints of a directory are in quarantine."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Health:
  """What is known of one checkpoint.

  Attributes:
    state: `CANDIDATE`, `HEALTHY` or `QUARANTINED`.
    reason: why it is quarantined, for a person; else empty.
  """

  state: str = CANDIDATE
  reason: str = ''

  @property
  def is_of_the_copy(self) -> bool:
    """Whether it is in quarantine for what befell this copy of the state."""
    return self.state == QUARANTINED and self.reason.startswith(
        (DAMAGED, FOREIGN)
    )

  @property
  def is_of_the_state(self) -> bool:
    """Whether a fault followed the state, in whatever copy."""
    return self.state == QUARANTINED and not self.is_of_the_copy


_NEW = Health()


def read(directory: str | os.PathLike[str]) -> dict[int, Health]:
  """What is known of the checkpoints of a run; who is absent is a candidate.

  Raises:
    DamagedError: The file and its copy are damaged.
  """
  return look(directory)[0]


def look(
    directory: str | os.PathLike[str],
) -> tuple[dict[int, Health], str | None]:
  """The same, and what is wrong with the file where its copy was taken.

  Raises:
    DamagedError: The file and its copy are damaged.
  """
  root = epath.Path(directory)
  known, why = _parse(root / FILE)
  copied, why_copy = _parse(root / COPY)
  if known is not None:
    return _joined(known, copied or {}, root)
  if copied is not None:
    return copied, (
        f'{root / FILE} is damaged ({why}): what is in quarantine is taken '
        f'from {COPY} beside it'
    )
  if why is None and why_copy is None:  # neither is there
    return {}, None
  what = FILE if why is not None else COPY
  raise DamagedError(
      f'{root / what} is damaged ({why or why_copy}) and '
      f'{"so is its copy" if why and why_copy else "the other is absent"}, '
      'expected the health of the checkpoints beside it: nobody knows which a '
      f'fault followed. Copy {FILE} from a backup; or look which checkpoints '
      f'are good (t5wild checkpoints verify, events.jsonl), remove the others, '
      f'then {FILE} and {COPY}, and all that stay are candidates'
  )


def _joined(
    known: dict[int, Health], copied: dict[int, Health], root: epath.Path
) -> tuple[dict[int, Health], str | None]:
  """Of two whole files the first, with what is in quarantine by the second."""
  more = {
      step: one
      for step, one in copied.items()
      if QUARANTINED == one.state != known.get(step, _NEW).state
  }
  if not more:
    return known, None
  return known | more, (
      f'{root / FILE} and {COPY} beside it differ: by the copy alone {[*more]} '
      'are in quarantine, and so they are taken to be. Where they are good, '
      'take them by t5wild checkpoints adopt'
  )


def carry(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    there: Collection[int],
) -> list[int]:
  """Lets copies share what is known of the states that they are copies of.

  Args:
    source: The directory that they come from.
    target: Theirs.
    there: Steps of the copies.

  Returns:
    Steps of copies that are now in quarantine.

  Raises:
    DamagedError: Nobody knows the health of one of them.
  """
  known = read(source)
  book = Book(target, is_writer=True)
  book.promote([s for s in there if known.get(s, _NEW).state == HEALTHY])
  new = [
      step
      for step in sorted(there)
      if known.get(step, _NEW).is_of_the_state
      and book.of(step).state != QUARANTINED
  ]
  for step in new:
    book.quarantine([step], reason=known[step].reason)
  return new


def _parse(path: epath.Path) -> tuple[dict[int, Health] | None, str | None]:
  """What a file says, or why it says nothing; two Nones where there is none."""
  try:
    found = json.loads(path.read_text())
    known = {int(step): Health(**fields) for step, fields in found.items()}
  except (FileNotFoundError, NotADirectoryError):
    return None, None
  except (ValueError, TypeError, AttributeError) as error:
    return None, f'{type(error).__name__}: {error}'
  except OSError as error:
    if '://' in os.fspath(path):
      raise  # a store that is away, not a damaged one
    return None, str(error)
  strange = [one.state for one in known.values() if one.state not in _STATES]
  if strange:
    return None, f'the state {strange[0]!r}, expected one of {_STATES}'
  return known, None


def quarantined_steps(directory: str | os.PathLike[str]) -> frozenset[int]:
  """Steps of the checkpoints that a fault followed.

  Raises:
    DamagedError: Nobody knows.
  """
  return frozenset(
      step
      for step, health in read(directory).items()
      if health.state == QUARANTINED
  )


class Book:
  """The health of the checkpoints of one run, in memory and on disk.

  Every process is told the same, in the same order; one of them writes. Safe
  to use from several threads.
  """

  def __init__(self, directory: str | os.PathLike[str], *, is_writer: bool):
    """Reads what is there, and mends a damaged file that has a copy.

    Raises:
      DamagedError: Nobody knows what is in quarantine.
    """
    self._directory = os.fspath(directory)
    self._is_writer = is_writer
    self._known, damage = look(directory)
    self._lock = threading.Lock()
    if damage is not None:
      logging.error('%s', damage)
      self._write()

  def of(self, step: int) -> Health:
    """What is known of the checkpoint of a step."""
    return self._known.get(step, Health())

  def in_state(self, state: str, steps: Collection[int]) -> list[int]:
    """Those of the steps that are in a state, in order."""
    return [step for step in sorted(steps) if self.of(step).state == state]

  def forget(self, step: int) -> None:
    """The checkpoint is gone, or another one of the step is a candidate."""
    with self._lock:
      if self._known.pop(step, None) is not None:
        self._write()

  def promote(self, steps: Collection[int]) -> list[int]:
    """Candidates among the steps become healthy; returns which."""
    with self._lock:
      changed = self.in_state(CANDIDATE, steps)
      for step in changed:
        self._known[step] = Health(state=HEALTHY)
      if changed:
        self._write()
    return changed

  def quarantine(self, steps: Collection[int], *, reason: str) -> None:
    """A fault followed these."""
    with self._lock:
      for step in steps:
        self._known[step] = Health(state=QUARANTINED, reason=reason)
      if steps:
        self._write()

  def quarantined(self) -> list[int]:
    """Steps of all that are in quarantine, in order."""
    return self.in_state(QUARANTINED, list(self._known))

  def _write(self) -> None:
    """Replaces the file; a disk that refuses it does not end the run."""
    if self._is_writer:
      try:
        self._replace()
      except OSError:
        logging.exception('The health of checkpoints is not kept for a restart')

  def _replace(self) -> None:
    text = json.dumps(
        {
            str(step): dataclasses.asdict(self._known[step])
            for step in sorted(self._known)
        },
        indent=1,
    )
    # The copy first: killed between the two, the file is whole and older.
    for name in (COPY, FILE):
      path = epath.Path(self._directory) / name
      small_files.replace(path, text, num_folders=0)
