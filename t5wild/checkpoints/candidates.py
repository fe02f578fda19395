# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that a run may begin from, of all its stores, best first."""

from collections.abc import Sequence
import dataclasses

from absl import logging
import jax

from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import run_events
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import integrity
from t5wild.checkpoints import owners
from t5wild.partitioning import distributed

# How the reason begins for which a checkpoint is in quarantine that cannot be
# read: other than after a fault, a run does not begin anew where all are so.
_DAMAGED = 'damaged: '


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
  """A checkpoint to begin from.

  Attributes:
    path: Its folder.
    directory: The store around it; '' for one that a recipe names.
    step: Its step; None for one that a recipe names.
  """

  path: str
  directory: str = ''
  step: int | None = None

  @property
  def is_own(self) -> bool:
    """Whether the run itself saved it."""
    return self.step is not None


def find(
    cfg: configs.CheckpointConfig, model_dir: str | None
) -> list[Candidate]:
  """Returns what the run may begin from, alike on all processes.

  Its own checkpoints, the newest first, of all stores; else the one that the
  recipe names. Process 0 looks, since a file system may show new folders to
  others late.

  Raises:
    steps.NotACheckpointError: The recipe's path names none.
  """
  found = error = None
  if distributed.process_index() == 0:
    try:
      found = [dataclasses.asdict(one) for one in _look(cfg, model_dir)]
    except (
        steps.NotACheckpointError, owners.NotOursError, health.DamagedError
    ) as told:  # fmt: skip
      error = str(told)
  found, error = distributed.meet('first checkpoint', value=[found, error])[0]
  if error is not None:
    raise steps.NotACheckpointError(error)
  return [Candidate(**fields) for fields in found]


def _look(
    cfg: configs.CheckpointConfig, model_dir: str | None
) -> list[Candidate]:
  if model_dir is not None:
    directories = stores(cfg, model_dir)
    own = of_stores(directories)
    _tell_damaged_health(directories, model_dir=model_dir)
    damaged = _tell_broken(directories, model_dir=model_dir)
    if own:
      return own
    if damaged:
      raise none_is_good(damaged)
  restore = cfg.restore
  paths = [] if restore is None else restore.checkpoint_paths()
  if len(paths) > 1:
    raise steps.NotACheckpointError(
        f'RestoreCheckpointConfig names {len(paths)} checkpoints '
        f'({paths[0]} ... {paths[-1]}), expected one to train from: set mode '
        "to 'specific' and path to one of them"
    )
  return [Candidate(path=path) for path in paths]


def _tell_damaged_health(directories: Sequence[str], *, model_dir: str) -> None:
  for directory in directories:
    try:
      damage = health.look(directory)[1]
    except OSError:
      continue  # passed over, and told
    if damage is not None:
      run_events.add(model_dir, 'damaged', step=0, text=damage)


def _tell_broken(
    directories: Sequence[str], *, model_dir: str
) -> list[Candidate]:
  """Puts emptied folders in quarantine, so that a save takes their place.

  Returns:
    These, and those that were found damaged at an earlier start.
  """
  found = []
  for directory in directories:
    try:
      broken = steps.broken_steps(directory)
      whole = steps.complete_steps(directory)
    except OSError:
      continue  # passed over, and told
    known = health.read(directory)
    put_away = {
        step for step in (*broken, *whole)
        if known.get(step, health.Health()).reason.startswith(_DAMAGED)
    }  # fmt: skip
    for step in sorted({*broken, *put_away}):
      one = Candidate(
          path=steps.get_checkpoint_dir(directory, step),
          directory=directory,
          step=step,
      )
      found.append(one)
      if step not in put_away:
        error = steps.NotACheckpointError(
            f'it has lost its {steps.STATE_ITEM}/ and {steps.COMMIT_MARKER}, '
            'expected a whole checkpoint: copy it again, or remove the folder'
        )
        reject(one, error, model_dir=model_dir)
  return found


def stores(cfg: configs.CheckpointConfig, model_dir: str) -> list[str]:
  """Returns where a run keeps checkpoints, the fastest to read first."""
  tiers = () if cfg.save is None else cfg.save.tiers
  for tier in tiers:
    owners.check(tier.directory, model_dir=model_dir)
  return [
      *(steps.absolute_path(t.directory) for t in tiers if t.is_fast),
      steps.absolute_path(model_dir),
      *(steps.absolute_path(t.directory) for t in tiers if not t.is_fast),
  ]


def of_stores(directories: Sequence[str]) -> list[Candidate]:
  """Returns the checkpoints of stores, newest first; of one step by store.

  A store that cannot be read is told, and has none.

  Raises:
    health.DamagedError: Nobody knows what of a store is in quarantine.
  """
  found = []
  for rank, directory in enumerate(directories):
    try:
      saved = steps.all_steps(directory)
    except OSError as error:
      logging.error('%s is passed over, as it cannot be read: %s',
                    directory, error)  # fmt: skip
      continue
    found += [(-step, rank, directory) for step in saved]
  return [
      Candidate(
          path=steps.get_checkpoint_dir(directory, -negative),
          directory=directory,
          step=-negative,
      )
      for negative, _, directory in sorted(found)
  ]


def reject(candidate: Candidate, error: Exception, *, model_dir: str) -> None:
  """Puts a damaged checkpoint in quarantine, loudly; all processes call it."""
  if jax.process_index() != 0:
    return
  text = f'{candidate.path} is not taken: {error}'
  logging.error('DAMAGED CHECKPOINT: %s', text)
  run_events.add(model_dir, 'damaged', step=candidate.step, text=text)
  try:
    book = health.Book(candidate.directory, is_writer=True)
    book.quarantine(
        [candidate.step], reason=f'{_DAMAGED}{error}'[:1000]
    )
  except OSError:
    logging.exception('It could not be put in quarantine')


def accept(
    candidate: Candidate, *, model_dir: str | None, refused: Sequence[Candidate]
) -> None:
  """Tells what of a checkpoint is gone, and that others were refused."""
  if jax.process_index() != 0 or not candidate.is_own:
    return
  gone = integrity.tell_missing(candidate.path)
  if gone:
    run_events.add(
        model_dir, 'incomplete', step=candidate.step,
        text=f'{candidate.path} lacks {gone}; it is taken all the same, as all '
        'its arrays have their hashes: mend it, or keep a copy',
    )  # fmt: skip
  if refused:
    run_events.add(
        model_dir, 'fell_back', step=candidate.step,
        text=f'{candidate.path} is taken in place of '
        f'{[each.path for each in refused]}',
    )  # fmt: skip


def none_is_good(refused: Sequence[Candidate]) -> steps.NotACheckpointError:
  """Returns the error of a run none of whose checkpoints can be read."""
  names = ', '.join(candidate.path for candidate in refused)
  return steps.NotACheckpointError(
      f'all {len(refused)} checkpoints of this run are damaged ({names}; each '
      'is told above, or in events.jsonl), expected one whole: copy one to '
      'MODEL_DIR from elsewhere, or train in '
      'another MODEL_DIR'
  )
