# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The command `t5wild supervise [flags] -- COMMAND ...`."""

import argparse
from collections.abc import Sequence
import contextlib
import os
import re
import sys

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.launch import bounds as bounds_lib
from t5wild.launch import host_flags
from t5wild.launch import job as job_lib
from t5wild.launch import local_group
from t5wild.launch import node_ledger
from t5wild.launch import places as places_lib
from t5wild.launch import restarts
from t5wild.launch import run_lock
from t5wild.launch import supervisor as supervisor_lib
from t5wild.vitals import alerts as alerts_lib

_ABOUT = """\
Starts a run, watches it, and starts it again when that is worth it.

  t5wild supervise -- t5wild train --gin_file=my_run.gin --gin.MODEL_DIR=runs/a

An exit is told by its code and its last lines: what a restart would repeat (a
wrong recipe, NaN, a full disk) is not restarted, and neither is a crash loop.
SIGTERM and SIGUSR1 to the supervisor stop the run in good order.
"""
_RUN_DIR_FLAG = re.compile(r'--(?:gin\.MODEL_DIR|model_dir)=(.+)')


def main(argv: Sequence[str] = ()) -> int:
  """Supervises a command; returns its exit code, or why it was given up."""
  flags, command = _split(argv)
  try:
    arguments = _parser().parse_args(flags)
  except SystemExit as error:  # argparse has told why
    return error.code
  try:
    job, policy, bounds, targets = _checked(arguments, command)
  except ValueError as error:
    _say(f't5wild supervise: {error}')
    return exit_codes.BAD_CONFIG.code
  try:
    with run_lock.held(
        job.run_dir,
        label=job.label,
        wait_seconds=bounds.stop,
        say=lambda text: _say(f'supervisor: {text}'),
    ) as lock:
      return _supervise(arguments, job, policy, bounds, targets, lock)
  except (run_lock.RunIsTakenError, OSError) as error:
    _say(f't5wild supervise: {error}')
    return exit_codes.BAD_CONFIG.code


def _supervise(arguments, job, policy, bounds, targets, lock) -> int:
  for line in node_ledger.warnings_here(arguments.node_ledger):
    _say(f'supervisor: {line}')
  alerts = alerts_lib.Alerts(targets, run=job.run_dir.path)
  try:
    return supervisor_lib.Supervisor(
        job,
        policy=policy,
        bounds=bounds,
        say=lambda text: _say('\n'.join(
            f'supervisor: {line}' for line in text.splitlines()
        )),
        shown=sys.stderr.buffer,
        away=supervisor_lib.Away(
            notify=alerts.send,
            alive_seconds=arguments.alive_seconds,
            ledger=node_ledger.NodeLedger(arguments.node_ledger),
        ),
        lock=lock,
    ).run()
  finally:
    alerts.close()


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
  """The flags before `--` and the command after it."""
  argv = list(argv)
  if '--' not in argv:
    return argv, []
  place = argv.index('--')
  return argv[:place], argv[place + 1 :]


def _checked(arguments, command):
  """What the flags ask for.

  Raises:
    ValueError: For what cannot work; nothing is written yet.
  """
  if not command:
    raise ValueError(
        'there is no command to run: expected it after `--`. Write t5wild '
        'supervise -- t5wild train --gin_file=... --gin.MODEL_DIR=...'
    )
  if arguments.processes < 1:
    raise ValueError(
        f'--processes is {arguments.processes}, expected 1 or more: the number '
        'of processes on this host'
    )
  port = arguments.coordinator_port
  if port is not None and not 0 < port < 65536:
    raise ValueError(
        f'--coordinator_port is {port}, expected 1 to 65535: leave it out for '
        'a free one'
    )
  environment = dict(os.environ)
  targets = alerts_lib.Targets(
      webhook=alerts_lib.webhook_from(environment),
      mail_command=arguments.mail_command,
      file=arguments.alert_file,
  )
  hosts = host_flags.hosts_of(arguments, environment)
  job = job_lib.Job(
      command=command,
      num_processes=arguments.processes,
      run_dir=_run_dir(arguments.run_dir, command),
      environment=alerts_lib.without_secrets(environment),
      label=arguments.host_name or run_lock.label_from(environment),
      hosts=hosts,
      coordinator_port=port,
      spares=arguments.spares,
      left_out=arguments.leave_out,
      leave_out_after=arguments.leave_out_after,
  )
  _check_places(job)
  policy = restarts.Policy(
      crash_loop=arguments.crash_loop,
      max_without_progress=arguments.max_without_progress,
      max_restarts=arguments.max_restarts,
      first_delay_seconds=arguments.first_delay_seconds,
      max_delay_seconds=arguments.max_delay_seconds,
  )
  bounds = bounds_lib.Bounds(
      grace=arguments.grace_seconds,
      stop=arguments.stop_seconds,
      finish=arguments.finish_seconds,
      silent=arguments.silent_seconds,
      # Only training of ours gives signs of life.
      start=(
          arguments.start_seconds if local_group.gives_signs(command) else None
      ),
      wall_time=(
          arguments.wall_time_seconds
          or bounds_lib.slurm_seconds(environment, stop=arguments.stop_seconds)
      ),
  )
  return job, policy, bounds, targets


