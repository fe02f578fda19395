# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags of `t5wild supervise` for runs over several hosts."""

import argparse
from collections.abc import Mapping
import re
import socket

from t5wild.launch import job as job_lib

_NAME = re.compile(r'[\w.-]+\Z')


def add_to(parser: argparse.ArgumentParser) -> None:
  """Adds them."""
  add = parser.add_argument_group(
      'several hosts',
      'One supervisor a host, all with the same command and one shared '
      'MODEL_DIR (or --run_dir), where they agree on each attempt: who takes '
      'part, and where process 0 listens. Supervisors beyond --hosts are '
      'spares.',
  ).add_argument
  add('--hosts', type=int, metavar='N',
      help='hosts of the run when all is well')  # fmt: skip
  add('--min_hosts', type=int, default=1, metavar='N',
      help='with fewer the run ends (default: 1)')  # fmt: skip
  add('--host_name', metavar='NAME',
      help="this host's among those of the run; default: its own")
  add('--host_address', metavar='ADDRESS',
      help='where the others reach this host; default: that of its name')
  add('--host_silent_seconds', type=float, default=60.0, metavar='S',
      help='without a sign of its supervisor a host is lost (default: 60)')
  add('--host_gather_seconds', type=float, default=300.0, metavar='S',
      help='hosts that are missing are waited for (default: 300)')


def hosts_of(
    arguments: argparse.Namespace, environment: Mapping[str, str]
) -> job_lib.Hosts | None:
  """What the flags say; None where this supervisor decides alone.

  Raises:
    ValueError: for what cannot work.
  """
  if arguments.hosts is None:
    for name in ('min_hosts', 'host_name', 'host_address'):
      given = getattr(arguments, name)
      if given not in (None, 1):
        raise ValueError(
            f'--{name} is {given!r} without --hosts, expected --hosts=N as '
            'well: how many hosts the run has'
        )
    return None
  if arguments.hosts < 1:
    raise ValueError(
        f'--hosts is {arguments.hosts}, expected 1 or more: leave it out where '
        'one supervisor starts all processes'
    )
  if arguments.spares or arguments.leave_out:
    raise ValueError(
        f'--hosts is {arguments.hosts} with --spares={arguments.spares} and '
        f'--leave_out={list(arguments.leave_out)}, expected neither: with '
        'several hosts a spare is a further host (start a supervisor there), '
        'and one to be left out has none'
    )
  name = arguments.host_name
  if name is not None and not _NAME.match(name):
    raise ValueError(
        f'--host_name is {name!r}, expected letters, digits, `.`, `_` and `-`: '
        'it names a file'
    )
  if environment.get('SLURM_LOCALID', '0') != '0':
    raise ValueError(
        f'SLURM_LOCALID is {environment["SLURM_LOCALID"]}: expected one '
        'supervisor on each host with --hosts. Start them with '
        '--ntasks-per-node=1, and give --processes what a host is to run.'
    )
  return job_lib.Hosts(
      planned=arguments.hosts,
      least=arguments.min_hosts,
      address=arguments.host_address or own_address(),
      silent_seconds=arguments.host_silent_seconds,
      gather_seconds=arguments.host_gather_seconds,
  )


def own_address() -> str:
  """This machine's address as others see it, or else its name."""
  name = socket.gethostname()
  try:
    found = socket.getaddrinfo(name, None, socket.AF_INET)
  except OSError:
    return name
  addresses = [one[4][0] for one in found]
  return next((a for a in addresses if not a.startswith('127.')), name)
