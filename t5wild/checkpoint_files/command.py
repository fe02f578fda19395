# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild checkpoints`: list, verify, mirror, diff, pin, adopt; without JAX."""

import argparse
from collections.abc import Callable, Iterator, Sequence
import os
import sys

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import copying
from t5wild.checkpoint_files import file_hashes
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import listing
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoint_files import verifying

_MOST_NAMED = 20
_HELP = {
    'list': 'what checkpoints a run has, in all its stores',
    'verify': 'read all files, and hold them against the hashes of the save',
    'mirror': 'copy checkpoints to another store, checked',
    'diff': 'say which arrays of two checkpoints differ, and how much',
    'pin': 'let a checkpoint stay, whatever its run keeps',
    'adopt': "go on from another run's checkpoint, or one in quarantine",
}


def main(argv: Sequence[str]) -> int:
  """Runs the command; `argv` without the names of program and command."""
  arguments = _parser().parse_args(argv)
  try:
    return arguments.run(arguments)
  except (
      steps.NotACheckpointError, file_hashes.NoHashesError, health.DamagedError
  ) as error:  # fmt: skip
    _say(str(error), stream=sys.stderr)
    return exit_codes.BAD_CONFIG.code
  except OSError as error:
    _say(
        f'{error}: expected a store that can be read, and written for mirror '
        'and pin; look at its address and permissions',
        stream=sys.stderr,
    )
    return exit_codes.FAILED.code


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild checkpoints',
      description='Looks after the checkpoints of a run; needs no accelerator.',
  )
  verbs = parser.add_subparsers(required=True, metavar='VERB')

  def add(name: str, run: Callable[[argparse.Namespace], int]):
    verb = verbs.add_parser(name, help=_HELP[name], description=_HELP[name])
    verb.set_defaults(run=run)
    return verb

  run_help = 'run directory, or a folder such as checkpoint_1000'
  verb = add('list', _list)
  verb.add_argument('run_dir', help='run directory, or another store of it')
  verb = add('verify', _verify)
  verb.add_argument('path', help=run_help)
  verb.add_argument('--step', type=int, help='only this one; default: all')
  verb.add_argument(
      '--arrays',
      action='store_true',
      help='decode all arrays too (needs TensorStore and the memory of one)',
  )
  verb = add('mirror', _mirror)
  verb.add_argument('path', help=run_help)
  verb.add_argument('target', help='directory to copy to: a folder or a bucket')
  verb.add_argument('--step', type=int, help='default: all good ones')
  verb = add('diff', _diff)
  verb.add_argument('path', help='a checkpoint, or a run: its newest')
  verb.add_argument('other', help='another')
  verb = add('pin', _pin)
  verb.add_argument('path', help=run_help)
  verb.add_argument('--step', type=int, help='which of a run')
  verb.add_argument('--reason', default='', help='is written down')
  verb.add_argument('--remove', action='store_true', help='unpin it')
  verb = add('adopt', _adopt)
  verb.add_argument('path', help='run directory, or another store of it')
  verb.add_argument('--step', type=int, required=True, help='which of them')
  return parser


def _say(text: str, *, stream=None) -> None:
  print(text, file=stream or sys.stdout)


def _first_line(text: str) -> str:
  return text.partition('\n')[0][:200]


def _list(arguments: argparse.Namespace) -> int:
  found = listing.entries(arguments.run_dir)
  damages = listing.damages(arguments.run_dir)
  if not found and not damages:
    _refuse_absent(arguments.run_dir)
    _say(f'{arguments.run_dir} has no complete checkpoint.')
    return exit_codes.DONE.code
  for entry in found:
    notes = [
        entry.health,
        'hashed' if entry.has_hashes else 'no hashes',
        *(['pinned'] if entry.is_pinned else []),
    ]
    reason = f' ({_first_line(entry.reason)})' if entry.reason else ''
    _say(
        f'{entry.step:>10}  {entry.num_bytes / 1e6:>12,.1f} MB  '
        f'{", ".join(notes)}  {entry.store}{reason}'
    )
  damages += [f'{each.path}: {each.problem}' for each in found if each.problem]
  for damage in damages:
    _say(f'DAMAGED: {damage}')
  return (exit_codes.FAILED if damages else exit_codes.DONE).code


def _refuse_absent(path: str) -> None:
  """Refuses what was mistyped: it has no checkpoint, but for another reason.

  Raises:
    steps.NotACheckpointError: It is no folder. A bucket has no folders.
  """
  place = steps.absolute_path(path)
  if not steps.is_bucket(place) and not os.path.isdir(place):
    what = 'is a file' if os.path.exists(place) else 'does not exist'
    raise steps.NotACheckpointError(
        f'{place} {what}, expected a run directory, or another store of a '
        'run: look at its name'
    )


