# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that a run may begin from, of all its stores, best first."""

from collections.abc import Mapping, Sequence
import dataclasses

from absl import logging
import jax

from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import run_events
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import integrity
from t5wild.checkpoints import owners
from t5wild.partitioning import distributed

_MOST_CHARACTERS = 1000  # of a reason
_MOST_TOLD = 200


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
    shelves = _shelves(stores(cfg, model_dir), model_dir=model_dir)
    own = _in_order(shelves)
    refused = _put_away(shelves, model_dir=model_dir)
    if own:
      _tell_passed_over(shelves, own[0], model_dir=model_dir)
      return own
    if refused:
      raise none_is_good(refused)
  restore = cfg.restore
  paths = [] if restore is None else restore.checkpoint_paths()
  if len(paths) > 1:
    raise steps.NotACheckpointError(
        f'RestoreCheckpointConfig names {len(paths)} checkpoints '
        f'({paths[0]} ... {paths[-1]}), expected one to train from: set mode '
        "to 'specific' and path to one of them"
    )
  return [Candidate(path=path) for path in paths]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Shelf:
  """What lies in one store: steps, and what is known of each."""

  directory: str
  complete: Sequence[int]
  broken: Sequence[int]
  known: Mapping[int, health.Health]

  def health(self, step: int) -> health.Health:
    return self.known.get(step, health.Health())

  def candidate(self, step: int) -> Candidate:
    return Candidate(
        path=steps.get_checkpoint_dir(self.directory, step),
        directory=self.directory,
        step=step,
    )


def _shelves(directories: Sequence[str], *, model_dir: str) -> list[_Shelf]:
  """Looks at each store once; one that cannot be read is told, and left out.

  Raises:
    health.DamagedError: Nobody knows what of a store is in quarantine.
  """
  found = []
  for directory in directories:
    try:
      known, damage = health.look(directory)
      complete = steps.complete_steps(directory)
      broken = steps.broken_steps(directory, complete=complete)
    except OSError as error:
      logging.error('%s is passed over, as it cannot be read: %s',
                    directory, error)  # fmt: skip
      continue
    if damage is not None:
      run_events.add(model_dir, 'damaged', step=0, text=damage)
    found.append(
        _Shelf(
            directory=directory, complete=complete, broken=broken, known=known
        )
    )
  return found


def _in_order(shelves: Sequence[_Shelf]) -> list[Candidate]:
  """Those out of quarantine, the newest first; of one step by store."""
  found = [
      (-step, rank)
      for rank, shelf in enumerate(shelves)
      for step in shelf.complete
      if shelf.health(step).state != health.QUARANTINED
  ]
  return [shelves[rank].candidate(-step) for step, rank in sorted(found)]


def _put_away(shelves: Sequence[_Shelf], *, model_dir: str) -> list[Candidate]:
  """Puts emptied folders in quarantine, so that a save takes their place.

  Returns:
    These, and those that an earlier start refused: other than after a fault, a
    run does not begin anew where all are so.
  """
  found = []
  for shelf in shelves:
    before = {
        step
        for step in (*shelf.broken, *shelf.complete)
        if shelf.health(step).is_of_the_copy
    }
    for step in sorted({*shelf.broken, *before}):
      one = shelf.candidate(step)
      found.append(one)
      if step not in before:
        error = steps.NotACheckpointError(
            f'it has lost its {steps.STATE_ITEM}/ and {steps.COMMIT_MARKER}, '
            'expected a whole checkpoint: copy it again, or remove the folder'
        )
        reject(one, error, model_dir=model_dir)
  return found


def _tell_passed_over(
    shelves: Sequence[_Shelf], first: Candidate, *, model_dir: str
) -> None:
  """Tells which newer checkpoints are not taken, and why."""
  told = []
  for shelf in shelves:
    for step in (*shelf.broken, *shelf.complete):
      known = shelf.health(step)
      if step > first.step and known.state == health.QUARANTINED:
        reason = known.reason[:_MOST_TOLD] or 'nobody wrote down why'
        told.append(f'{shelf.candidate(step).path} ({reason})')
  if told:
    run_events.add(
        model_dir,
        'passed_over',
        step=first.step,
        text=f'{first.path} is the newest to go on from: in quarantine '
        f'{"is" if len(told) == 1 else "are"} {"; ".join(told)}',
    )


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


def check_is_ours(candidate: Candidate, *, model_dir: str | None) -> None:
  """Refuses a checkpoint of the run's own that another run saved.

  Every process calls it alike.

  Raises:
    run_ids.ForeignError: It is one.
    steps.NotACheckpointError: It does not say whose it is any more.
  """
  if not candidate.is_own:
    return
  problem = kind = None
  if distributed.process_index() == 0:
    try:
      run_ids.check(candidate.path, run_ids.of_directory(model_dir))
    except steps.NotACheckpointError as error:
      problem = str(error)
      kind = _kind_of(error)
  problem, kind = distributed.meet(
      'run of the checkpoint', value=[problem, kind]
  )[0]
  if problem is not None:
    raise _ERRORS[kind](problem)


_ERRORS = {
    health.FOREIGN: run_ids.ForeignError,
    health.DAMAGED: steps.NotACheckpointError,
}


def _kind_of(error: Exception) -> str:
  is_foreign = isinstance(error, run_ids.ForeignError)
  return health.FOREIGN if is_foreign else health.DAMAGED


def reject(candidate: Candidate, error: Exception, *, model_dir: str) -> None:
  """Puts a checkpoint in quarantine, loudly; all processes call it."""
  if jax.process_index() != 0:
    return
  kind = _kind_of(error)
  name = kind.rstrip(': ')
  text = f'{candidate.path} is not taken: {error}'
  logging.error('%s CHECKPOINT: %s', name.upper(), text)
  run_events.add(model_dir, name, step=candidate.step, text=text)
  try:
    book = health.Book(candidate.directory, is_writer=True)
    book.quarantine(
        [candidate.step], reason=f'{kind}{error}'[:_MOST_CHARACTERS]
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
  """Returns the error of a run none of whose checkpoints can be taken."""
  names = ', '.join(candidate.path for candidate in refused)
  return steps.NotACheckpointError(
      f'all {len(refused)} checkpoints of this run are damaged, or of another '
      f'run ({names}; each is told above, or in events.jsonl), expected one '
      'whole of its own: copy one to MODEL_DIR from elsewhere, or train in '
      'another MODEL_DIR; one that was copied over a refused one, or is of '
      'another run, is taken after t5wild checkpoints adopt MODEL_DIR --step N'
  )
