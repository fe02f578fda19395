# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a compiled program as XLA prints it: computations, how often each runs.

No JAX: the text is all that is needed.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import re

_BYTES = {
    'pred': 1, 's4': 0.5, 'u4': 0.5, 's8': 1, 'u8': 1, 's16': 2, 'u16': 2,
    'f16': 2, 'bf16': 2, 's32': 4, 'u32': 4, 'f32': 4, 's64': 8, 'u64': 8,
    'f64': 8, 'c64': 8, 'c128': 16,
}  # fmt: skip
_ARRAY = re.compile(r'\b([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]')
_HEADER = re.compile(r'^(ENTRY )?%?([\w.\-]+) \(.*\{$')
_LINE = re.compile(r'^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$')
_CALLED = re.compile(
    r'\b(?:body|condition|calls|to_apply|true_computation|false_computation)='
    r'%?([\w.\-]+)'
)
_BRANCHES = re.compile(r'branch_computations=\{([^}]*)\}')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CONSTANT = re.compile(r'[su]32\[\]\S* constant\((\d+)\)')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instruction:
  """One line of a computation.

  Attributes:
    name: of the instruction.
    opcode: such as 'all-gather-start' or 'fusion'.
    shape: text of the result's shape.
    rest: operands and attributes, text.
  """

  name: str
  opcode: str
  shape: str
  rest: str

  @property
  def text(self) -> str:
    """The line without the name."""
    return f'{self.shape} {self.opcode}{self.rest}'

  @property
  def called(self) -> list[str]:
    """Names of the computations that it runs."""
    names = _CALLED.findall(self.rest)
    for branches in _BRANCHES.findall(self.rest):
      names += [name.strip().lstrip('%') for name in branches.split(',')]
    return names

  def attribute(self, name: str) -> str | None:
    """Text of an attribute up to the next comma; None where there is none."""
    match = re.search(rf'\b{name}=([^,\s]+)', self.rest)
    return match[1] if match else None


class Module:
  """A compiled program."""

  def __init__(self, text: str):
    """Parses the text of a module that was printed after scheduling."""
    self.computations: dict[str, list[Instruction]] = {}
    self.entry = ''
    lines: list[Instruction] = []
    for line in text.splitlines():
      header = _HEADER.match(line)
      if header:
        lines = self.computations.setdefault(header[2], [])
        self.entry = header[2] if header[1] else self.entry
        continue
      parsed = _LINE.match(line)
      if parsed:
        lines.append(_instruction(parsed[1], parsed[2]))

  @functools.cached_property
  def runs(self) -> Mapping[str, int]:
    """Computation -> how often it runs in one call of the program."""
    counts = dict.fromkeys(self.computations, 0)
    self._count(self.entry, 1, counts)
    return counts

  def _count(self, name: str, times: int, counts: dict[str, int]) -> None:
    counts[name] = counts.get(name, 0) + times
    for instruction in self.computations.get(name, ()):
      inner = times
      if instruction.opcode == 'while':
        inner *= self._trips(instruction)
      for called in instruction.called:
        self._count(called, inner, counts)

  def _trips(self, loop: Instruction) -> int:
    """Turns of a loop: as the compiler notes them, or its condition's bound."""
    known = _TRIPS.search(loop.rest)
    if known:
      return int(known[1])
    condition = loop.attribute('condition') or ''
    bounds = [
        int(match[1])
        for each in self.computations.get(condition.lstrip('%'), ())
        for match in [_CONSTANT.search(each.text)]
        if match
    ]
    return max(bounds, default=1)

  def instructions(self) -> Iterator[tuple[str, Instruction]]:
    """Every instruction that runs, with its computation's name."""
    for name, lines in self.computations.items():
      if self.runs.get(name):
        for instruction in lines:
          yield name, instruction


def _instruction(name: str, text: str) -> Instruction:
  end = _end_of_shape(text)
  opcode, _, rest = text[end:].lstrip().partition('(')
  return Instruction(
      name=name, opcode=opcode.strip(), shape=text[:end], rest=f'({rest}'
  )


def _end_of_shape(text: str) -> int:
  """Where the shape ends: a tuple at its bracket, an array at a space."""
  if not text.startswith('('):
    return text.find(' ') if ' ' in text else len(text)
  depth = 0
  for at, character in enumerate(text):
    depth += (character == '(') - (character == ')')
    if depth == 0:
      return at + 1
  return len(text)


def shape_bytes(shape: str) -> int:
  """Bytes of an array, or of all arrays of a tuple."""
  total = 0.0
  for dtype, sizes in _ARRAY.findall(shape):
    width = 1 if dtype.startswith('f8') else _BYTES.get(dtype, 0)
    for size in filter(None, sizes.split(',')):
      width *= int(size)
    total += width
  return int(total)


def tuple_parts(shape: str) -> Sequence[str]:
  """The elements of a tuple's shape; an array is its own only one."""
  if not shape.startswith('('):
    return [shape]
  parts, depth, start = [], 0, 1
  for at, character in enumerate(shape[1:-1], start=1):
    depth += (character in '([{') - (character in ')]}')
    if character == ',' and depth == 0:
      parts.append(shape[start:at])
      start = at + 1
  return [*parts, shape[start:-1]]
