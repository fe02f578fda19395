# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a compiled program takes, as a table, JSON and a picture."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import json
import math
import pathlib
from typing import Any

from t5wild.partitioning import fast_domains
from t5wild.planner import compile as compile_lib
from t5wild.planner import remedies
from t5wild.planner import topologies

_GIB = 2**30
_SHOWN_REMEDIES = 6
_SHOWN_COLLECTIVES = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
  """One program on one machine.

  Attributes:
    program: 'train', 'eval' or 'decode'.
    bytes: kind -> bytes of one device; empty where the compiler gave none.
    peak_bytes: what the program needs; None where that is not known.
    memory_bytes: what a device has; None of CPUs.
    is_measured: whether the compiler's figures say something of that device's
      memory (those of virtual CPUs do not).
    remedies: what would make it fit, where it does not.
  """

  program: str
  bytes: Mapping[str, int]
  peak_bytes: int | None
  memory_bytes: int | None
  is_measured: bool
  remedies: Sequence[remedies.Remedy]

  @property
  def fits(self) -> bool:
    """Whether it does; CPUs always do."""
    if self.memory_bytes is None:
      return True
    return self.peak_bytes is not None and self.peak_bytes <= self.memory_bytes


def judge(
    compiled: compile_lib.Compiled, topology: topologies.Topology
) -> list[Verdict]:
  """One verdict a program."""
  return [
      _judge(name, found, compiled.recipe, topology)
      for name, found in compiled.programs.items()
  ]


def _judge(program, found, recipe, topology) -> Verdict:
  chip = topology.chip
  memory_bytes = chip.memory_bytes if chip else None
  memory = found['memory']
  peak = memory['peak'] if memory else found.get('needed_bytes')
  kinds = _kinds(program, recipe['bytes_by_kind'], memory) if memory else {}
  is_too_large = memory_bytes is not None and (
      peak is None or peak > memory_bytes or found.get('refused')
  )
  if found.get('refused') and peak is not None:
    # The compiler keeps a part of the memory to itself.
    memory_bytes = min(memory_bytes, peak - 1)
  ways = []
  if is_too_large and program == 'train' and peak is not None:
    ways = remedies.find(recipe, peak_bytes=peak, memory_bytes=memory_bytes)
  return Verdict(
      program=program,
      bytes=kinds,
      peak_bytes=peak,
      memory_bytes=memory_bytes,
      is_measured=chip is not None,
      remedies=ways,
  )


def _kinds(program, by_kind, memory) -> dict[str, int]:
  """Bytes of one device, which add up to the peak.

  Gradients are no array of their own in a compiled program: where no
  microbatches sum them, they share memory with what they are made of. They are
  counted as if all were there at once; activations are what then is left of the
  temporary memory.
  """
  if program != 'train':
    return {
        'arguments': memory['argument'],
        'temporary': memory['temp'],
        'results': memory['output'] - memory['alias'],
        'program': memory['generated_code'],
    }
  gradients = min(by_kind['gradients (float32)'], memory['temp'])
  state = by_kind['parameters'] + by_kind['optimizer state']
  return {
      'parameters': by_kind['parameters'],
      'optimizer state': by_kind['optimizer state'],
      'gradients': gradients,
      'activations and work space': memory['temp'] - gradients,
      'batch, results, program': max(
          0, memory['peak'] - memory['temp'] - state
      ),
  }


def text(
    compiled: compile_lib.Compiled,
    verdicts: Iterable[Verdict],
    topology: topologies.Topology,
) -> str:
  """The table for people."""
  recipe = compiled.recipe
  mesh = ' x '.join(f'{a} {n}' for a, n in recipe['mesh'].items() if n > 1)
  lines = [
      f'{topology.name}: {topology.num_devices} x '
      f'{topology.chip.name if topology.chip else "CPU"}, mesh '
      f'{mesh or "of one device"}',
      f'{recipe["num_parameters"]:,} parameters, remat '
      f'{recipe["remat_policy"]}, {recipe["num_microbatches"]} microbatch(es)',
  ]
  if recipe['model_flops']:
    lines.append(
        f'{recipe["model_flops"]:.4g} model operations a step (three forward '
        'passes; planner/formulas.py)'
    )
  for verdict in verdicts:
    found = compiled.programs[verdict.program]
    lines += ['', *_program_lines(verdict, found, recipe, topology)]
  return '\n'.join(lines)


