# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which device computed something else than the others: by comparing sums.

Pure: every process sees the same sums and comes to the same verdict, so none
has to be told.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import subprocess

# First words of what a process says before it ends; a supervisor looks for it.
WORDS = 'SILENT CORRUPTION'
_MAX_NAMES = 4
_QUERY_SECONDS = 10
# One sum of an array on one device: of its bits, and of its squares.
Sum = tuple[int, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
  """One device of the run.

  Attributes:
    name: as JAX prints it.
    process: index of the process that holds it.
    local: its place among the devices of that process.
    host: name of its machine; '' where not known yet.
    serial: or UUID; '' where it has none.
  """

  name: str
  process: int
  local: int
  host: str = ''
  serial: str = ''

  def __str__(self) -> str:
    """One phrase for a person, and for the supervisor."""
    serial = f', serial {self.serial}' if self.serial else ''
    host = f' on {self.host}' if self.host else ''
    return (
        f'device {self.local} of process {self.process}{host} ({self.name}'
        f'{serial})'
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
  """Devices that do not agree.

  Attributes:
    what: was compared, for a person.
    wrong: rows of the devices that differ from a majority.
    suspects: rows of devices among which no majority tells who is wrong.
    arrays: names of the arrays that differ.
  """

  what: str
  wrong: tuple[int, ...] = ()
  suspects: tuple[int, ...] = ()
  arrays: tuple[str, ...] = ()

  def named(self) -> tuple[int, ...]:
    """The rows to name: those surely wrong, else the suspects."""
    return self.wrong or self.suspects


def compare(
    sums: Mapping[str, Sequence[Sum]],
    groups: Mapping[str, Sequence[Sequence[int]]],
    *,
    what: str,
    tolerance: float = 0.0,
) -> Finding | None:
  """Compares devices that should hold the same; None where all agree.

  Args:
    sums: name of an array -> its sums by row (device).
    groups: name of an array -> groups of rows that should be equal.
    what: is compared, for a person.
    tolerance: relative, of the squares' sum, where bits may differ; 0: bits.
  """
  wrong: set[int] = set()
  suspects: set[int] = set()
  arrays = []
  for name, of_array in sums.items():
    found = [_odd_ones(of_array, g, tolerance) for g in groups[name]]
    if any(sure or unsure for sure, unsure in found):
      arrays.append(name)
    for sure, unsure in found:
      wrong.update(sure)
      suspects.update(unsure)
  if not arrays:
    return None
  return Finding(
      what=what,
      wrong=tuple(sorted(wrong)),
      suspects=tuple(sorted(suspects - wrong)),
      arrays=tuple(arrays),
  )


def compare_runs(
    first: Mapping[str, Sequence[Sum]],
    second: Mapping[str, Sequence[Sum]],
    *,
    what: str,
    tolerance: float = 0.0,
) -> Finding | None:
  """Compares two runs of one computation, device by device."""
  wrong: set[int] = set()
  arrays = []
  for name, ours in first.items():
    rows = [
        row
        for row, (a, b) in enumerate(zip(ours, second[name], strict=True))
        if not _same(a, b, tolerance)
    ]
    if rows:
      arrays.append(name)
      wrong.update(rows)
  if not arrays:
    return None
  return Finding(
      what=what, wrong=tuple(sorted(wrong)), arrays=tuple(arrays)
  )


def _odd_ones(
    sums: Sequence[Sum], group: Sequence[int], tolerance: float
) -> tuple[list[int], list[int]]:
  """(rows that differ from a majority, rows without one), of one group."""
  classes: list[list[int]] = []
  for row in group:
    for one in classes:
      if _same(sums[row], sums[one[0]], tolerance):
        one.append(row)
        break
    else:
      classes.append([row])
  if len(classes) < 2:
    return [], []
  largest = max(classes, key=len)
  if 2 * len(largest) <= len(group):
    return [], list(group)
  return [row for row in group if row not in largest], []


def _same(a: Sum, b: Sum, tolerance: float) -> bool:
  if a[0] == b[0]:
    return True
  if not tolerance:
    return False
  return math.isclose(a[1], b[1], rel_tol=tolerance)


def num_with_replicas(groups: Mapping[str, Sequence[Sequence[int]]]) -> int:
  """How many arrays lie on more than one device."""
  return sum(any(len(g) > 1 for g in of) for of in groups.values())


def message(
    finding: Finding,
    devices: Sequence[Device],
    *,
    step: int,
    agreed_step: int,
    quarantined: Sequence[int],
) -> str:
  """What a person and a supervisor are told; its first line names devices."""
  named = [str(devices[row]) for row in finding.named()]
  if finding.wrong:
    who = ' and '.join(named)
  else:
    who = f'one of {" and ".join(named)} (no majority tells which)'
  arrays = ', '.join(finding.arrays[:_MAX_NAMES])
  if len(finding.arrays) > _MAX_NAMES:
    arrays += f' and {len(finding.arrays) - _MAX_NAMES} more'
  kept = (
      f'checkpoints {list(quarantined)} are in quarantine'
      if quarantined
      else 'no checkpoint was saved since'
  )
  return (
      f'{WORDS} after step {step}: {finding.what} differ on {who}; in {arrays}.'
      f'\nAll agreed after step {agreed_step}; {kept}.\n'
      'Expected the same bits. The same command goes on from the newest '
      'checkpoint that is left; have the device tested (t5wild burn-in), and '
      'leave it out if this comes again.'
  )


def period_of(
    *, check_seconds: float, step_seconds: float, budget_percent: float
) -> int:
  """Every so many steps a check costs no more than its budget."""
  return max(
      1, math.ceil(check_seconds * 100 / (budget_percent * step_seconds))
  )


def serials(names: Sequence[str]) -> list[str]:
  """Serial or UUID of NVIDIA devices by index or UUID; '' where not known."""
  try:
    told = subprocess.run(
        ['nvidia-smi', '--query-gpu=index,serial,uuid',
         '--format=csv,noheader'],
        capture_output=True, text=True, timeout=_QUERY_SECONDS, check=True,
    ).stdout  # fmt: skip
  except (OSError, subprocess.SubprocessError):
    return [''] * len(names)
  return serials_in(told, names)


def serials_in(table: str, names: Sequence[str]) -> list[str]:
  """The same, of what nvidia-smi printed."""
  found: dict[str, str] = {}
  for row in table.splitlines():
    index, serial, uuid = (cell.strip() for cell in row.split(','))
    found[index] = found[uuid] = (
        uuid if serial in ('', '0', '[N/A]') else serial
    )
  return [found.get(name, '') for name in names]
