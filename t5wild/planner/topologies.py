# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Machines by name, `h100:32x8` or `v5p:4x4x4`, that need not be here; no JAX.
"""

import dataclasses
import difflib
import math
import re

from t5wild import hardware

GPUS_PER_HOST = 8
_CPU = 'cpu'
# Short name -> row of the table of chips, and what JAX calls its platform.
KINDS = {
    'h100': ('H100', 'gpu'),
    'h200': ('H200', 'gpu'),
    'a100': ('A100 80GB', 'gpu'),
    'a100-40gb': ('A100 40GB', 'gpu'),
    'v4': ('TPU v4', 'tpu'),
    'v5e': ('TPU v5e', 'tpu'),
    'v5p': ('TPU v5p', 'tpu'),
    'v6e': ('TPU v6e', 'tpu'),
    _CPU: (None, 'cpu'),
}
# Dimensions of a slice; an edge of a TPU slice has at most so many chips.
_TORUS_DIMENSIONS = {'v4': 3, 'v5e': 2, 'v5p': 3, 'v6e': 2}
# Slices of so many chips, as they are rented: `--devices=v5p:64`.
_TORUS_OF_COUNT = {
    2: {4: (2, 2), 8: (2, 4), 16: (4, 4), 32: (4, 8), 64: (8, 8),
        128: (8, 16), 256: (16, 16)},
    3: {4: (2, 2, 1), 8: (2, 2, 2), 16: (2, 2, 4), 32: (2, 4, 4),
        64: (4, 4, 4), 128: (4, 4, 8), 256: (4, 8, 8), 512: (8, 8, 8),
        1024: (8, 8, 16)},
}  # fmt: skip
_EXAMPLES = 'h100:32x8, h200:1x8, a100:4x8, v5e:16x16, v5p:4x4x4, cpu:256'
_NAME = re.compile(r'(?P<kind>[^:]+):(?P<sizes>\d+(x\d+)*)(:(?P<slices>\d+))?')


class TopologyError(ValueError):
  """There is no such machine."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Topology:
  """A machine of equal devices.

  Attributes:
    name: as it was given.
    kind: key of `KINDS`.
    shape: (hosts, GPUs of one host), the torus of a TPU slice, or (devices,) of
      CPUs.
    num_slices: TPU slices of that shape, joined by the data centre's network.
  """

  name: str
  kind: str
  shape: tuple[int, ...]
  num_slices: int = 1

  @property
  def platform(self) -> str:
    """'gpu', 'tpu' or 'cpu'."""
    return KINDS[self.kind][1]

  @property
  def chip(self) -> hardware.Chip | None:
    """The row of the table of chips; None for CPUs."""
    wanted = KINDS[self.kind][0]
    return next((c for c in hardware.CHIPS if c.name == wanted), None)

  @property
  def num_devices(self) -> int:
    """Devices of all hosts and slices."""
    return math.prod(self.shape) * self.num_slices

  @property
  def devices_of_fast_domain(self) -> int:
    """Devices that fast links join: a host's GPUs, a slice's TPUs."""
    if self.platform == 'gpu':
      return self.shape[1]
    return math.prod(self.shape)

  @property
  def file_stem(self) -> str:
    """The name as part of a file's name."""
    return self.name.replace(':', '-')


def parse(text: str) -> Topology:
  """Reads `KIND:SIZES` or `KIND:SIZES:SLICES`.

  One size of a GPU or TPU is a number of devices: `h100:64` is eight hosts of
  eight, `v5e:64` the slice of 8x8.

  Raises:
    TopologyError: unknown kind, or sizes that no such machine has.
  """
  match = _NAME.fullmatch(text.strip().lower())
  kind = match['kind'] if match else text.partition(':')[0].strip().lower()
  if kind not in KINDS:
    raise TopologyError(_unknown_kind(text, kind))
  if not match:
    raise TopologyError(_no_shape(text))
  shape = tuple(map(int, match['sizes'].split('x')))
  slices = int(match['slices'] or 1)
  if 0 in (*shape, slices):
    raise TopologyError(_no_shape(text))
  platform = KINDS[kind][1]
  if platform != 'tpu' and slices != 1:
    raise TopologyError(
        f'The topology {text!r} has {slices} slices.\n'
        'Expected slices of TPUs only: hosts of GPUs and CPUs have none.\n'
        f'Write {kind}:{match["sizes"]}.'
    )
  shape = {'gpu': _hosts, 'tpu': _torus, 'cpu': _count}[platform](
      text, kind, shape
  )
  return Topology(name=text.strip().lower(), kind=kind, shape=shape,
                  num_slices=slices)


def _hosts(text: str, kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
  if len(shape) == 1:
    count = shape[0]
    if count <= GPUS_PER_HOST:
      return (1, count)
    if count % GPUS_PER_HOST == 0:
      return (count // GPUS_PER_HOST, GPUS_PER_HOST)
  if len(shape) == 2:
    return shape
  count = math.prod(shape)
  each = max(n for n in range(1, GPUS_PER_HOST + 1) if count % n == 0)
  raise TopologyError(
      f'The topology {text!r} is no number of hosts of equal GPUs.\n'
      f'Expected {kind}:HOSTSxGPUS, or a number of GPUs that is at most '
      f'{GPUS_PER_HOST} or a multiple of it.\n'
      f'Write {kind}:{count // each}x{each} for as many, or for example '
      f'{kind}:{-(-count // GPUS_PER_HOST)}x{GPUS_PER_HOST}.'
  )


def _torus(text: str, kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
  dimensions = _TORUS_DIMENSIONS[kind]
  if len(shape) == 1 and shape[0] in _TORUS_OF_COUNT[dimensions]:
    return _TORUS_OF_COUNT[dimensions][shape[0]]
  if len(shape) == dimensions:
    return shape
  raise TopologyError(
      f'The topology {text!r} is no slice of {kind}.\n'
      f'Expected {dimensions} sizes, or a number of chips out of '
      f'{sorted(_TORUS_OF_COUNT[dimensions])}.\n'
      f'Write {example_of(kind)}.'
  )


def example_of(kind: str) -> str:
  """Sizes of a kind of GPU or TPU that can be rented, for a message."""
  if kind not in _TORUS_DIMENSIONS:
    return f'{kind}:1x{GPUS_PER_HOST}, or more hosts of {GPUS_PER_HOST}'
  known = _TORUS_OF_COUNT[_TORUS_DIMENSIONS[kind]].values()
  return f'{kind}: and one of {", ".join("x".join(map(str, s)) for s in known)}'


def _count(text: str, kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
  if len(shape) == 1:
    return shape
  raise TopologyError(
      f'The topology {text!r} has {len(shape)} sizes.\n'
      'Expected one: the number of virtual CPU devices.\n'
      f'Write {kind}:{math.prod(shape)}.'
  )


def _unknown_kind(text: str, kind: str) -> str:
  close = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.4)
  hint = f' Did you mean {close[0]!r}?' if close else ''
  return (
      f'The topology {text!r} is of an unknown kind {kind!r}.{hint}\n'
      f'Expected one of {", ".join(KINDS)}.\n'
      f'Write for example one of {_EXAMPLES}.'
  )


def _no_shape(text: str) -> str:
  return (
      f'The topology {text!r} does not say how many devices there are.\n'
      'Expected KIND:SIZES with sizes of at least 1, and for TPUs also '
      'KIND:SIZES:SLICES.\n'
      f'Write for example one of {_EXAMPLES}.'
  )