def _chosen(path: str, step: int | None) -> list[str]:
  """The checkpoints that a path and a step mean.

  Raises:
    steps.NotACheckpointError: None.
  """
  path = steps.absolute_path(path)
  saved = steps.complete_steps(path)
  if not saved:
    if step is not None or not steps.is_complete(path):
      steps.state_folder(path)  # says what is there in its place
      raise steps.NotACheckpointError(
          f'{path} is no run directory with a checkpoint of step {step}, '
          'expected one: leave --step out for a checkpoint folder'
      )
    return [path]
  if step is not None and step not in saved:
    raise steps.NotACheckpointError(
        f'{path} has no checkpoint of step {step}, expected one of '
        f'{saved[-8:]}: take one of these'
    )
  chosen = saved if step is None else [step]
  return [steps.get_checkpoint_dir(path, each) for each in chosen]


def _verify(arguments: argparse.Namespace) -> int:
  good = True
  chosen = _chosen(arguments.path, arguments.step)
  is_run = _is_run(arguments, chosen)
  for checkpoint in chosen:
    try:
      found = verifying.verify(checkpoint, with_arrays=arguments.arrays)
    except (steps.NotACheckpointError, OSError):
      if not (is_run and _went_meanwhile(checkpoint)):
        raise
      continue
    if found.problems and is_run and _went_meanwhile(checkpoint):
      continue
    _tell(checkpoint, found)
    good &= not found.problems
  for damage in listing.damages(arguments.path):
    good = False
    _say(f'DAMAGED: {damage}')
  return exit_codes.DONE.code if good else exit_codes.FAILED.code


def _is_run(arguments: argparse.Namespace, chosen: Sequence[str]) -> bool:
  """Whether all checkpoints are meant, and none by its name."""
  own = steps.absolute_path(arguments.path)
  return arguments.step is None and list(chosen) != [own]


def _went_meanwhile(checkpoint: str) -> bool:
  """Whether a run has removed a checkpoint since it was listed; told."""
  if not verifying.has_gone(checkpoint):
    return False
  _say(f'{checkpoint}: is no more there; a run removes what it does not keep')
  return True


def _is_good(checkpoint: str, *, with_arrays: bool) -> bool:
  found = verifying.verify(checkpoint, with_arrays=with_arrays)
  _tell(checkpoint, found)
  return not found.problems


def _tell(checkpoint: str, found: verifying.Verdict) -> None:
  _say(f'{checkpoint}: {found.word} ({found.said})')
  for problem in found.problems[:_MOST_NAMED]:
    _say(f'  {problem}')
  if len(found.problems) > _MOST_NAMED:
    _say(f'  and {len(found.problems) - _MOST_NAMED} more')


def _mirror(arguments: argparse.Namespace) -> int:
  code = exit_codes.DONE.code
  target = steps.absolute_path(arguments.target)
  _refuse_other_target(arguments.path, target)
  chosen = _chosen(arguments.path, arguments.step)
  is_run = _is_run(arguments, chosen)
  source = os.path.dirname(chosen[0])
  known = health.read(source)
  for checkpoint in list(chosen):
    one = known.get(run_dir_lib.checkpoint_step(checkpoint), health.Health())
    if one.state == health.QUARANTINED and arguments.step is None:
      chosen.remove(checkpoint)
      _say(
          f'{checkpoint}: left out, as it is in quarantine '
          f'({_first_line(one.reason)}); --step copies it all the same'
      )
  for checkpoint in chosen:
    name = checkpoint.rstrip('/').rsplit('/', 1)[-1]
    try:
      num_bytes = copying.copy(checkpoint, f'{target}/{name}')
    except (steps.NotACheckpointError, OSError) as error:
      if is_run and _went_meanwhile(checkpoint):
        continue
      _say(f'{checkpoint}: NOT copied: {error}')
      code = exit_codes.FAILED.code
      continue
    if num_bytes:
      what = f'copied to {target}/{name} ({num_bytes / 1e6:,.1f} MB)'
    else:
      what = f'{target}/{name} is a whole copy already'
    _say(f'{checkpoint}: {what}')
    run_ids.leave(target, run_ids.of_store(source))
  for step in health.carry(
      source, target, there=steps.complete_steps(target)
  ):
    _say(f'{target}: step {step} is in quarantine there, too')
  return code