def _check_places(job: job_lib.Job) -> None:
  """Refuses spares and places that are not there."""
  if job.leave_out_after < 2:
    raise ValueError(
        f'--leave_out_after is {job.leave_out_after}, expected at least 2: one '
        'process that was killed speaks against no place'
    )
  if job.spares < 0 or job.num_places <= job.spares:
    raise ValueError(
        f'--spares is {job.spares} of {job.num_places} place(s), expected 0 or '
        'more and some place beside them: with --processes=1 spares are among '
        'the devices of this machine, otherwise they come on top of --processes'
    )
  places_lib.Places(
      planned=job.num_places - job.spares, spares=job.spares,
      left_out=job.left_out,
  )  # fmt: skip


def _run_dir(
    given: str | None, command: Sequence[str]
) -> run_dir_lib.RunDir:
  """Where signs, logs and events go: as given, or the command's MODEL_DIR."""
  found = [m.group(1) for m in map(_RUN_DIR_FLAG.match, command) if m]
  path = given or (found[-1].strip('\'"') if found else '')
  if not path:
    raise ValueError(
        'the command does not say where its run lies: expected '
        '--gin.MODEL_DIR=FOLDER in it, or --run_dir=FOLDER before the `--`. '
        'Give the folder that the recipe sets as MODEL_DIR.'
    )
  run_dir = run_dir_lib.RunDir(path)
  if run_dir.is_bucket:
    raise ValueError(
        f'the run lies in {path}, a bucket: expected a folder for signs of '
        'life and logs. Give a local or shared one: --run_dir=FOLDER.'
    )
  why = run_dir_lib.why_unwritable(path)
  if why:
    raise ValueError(
        f'the run directory is {path!r}, but {why}: expected a folder this '
        'user may write to. Correct it, or its permissions.'
    )
  # The processes may run elsewhere; they are told where it lies.
  return run_dir_lib.RunDir(os.path.abspath(path))


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild supervise',
      usage='t5wild supervise [flags] -- COMMAND ...',
      description=_ABOUT,
      formatter_class=argparse.RawDescriptionHelpFormatter,
      allow_abbrev=False,
  )
  policy, bounds = restarts.Policy(), bounds_lib.Bounds()
  add = parser.add_argument
  add('--processes', type=int, default=1, metavar='N',
      help='processes on this host; with 2 or more the command gets the '
      "coordinator's flags, on a fresh port each time")  # fmt: skip
  add('--spares', type=int, default=0, metavar='N',
      help='processes (devices, with one process) that take over from a lost '
      'one; without, the run goes on with fewer, on the same batches')
  add('--leave_out', type=_numbers, default=(), metavar='PLACE,...',
      help='places, counted from 0, that nothing is started in')
  add('--leave_out_after', type=int, default=3, metavar='N',
      help='kills or hangs of one process in a row without a newer checkpoint: '
      'its place is left out (default: 3); a device that fails is at once')
  add('--run_dir', metavar='FOLDER',
      help="signs of life, logs, events; default: the command's MODEL_DIR")
  add('--coordinator_port', type=int, metavar='PORT',
      help='of the first attempt; default: a free one')  # fmt: skip
  for name, default, text in (
      ('crash_loop', policy.crash_loop,
       'same error at the same step so often in a row: stop'),
      ('max_without_progress', policy.max_without_progress,
       'failures in a row without a newer checkpoint: stop'),
      ('max_restarts', None, 'in all; default: any number'),
  ):  # fmt: skip
    add(f'--{name}', type=int, default=default, metavar='N',
        help=_help(text, default))  # fmt: skip
  for name, default, text in (
      ('first_delay', policy.first_delay_seconds,
       'before the second restart in a row; doubles'),
      ('max_delay', policy.max_delay_seconds, 'longest such delay'),
      ('grace', bounds.grace, 'for the others to leave after one has failed'),
      ('stop', bounds.stop, 'for all to save and leave when told to stop'),
      ('finish', bounds.finish, 'for the others to leave when one is done'),
      ('silent', bounds.silent, 'without a sign of life: hung'),
      ('start', bounds.start, 'until the first sign of life'),
      ('wall_time', None,
       "of all; stops in good order before it is up; default: SLURM's"),
      ('alive', None, 'between alerts that it is still training'),
  ):  # fmt: skip
    add(f'--{name}_seconds', type=float, default=default, metavar='S',
        help=_help(text, default))  # fmt: skip
  add('--mail_command', help='alerts go to its standard input')
  add('--alert_file', metavar='FILE', help='alerts are appended to it')
  add('--node_ledger', metavar='FILE', default=node_ledger.default_path(),
      help='which hosts failed how, across runs; see t5wild nodes')  # fmt: skip
  host_flags.add_to(parser)
  parser.epilog = (
      f'Alerts go to a webhook, too, where {alerts_lib.WEBHOOK_VARIABLE} holds '
      f'its address or {alerts_lib.WEBHOOK_FILE_VARIABLE} names a file that '
      'does.'
  )
  return parser


def _numbers(text: str) -> list[int]:
  return [int(part) for part in text.split(',') if part.strip()]


def _help(text: str, default) -> str:
  return text if default is None else f'{text} (default: {default:g})'


def _say(text: str) -> None:
  # Who read it may be gone (a pipe, a terminal), or its disk full: the run goes
  # on, and its events hold the same.
  with contextlib.suppress(OSError):
    print(text, file=sys.stderr, flush=True)  # noqa: T201 -- the product
