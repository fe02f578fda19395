# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a run have their place, and who is left out.

A place is a process's share of this machine's devices, or one device where a
run has one process. When one is left out a spare takes it over; without spares
the run goes on in fewer places. Their number then divides the planned one, so
that every batch divides as before: each place makes several places' parts of a
batch, one after the other.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import re
import subprocess

from t5wild.launch import failures

# A device says itself that it fails; whoever was killed or hangs may have been
# unlucky, and is left out once it ends so many attempts in a row that gain
# nothing.
_AT_ONCE = failures.DEVICE
_IN_A_ROW = (failures.HANG, failures.KILLED)
_DEVICE = re.compile(r'device (\d+) of process (\d+)')
_LAGGARD = re.compile(r'\bprocess (\d+) on \S+ \(pid')
_HOST_DEVICES = re.compile(
    r'--xla_force_host_platform_device_count=(\d+)'
)
_QUERY_SECONDS = 10
VARIABLE = 'T5WILD_PLACE'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seating:
  """Who sits where in one attempt.

  Attributes:
    places: number of the place of each process, in their order; of each device
      where there is one process.
    fold: how many planned places each of them stands for.
  """

  places: tuple[int, ...]
  fold: int


class Places:
  """The places of a run, less those left out."""

  def __init__(
      self, *, planned: int, spares: int = 0, left_out: Collection[int] = ()
  ):
    """Counts them from 0; the spares are the last ones.

    Raises:
      ValueError: none would be left.
    """
    self._planned = planned
    self._all = range(planned + spares)
    self._left_out = set(left_out)
    if wrong := sorted(self._left_out - set(self._all)):
      raise ValueError(
          f'--leave_out names {wrong}, expected places of 0 to '
          f'{len(self._all) - 1}: there are {planned} and {spares} spare(s)'
      )
    if not self._free():
      raise ValueError(
          f'--leave_out names all {len(self._all)} places, expected some to be '
          'left: drop one from it'
      )

  def _free(self) -> list[int]:
    return [place for place in self._all if place not in self._left_out]

  def seating(self) -> Seating:
    """Who sits where now."""
    free = self._free()
    count = max(
        n for n in range(1, self._planned + 1)
        if n <= len(free) and self._planned % n == 0
    )  # fmt: skip
    return Seating(places=tuple(free[:count]), fold=self._planned // count)

  def leave_out(self, place: int) -> str:
    """Leaves a place out; says what follows, '' where it is the last one."""
    if place in self._left_out or len(self._free()) < 2:
      return ''
    before = self.seating()
    self._left_out.add(place)
    after = self.seating()
    if len(after.places) == len(before.places):
      (new,) = set(after.places) - set(before.places) or {place}
      return f'place {place} is left out; spare {new} takes it over'
    return (
        f'place {place} is left out, and there is no spare: '
        f'{len(after.places)} of {self._planned} places go on, with the same '
        f'batches, each taken apart into {after.fold} times as many '
        'microbatches'
    )


def to_blame(
    ends: Sequence[failures.Failure],
    *,
    seating: Seating,
    is_one_process: bool,
    in_a_row: int,
) -> int | None:
  """The place that the newest failures speak against, if any.

  Args:
    ends: causes of the attempts since a checkpoint was last gained, in order;
      all had this seating.
    seating: of these attempts.
    is_one_process: places are devices of it.
    in_a_row: so many in a row speak against a place.
  """
  if not ends:
    return None
  last = ends[-1]
  if last.kind is _AT_ONCE and ' one of device ' not in last.line:
    return _named(last, seating, is_one_process=is_one_process)
  if is_one_process or len(ends) < in_a_row:
    return None
  recent = ends[-in_a_row:]
  if any(end.kind not in _IN_A_ROW for end in recent):
    return None
  blamed = {
      _named(end, seating, is_one_process=False) for end in recent
  }
  return blamed.pop() if len(blamed) == 1 else None


def _named(
    failure: failures.Failure, seating: Seating, *, is_one_process: bool
) -> int | None:
  """The place that a failure speaks of."""
  device = _DEVICE.search(failure.line)
  if is_one_process:
    index = int(device.group(1)) if device else None
  elif device:
    index = int(device.group(2))
  else:
    laggard = _LAGGARD.search(failure.line)
    index = int(laggard.group(1)) if laggard else failure.process
  if index is None or index >= len(seating.places):
    return None
  return seating.places[index]


def devices_of(environment: Mapping[str, str]) -> list[str]:
  """Names of this machine's devices, as far as a process may see them."""
  if _is_cpu(environment):
    found = _HOST_DEVICES.search(environment.get('XLA_FLAGS', ''))
    return [str(i) for i in range(int(found.group(1)) if found else 1)]
  visible = environment.get('CUDA_VISIBLE_DEVICES')
  if visible is not None:
    return [name.strip() for name in visible.split(',') if name.strip()]
  try:
    told = subprocess.run(
        # Names that stay when a device is gone, as indices do not.
        ['nvidia-smi', '--query-gpu=uuid', '--format=csv,noheader'],
        capture_output=True, text=True, timeout=_QUERY_SECONDS, check=True,
    ).stdout  # fmt: skip
  except (OSError, subprocess.SubprocessError):
    return []
  return told.split()


def seeing_only(
    environment: Mapping[str, str], devices: Sequence[str]
) -> dict[str, str]:
  """The environment of a process that sees these devices and no others."""
  if not _is_cpu(environment):
    return {**environment, 'CUDA_VISIBLE_DEVICES': ','.join(devices)}
  # Devices of a CPU are all the same one: their number is what changes.
  flags = _HOST_DEVICES.sub(
      f'--xla_force_host_platform_device_count={len(devices)}',
      environment.get('XLA_FLAGS', ''),
  )
  return {**environment, 'XLA_FLAGS': flags}


def environments(
    base: Mapping[str, str],
    seating: Seating,
    *,
    devices: Sequence[str],
    num_processes: int,
    total: int,
) -> list[dict[str, str]]:
  """The environment of each process.

  Args:
    base: of the supervisor.
    seating: of this attempt.
    devices: of this machine, when the supervisor was started.
    num_processes: planned ones; with one, places are its devices.
    total: places in all, spares included.
  """
  if num_processes == 1:
    if seating.places == tuple(range(total)):
      return [dict(base)]
    return [seeing_only(base, [devices[i] for i in seating.places])]
  each = 0 if _is_cpu(base) else len(devices) // total
  found = []
  for place in seating.places:
    own = {**base, VARIABLE: str(place)}
    if each:
      own = seeing_only(own, devices[place * each : (place + 1) * each])
    found.append(own)
  return found


def _is_cpu(environment: Mapping[str, str]) -> bool:
  return environment.get('JAX_PLATFORMS', '') == 'cpu'