def _refuse_other_target(path: str, target: str) -> None:
  """Refuses to mirror a run to itself, or to where another run's copies lie.

  Raises:
    steps.NotACheckpointError: It would.
  """
  source = steps.absolute_path(path)
  if steps.is_same_place(source, target):
    raise steps.NotACheckpointError(
        f'{target} is {source} itself, expected another place: a copy there '
        'would be none'
    )
  ours, theirs = run_ids.of_store(source), run_ids.of_store(target)
  if ours and theirs and ours != theirs:
    raise steps.NotACheckpointError(
        f'{target} belongs to another run (id {theirs}), expected a place of '
        f'the run {source} (id {ours}), or a new one: mirror to another folder'
    )


def _diff(arguments: argparse.Namespace) -> int:
  one = _chosen(arguments.path, None)[-1]
  other = _chosen(arguments.other, None)[-1]
  # Arrays are compared by the hashes of their saves: these must be true.
  damaged = [each for each in (one, other) if _has_damaged_files(each)]
  if damaged:
    _say(f'not compared: {damaged} damaged, expected whole ones: take copies')
    return exit_codes.FAILED.code
  lines = list(_differences(one, other))
  _say(f'{one}\n{other}')
  for line in lines:
    _say(f'  {line}')
  _say(f'{len(lines)} arrays differ' if lines else 'all have the same bits')
  return exit_codes.FAILED.code if lines else exit_codes.DONE.code


def _has_damaged_files(checkpoint: str) -> bool:
  try:
    damages = file_hashes.verify(checkpoint).damages
  except file_hashes.NoHashesError:
    return False
  for damage in damages:
    _say(f'{checkpoint}: {damage}')
  return bool(damages)


def _differences(one: str, other: str) -> Iterator[str]:
  import numpy as np

  from t5wild.checkpoint_files import stored_arrays  # TensorStore, numpy

  ours, theirs = map(stored_arrays.hashes, (one, other))
  for key in sorted(ours.keys() | theirs.keys()):
    if key not in theirs or key not in ours:
      yield f'{key}: only in the {"first" if key in ours else "second"}'
    elif ours[key][:2] != theirs[key][:2]:
      yield (
          f'{key}: {ours[key][1]}{list(ours[key][0])}, '
          f'{theirs[key][1]}{list(theirs[key][0])}'
      )
    elif ours[key] != theirs[key]:
      a, b = (
          stored_arrays.read(path, key).astype(np.float64)
          for path in (one, other)
      )
      largest = np.max(np.abs(a - b), initial=0.0)
      scale = np.sqrt(np.mean(a**2)) if a.size else 0.0
      yield (
          f'{key}: {int(np.sum(a != b)):,} of {a.size:,} numbers, by '
          f'{largest:.3g} at most (root mean square {scale:.3g})'
      )


def _pin(arguments: argparse.Namespace) -> int:
  chosen = _chosen(arguments.path, arguments.step)
  if len(chosen) > 1:
    raise steps.NotACheckpointError(
        f'{arguments.path} has {len(chosen)} checkpoints, expected one to pin: '
        'add --step'
    )
  (checkpoint,) = chosen
  if arguments.remove:
    pins.unpin(checkpoint)
  elif _is_good(checkpoint, with_arrays=False):
    pins.pin(checkpoint, reason=arguments.reason)
  else:
    _say(
        f'{checkpoint}: NOT pinned: it is damaged, expected one to keep: pin '
        'another, or bring a whole copy of it and pin that'
    )
    return exit_codes.FAILED.code
  _say(f'{checkpoint}: {"unpinned" if arguments.remove else "pinned"}')
  return exit_codes.DONE.code


def _adopt(arguments: argparse.Namespace) -> int:
  (checkpoint,) = _chosen(arguments.path, arguments.step)
  directory = os.path.dirname(checkpoint)
  run_id = run_ids.of_store(directory)
  if run_id:
    run_ids.adopt(checkpoint, run_id)
  if not _is_good(checkpoint, with_arrays=True):
    run_ids.disown(checkpoint)
    _say(
        f'{checkpoint}: NOT adopted: it is damaged, expected a whole one to go '
        'on from: bring a whole copy of it'
    )
    return exit_codes.FAILED.code
  known = health.Book(directory, is_writer=True)
  before = known.of(arguments.step)
  known.forget(arguments.step)
  was = ''
  if before.state == health.QUARANTINED:
    was = f'; it was in quarantine ({_first_line(before.reason)})'
  _say(f'{checkpoint}: adopted, the run may go on from it{was}')
  return exit_codes.DONE.code