def _program_lines(
    verdict: Verdict,
    found: Mapping[str, Any],
    recipe: Mapping[str, Any],
    topology: topologies.Topology,
) -> list[str]:
  seconds = found['lower_seconds'] + found['compile_seconds']
  lines = [f'{verdict.program}: compiled in {seconds:.0f} s; of one device:']
  rows = [(_gib(count), kind) for kind, count in verdict.bytes.items()]
  if verdict.peak_bytes is not None:
    rows.append((_gib(verdict.peak_bytes), 'in all, at the peak'))
  if verdict.memory_bytes is not None:
    rows.append((_gib(verdict.memory_bytes), "the device's memory"))
  lines += [f'  {amount:>12}  {kind}' for amount, kind in rows]
  lines.append(_fit_line(verdict))
  if found.get('refused'):
    lines.append(f'  the compiler: {found["refused"].splitlines()[0][:200]}')
  for remedy in verdict.remedies[:_SHOWN_REMEDIES]:
    word = 'fits' if remedy.fits else 'does not'
    lines.append(f'  {_gib(remedy.peak_bytes):>12}  {word}: {remedy.what}')
  if 'collectives' in found:
    lines += _collective_lines(found['collectives'])
    lines += slow_network_lines(found['collectives'], recipe, topology)
    lines += _kernel_lines(found['kernels'])
  return lines


def _fit_line(verdict: Verdict) -> str:
  if not verdict.is_measured:
    return (
        '  a virtual mesh: the shardings are right; its temporary memory says '
        'nothing of a GPU or TPU'
    )
  if verdict.fits:
    return '  fits'
  if not verdict.remedies:
    return '  DOES NOT FIT'
  return '  DOES NOT FIT; one change at a time, predicted:'


def _collective_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
  if not found:
    return ['  nothing is sent between devices']
  lines = ['  sent in a call: bytes, how often, what, over which axes, beside '
           'computing']
  for each in found[:_SHOWN_COLLECTIVES]:
    share = each['overlapped_bytes'] / max(1, each['bytes'])
    axes = ' x '.join(each['axes']) or f'{each["group_size"]} devices'
    lines.append(
        f'  {_gib(each["bytes"]):>12}  {each["count"]:>5} x {each["kind"]:<18} '
        f'{axes:<14} {share:.0%}'
    )
  return lines


def slow_network_lines(
    found: Sequence[Mapping[str, Any]],
    recipe: Mapping[str, Any],
    topology: topologies.Topology,
) -> list[str]:
  """What crosses hosts or slices, and a warning where a fast axis does.

  Seconds are the least there can be: without latency or congestion, and with
  the ports of all members that a group has in one host at work.
  """
  crossing = recipe['crossing_axes']
  over = [each for each in found if set(each['axes']) & set(crossing)]
  if not over or topology.chip is None:
    return []
  lines = [f'  of that between {_domains(topology)}: '
           f'{_cost(over, crossing, topology)}']
  for axis in fast_domains.FAST_AXES:
    of_axis = [each for each in over if axis in each['axes']]
    if axis in crossing and of_axis:
      lines.append(
          f'  WARNING: the {axis} axis spans {crossing[axis]} '
          f'{_domains(topology)}; that costs '
          f'{_cost(of_axis, crossing, topology)}. Make '
          f'it at most {topology.devices_of_fast_domain}.'
      )
  return lines


def _domains(topology: topologies.Topology) -> str:
  return 'hosts' if topology.platform == 'gpu' else 'slices'


