# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Remembers which hosts and devices failed how, across runs.

One file of records, appended to by every supervisor; `t5wild nodes` reads it
and proposes what to leave out.
"""

import argparse
import collections
from collections.abc import Iterable, Sequence
import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
import time

from t5wild import exit_codes
from t5wild.launch import failures
from t5wild.vitals import records

_PREFIX = 'node/'
# What may be the machine's fault, and after how many of them it is proposed to
# leave it out: a failing device says so itself, a hang has many causes.
LIMITS = {
    failures.DEVICE.name: 2,
    failures.HANG.name: 3,
    failures.OUT_OF_MEMORY.name: 5,
    failures.KILLED.name: 5,
}
_PCI_ADDRESS = re.compile(r'([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})')
_SERIAL = re.compile(r'device \d+ of process [^)]*, serial ([^)]+)\)')
_QUERY_SECONDS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Proposal:
  """A host or a device that failed too often.

  Attributes:
    name: the host, or `HOST device SERIAL`.
    kind: of the failures.
    number: of them.
    newest: when the newest was, seconds since 1970.
  """

  name: str
  kind: str
  number: int
  newest: float


def default_path() -> str:
  """A file of this user's, on this machine."""
  base = os.environ.get('XDG_STATE_HOME') or os.path.expanduser(
      '~/.local/state'
  )
  return os.path.join(base, 't5wild', 'node_ledger.jsonl')


class NodeLedger:
  """Appends to the file; a file that cannot be written is told once."""

  def __init__(self, path: str):
    """Names the file; writes nothing yet."""
    self._path = path

  def add(self, failure: failures.Failure, *, run: str) -> str:
    """Notes a failure on this host, if it may be the host's fault.

    Returns:
      What went wrong with the file itself, or ''.
    """
    if failure.kind.name not in LIMITS:
      return ''
    text = json.dumps({
        'host': socket.gethostname(),
        'device': serial_told(failure.line) or device_serial(failure.line),
        'run': run,
        'line': failure.line,
    })
    try:
      writer = records.RecordWriter(self._path)
    except OSError as error:
      return f'the node ledger {self._path} cannot be written: {error}'
    writer.write([
        records.Record(
            0, time.time(), failure.process, _PREFIX + failure.kind.name,
            failure.code, 'exit_code', text,
        )  # fmt: skip
    ])
    writer.close()
    return ''


def serial_told(line: str) -> str:
  """The serial of a device that a line names with it; '' if it does not."""
  found = _SERIAL.search(line)
  return found.group(1) if found else ''


def device_serial(line: str) -> str:
  """Serial of the GPU whose PCI address a line names; '' if it names none."""
  found = _PCI_ADDRESS.search(line)
  if found is None:
    return ''
  try:
    told = subprocess.run(
        ['nvidia-smi', '--query-gpu=pci.bus_id,serial,uuid',
         '--format=csv,noheader'],
        capture_output=True, text=True, timeout=_QUERY_SECONDS, check=True,
    ).stdout  # fmt: skip
  except (OSError, subprocess.SubprocessError):
    return found.group(1)
  return serial_in(told, found.group(1))


def serial_in(table: str, address: str) -> str:
  """The serial beside a PCI address in nvidia-smi's table, else the UUID."""
  short = address.lower().split(':', 1)[1]
  for row in table.splitlines():
    bus, serial, uuid = (cell.strip() for cell in row.split(','))
    if short in bus.lower():
      return uuid if serial in ('', '0', '[N/A]') else serial
  return address


def proposals(found: Iterable[records.Record]) -> list[Proposal]:
  """Hosts and devices to leave out, the worst first."""
  counts: collections.Counter[tuple[str, str]] = collections.Counter()
  newest: dict[tuple[str, str], float] = {}
  for record in found:
    kind = record.name.removeprefix(_PREFIX)
    try:
      told = json.loads(record.text)
      host, device = told['host'], told['device']
    except (ValueError, KeyError, TypeError):
      continue
    names = [host] + ([f'{host} device {device}'] if device else [])
    for name in names:
      counts[name, kind] += 1
      newest[name, kind] = max(record.seconds, newest.get((name, kind), 0.0))
  return [
      Proposal(name=name, kind=kind, number=number, newest=newest[name, kind])
      for (name, kind), number in counts.most_common()
      if number >= LIMITS.get(kind, sys.maxsize)
  ]


def warnings_here(path: str) -> list[str]:
  """What the file proposes to leave out of this host, for a person."""
  if not os.path.exists(path):
    return []
  host = socket.gethostname()
  return [
      f'{one.name} has failed before: {one.number} times {one.kind}, as '
      f'{path} has it. Have it tested, or leave it out (--leave_out).'
      for one in proposals(records.read_records(path))
      if one.name == host or one.name.startswith(f'{host} ')
  ]


def main(argv: Sequence[str] = ()) -> int:
  """The command `t5wild nodes`: what failed where, and what to leave out."""
  parser = argparse.ArgumentParser(prog='t5wild nodes', description=__doc__)
  parser.add_argument(
      '--node_ledger', metavar='FILE', default=default_path(),
      help='the file that t5wild supervise was given',
  )  # fmt: skip
  arguments = parser.parse_args(list(argv))
  if not os.path.exists(arguments.node_ledger):
    _print(
        f'{arguments.node_ledger} is not there: nothing has failed on a host '
        'yet, or t5wild supervise was given another --node_ledger.'
    )
    return exit_codes.DONE.code
  found = list(records.read_records(arguments.node_ledger))
  for record in found:
    when = time.strftime('%F %T', time.localtime(record.seconds))
    _print(f'{when}  {record.name.removeprefix(_PREFIX):<14} {record.text}')
  proposed = proposals(found)
  _print('\nLeave out:' if proposed else '\nNothing failed often enough to '
         'leave it out.')  # fmt: skip
  for one in proposed:
    _print(f'  {one.name}: {one.number} times {one.kind}')
  return exit_codes.DONE.code


def _print(text: str) -> None:
  print(text)  # noqa: T201 -- the product
