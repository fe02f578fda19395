# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a compiled program sends between devices, by kind and mesh axis; no JAX.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
import re

import numpy as np

from t5wild.planner import hlo

KINDS = (
    'all-gather', 'all-reduce', 'reduce-scatter', 'all-to-all',
    'collective-permute',
)  # fmt: skip
# What does work while a collective is under way.
_WORK = ('fusion', 'dot', 'convolution', 'custom-call', 'while')
_IDLE_TARGETS = ('AllocateBuffer', 'AsyncCollective', 'ConcatBitcast')
# Fusions in which TPUs compute while a collective goes on.
_TPU_OVERLAP = 'async_collective_fusion'
_MESH = re.compile(
    r'replica_groups=mesh\[([^\]]*)\]'
    r'(?:(?:, device_ids=)?(\(.*?\)))? \{([^}]*)\}'
)
# The order of a mesh's devices: their numbers, or an iota's sizes and order.
_IDS = re.compile(r'\((?:([\d,\s]+)|\[([\d,]+)\](?:T\(([\d,]+)\))?)\)')
_IOTA = re.compile(
    r'replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?'
)
_LISTED = re.compile(r'replica_groups=\{(\{.*?\})\}')
_PAIRS = re.compile(r'source_target_pairs=\{(\{.*?\})\}')
_INNER = re.compile(r'\{([\d,\s]*)\}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Traffic:
  """Collectives of one kind over the same axes.

  Attributes:
    kind: one of `KINDS`.
    axes: mesh axes whose devices take part; empty where it could not be told.
    count: how many are done in one call of the program.
    bytes: of the larger of input and output on one device, all calls together.
    overlapped_bytes: of `bytes`, in collectives that computing goes on beside.
    group_size: devices that take part in one.
  """

  kind: str
  axes: tuple[str, ...]
  count: int
  bytes: int
  overlapped_bytes: int
  group_size: int


def of_module(
    module: hlo.Module, mesh: Mapping[str, int]
) -> list[Traffic]:
  """All collectives of a program, the most bytes first.

  Args:
    module: the program.
    mesh: axis -> size, in the mesh's order.
  """
  sums: dict[tuple, list[int]] = {}
  seen = set()
  beside_work = _channels_beside_work(module)
  for computation, instruction in module.instructions():
    kind = _kind(instruction)
    channel = instruction.attribute('channel_id')
    # Pieces of one collective, spread over fusions, share its channel.
    if kind is None or (channel and channel in seen):
      continue
    seen.add(channel)
    axes, size = _axes(_groups(instruction.rest), mesh)
    if size == 1:
      continue
    times = module.runs[computation]
    payload = _payload(instruction, size) * times
    hidden = channel in beside_work or _is_overlapped(
        module, computation, instruction
    )
    entry = sums.setdefault((kind, axes, size), [0, 0, 0])
    entry[0] += times
    entry[1] += payload
    entry[2] += payload * hidden
  found = [
      Traffic(
          kind=kind, axes=axes, group_size=size, count=count, bytes=total,
          overlapped_bytes=hidden,
      )
      for (kind, axes, size), (count, total, hidden) in sums.items()
  ]  # fmt: skip
  return sorted(found, key=lambda each: -each.bytes)


def _kind(instruction: hlo.Instruction) -> str | None:
  opcode = instruction.opcode.removesuffix('-start')
  return opcode if opcode in KINDS else None


def _payload(instruction: hlo.Instruction, group_size: int) -> int:
  parts = hlo.tuple_parts(instruction.shape)
  kind = _kind(instruction)
  if instruction.opcode.endswith('-start') and kind != 'all-reduce':
    return max(map(hlo.shape_bytes, parts[:2]))  # (inputs, outputs, ...)
  total = hlo.shape_bytes(instruction.shape)
  return total * group_size if kind == 'reduce-scatter' else total


def _channels_beside_work(module: hlo.Module) -> set[str | None]:
  """Channels of collectives that TPUs spread over fusions which compute."""
  return {
      instruction.attribute('channel_id')
      for computation, instruction in module.instructions()
      if _TPU_OVERLAP in computation and _kind(instruction)
  }


def _is_overlapped(
    module: hlo.Module, computation: str, start: hlo.Instruction
) -> bool:
  """Whether work is scheduled between its start and its end."""
  if not start.opcode.endswith('-start') or '"is_sync":true' in start.rest:
    return False
  lines = module.computations[computation]
  at = lines.index(start)
  for line in lines[at + 1 :]:
    if line.opcode.endswith('-done') and _takes(line, start.name):
      return False
    if line.opcode in _WORK and not any(t in line.rest for t in _IDLE_TARGETS):
      return True
  return False


def _takes(line: hlo.Instruction, name: str) -> bool:
  operands = line.rest.partition(')')[0]
  return re.search(rf'%?{re.escape(name)}(?![\w.\-])', operands) is not None


def _groups(text: str) -> np.ndarray | list[Sequence[int]] | None:
  """Groups of positions in the mesh; pairs for a permutation.

  None where the text has no groups that can be read.
  """
  for read in (_mesh_groups, _iota_groups, _listed_groups):
    groups = read(text)
    if groups is not None:
      return groups
  return None


def _mesh_groups(text: str) -> np.ndarray | None:
  match = _MESH.search(text)
  if not match:
    return None
  names = re.findall(r"'([^']+)'=(\d+)", match[1])
  sizes = [int(size) for _, size in names]
  taken = re.findall(r"'([^']+)'", match[3])
  order = [name for name, _ in names]
  inside = [order.index(name) for name in taken if name in order]
  outside = [i for i in range(len(order)) if i not in inside]
  ids = _device_order(match[2], math.prod(sizes)).reshape(sizes)
  ids = ids.transpose([*outside, *inside])
  return ids.reshape(-1, math.prod(sizes[i] for i in inside))


def _device_order(text: str | None, size: int) -> np.ndarray:
  """The devices of a mesh, one after the other; None: by their numbers."""
  match = _IDS.fullmatch(text) if text else None
  if not match:
    return np.arange(size)
  if match[1]:
    return np.array(_numbers(match[1]))
  return _iota(_numbers(match[2]), match[3]).ravel()


def _iota(sizes: Sequence[int], order: str | None) -> np.ndarray:
  """0, 1, 2, ... in these sizes, with the axes in that order."""
  ids = np.arange(math.prod(sizes)).reshape(sizes)
  return ids.transpose(_numbers(order)) if order else ids


def _iota_groups(text: str) -> np.ndarray | None:
  match = _IOTA.search(text)
  if not match:
    return None
  return _iota(_numbers(match[2]), match[3]).reshape(_numbers(match[1]))


def _listed_groups(text: str) -> list[Sequence[int]] | None:
  match = _PAIRS.search(text) or _LISTED.search(text)
  if not match:
    return None
  return [_numbers(inner) for inner in _INNER.findall(match[1])]


def _numbers(text: str) -> list[int]:
  return [int(number) for number in text.split(',') if number.strip()]


def _axes(
    groups: Iterable[Sequence[int]] | None, mesh: Mapping[str, int]
) -> tuple[tuple[str, ...], int]:
  """The axes along which members of groups differ, and a group's size.

  Of a permutation, whose groups are pairs: all devices of these axes. Groups
  that cannot be read are told as one of all devices, without its axes.
  """
  if groups is None:
    return (), math.prod(mesh.values())
  names, sizes = list(mesh), list(mesh.values())
  differ = np.zeros(len(names), bool)
  largest = 1
  for group in groups:
    if max(group, default=0) >= math.prod(sizes):
      return (), len(group)
    places = np.stack(np.unravel_index(np.asarray(group, int), sizes))
    differ |= (places != places[:, :1]).any(axis=1)
    largest = max(largest, len(set(map(int, group))))
  axes = tuple(name for name, is_so in zip(names, differ, strict=True) if is_so)
  return axes, largest