def _cost(
    traffic: Sequence[Mapping[str, Any]],
    crossing: Mapping[str, int],
    topology: topologies.Topology,
) -> str:
  total, seconds = 0, 0.0
  for each in traffic:
    hosts = math.prod(crossing.get(axis, 1) for axis in each['axes'])
    members = max(1, each['group_size'] // hosts)
    speed = members * topology.chip.network_bytes_per_second
    total += each['bytes']
    seconds += each['bytes'] * (hosts - 1) / hosts / speed
  return f'{_gib(total)} of a device, {seconds:.3g} s or more'


def _kernel_lines(found: Mapping[str, Any]) -> list[str]:
  products = ', '.join(f'{n} x {k}' for k, n in found['products'].items())
  return [
      f'  attention, forward:  {found["attention_forward"]}',
      f'  attention, backward: {found["attention_backward"]}',
      f'  products: {products or "inside fusions"}',
  ]


def _gib(count: int) -> str:
  return f'{count / _GIB:,.3f} GiB'


def write(
    folder: pathlib.Path,
    compiled: compile_lib.Compiled,
    verdicts: Sequence[Verdict],
    topology: topologies.Topology,
) -> list[pathlib.Path]:
  """Writes NAME.json, NAME.png and the programs' texts; returns their paths.

  What an earlier compilation for that machine left there is gone before; the
  JSON file is whole whenever it is there.
  """
  folder.mkdir(parents=True, exist_ok=True)
  stem = folder / topology.file_stem
  paths = [stem.with_name(f'{stem.name}.json')]
  picture = stem.with_name(f'{stem.name}.png')
  for old in (*paths, picture, *folder.glob(f'{stem.name}-[a-z]*.hlo.txt')):
    old.unlink(missing_ok=True)
  partial = stem.with_name(f'{stem.name}.partial')
  partial.write_text(json.dumps({
      'topology': topology.name,
      'chip': topology.chip.name if topology.chip else 'CPU',
      'num_devices': topology.num_devices,
      'recipe': compiled.recipe,
      'programs': {
          verdict.program: {
              **compiled.programs[verdict.program],
              'bytes': verdict.bytes,
              'peak_bytes': verdict.peak_bytes,
              'memory_bytes': verdict.memory_bytes,
              'fits': verdict.fits,
              'remedies': [vars(each) for each in verdict.remedies],
          }
          for verdict in verdicts
      },
  }, indent=1) + '\n')
  for program, program_text in compiled.texts.items():
    paths.append(stem.with_name(f'{stem.name}-{program}.hlo.txt'))
    paths[-1].write_text(program_text)
  if any(verdict.bytes for verdict in verdicts):
    paths.append(picture)
    _draw(picture, verdicts, title=topology.name)
  partial.replace(paths[0])
  return paths


def _draw(
    path: pathlib.Path, verdicts: Sequence[Verdict], *, title: str
) -> None:
  """A bar a program, and the device's memory as a line."""
  import matplotlib

  matplotlib.use('Agg')
  import matplotlib.pyplot as plt

  figure, axes = plt.subplots(
      figsize=(8, 1.6 + 0.7 * len(verdicts)), layout='constrained'
  )
  kinds = list(dict.fromkeys(kind for v in verdicts for kind in v.bytes))
  left = [0.0] * len(verdicts)
  for index, kind in enumerate(kinds):
    widths = [v.bytes.get(kind, 0) / _GIB for v in verdicts]
    axes.barh(
        [v.program for v in verdicts], widths, left=left, label=kind,
        color=plt.get_cmap('tab10')(index),
    )
    left = [a + b for a, b in zip(left, widths, strict=True)]
  limits = [v.memory_bytes for v in verdicts if v.memory_bytes]
  if limits:
    axes.axvline(
        min(limits) / _GIB, color='black', linestyle='--', label='memory'
    )
  axes.set_xlabel('GiB of one device')
  axes.set_title(f'{title}: memory')
  axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5))
  figure.savefig(path, dpi=100)
  plt.close(figure)
