# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/scale.md: models on machines, compiled or planned; no JAX.

Cells that `t5wild precompile --topology=... --output_dir=...` has written are
compiled. All others follow by arithmetic from a compiled cell of their model:
the same rows on each device, fully sharded over `data`, or over replicas of as
many devices as divide the embed axis.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import pathlib
from typing import Any

from t5wild.planner import kernels
from t5wild.planner import memory
from t5wild.planner import remedies
from t5wild.planner import search
from t5wild.planner import timing
from t5wild.planner import topologies

_GIB = 2**30
_HEADS = (
    'model', 'machine', 'fits', 'GiB, compiled', 'GiB, predicted',
    'attention', 'most of what is sent', 's a step, planned', 'MFU, planned',
    'compiled in',
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
  """A model on a machine.

  Attributes:
    model: name for people.
    topology: the machine.
    facts: of the recipe on that machine.
    program: what was compiled; None where the cell is planned.
  """

  model: str
  topology: topologies.Topology
  facts: Mapping[str, Any]
  program: Mapping[str, Any] | None


def cells(
    folder: pathlib.Path, names: Sequence[str]
) -> list[Cell]:
  """Every model on every machine.

  Args:
    folder: has a folder for each model, with what precompile wrote.
    names: of the machines.

  Raises:
    ValueError: there is no compiled cell at all.
  """
  found = []
  for of_model in sorted(path for path in folder.iterdir() if path.is_dir()):
    written = {
        one['topology']: one
        for one in map(_read, sorted(of_model.glob('*.json')))
    }
    for name in names if written else ():
      topology = topologies.parse(name)
      nearest = written.get(name) or _nearest(written, topology)
      is_compiled = name in written
      found.append(Cell(
          model=of_model.name,
          topology=topology,
          facts=(nearest['recipe'] if is_compiled else moved(
              nearest['recipe'], topology.num_devices
          ) | _attention_on(nearest, topology))
          | {'platform': topology.platform},
          program=nearest['programs']['train'] if is_compiled else None,
      ))  # fmt: skip
  if not found:
    raise ValueError(
        f'{folder} holds no compiled cells.\n'
        'Expected a folder for each model, with JSON of `t5wild precompile`.\n'
        'Run t5wild precompile --topology=h100:1x8 --output_dir='
        f'{folder}/MODEL first.'
    )
  return found


def _nearest(
    written: Mapping[str, Any], topology: topologies.Topology
) -> Any:
  """A compiled cell of that platform, or any."""
  alike = [
      one
      for name, one in written.items()
      if topologies.parse(name).platform == topology.platform
  ]
  return (alike or list(written.values()))[0]


def _attention_on(
    one: Mapping[str, Any], topology: topologies.Topology
) -> dict[str, Any]:
  """Where a cell is moved to other devices: their kernels are not known."""
  if topologies.parse(one['topology']).platform == topology.platform:
    return {}
  return {'attention_features': None}


def _read(path: pathlib.Path) -> Any:
  return json.loads(path.read_text())


def moved(facts: Mapping[str, Any], num_devices: int) -> dict[str, Any]:
  """A recipe's facts on another number of devices, sharded over all of them.

  Where these do not divide the embed axis, over as many as do, and replicas.
  """
  before = facts['mesh']['data'] * facts['mesh']['replica']
  data = _ways(facts, num_devices)
  share = _ways(facts, facts['mesh']['data']) / data
  return {
      **facts,
      'mesh': dict.fromkeys(facts['mesh'], 1)
      | {'data': data, 'replica': num_devices // data},
      'batch': {
          name: [rows * num_devices // before, *rest]
          for name, (rows, *rest) in facts['batch'].items()
      },
      'bytes_by_kind': {
          kind: int(count * share)
          for kind, count in facts['bytes_by_kind'].items()
      },
  }


def _ways(facts: Mapping[str, Any], devices: int) -> int:
  """Over how many of the devices parameters can be split."""
  embed = facts['shape']['emb_dim']
  return max(
      n
      for n in range(1, devices + 1)
      if devices % n == 0 and embed % n == 0
  )


def markdown(found: Sequence[Cell]) -> str:
  """The table."""
  rows = [_HEADS, ['---'] * len(_HEADS), *map(_row, found)]
  return '\n'.join(f'| {" | ".join(row)} |' for row in rows)


def _row(cell: Cell) -> list[str]:
  step = remedies.step_shape_of(cell.facts)
  sizes = cell.facts['bytes_by_kind']
  state = sizes['parameters'] + sizes['optimizer state']
  predicted = memory.estimate(
      step, state_bytes=state, gradient_bytes=sizes['gradients (float32)']
  ).peak
  dtype = search.dtype_of(cell.facts)
  time = timing.estimate(
      step, cell.topology, dtype=dtype,
      num_parameters=cell.facts['num_parameters'], state_bytes=state,
  )  # fmt: skip
  shares = [
      timing.mfu(step, cell.topology, dtype=dtype, seconds=seconds)
      for seconds in (time.worst, time.best)
  ]
  return [
      cell.model,
      cell.topology.name,
      *_compiled(cell, predicted),
      f'{time.best:.2g} to {time.worst:.2g}',
      f'{shares[0]:.0%} to {shares[1]:.0%}',
      f'{cell.program["compile_seconds"]:.0f} s' if cell.program else 'planned',
  ]


def _gathered(facts: Mapping[str, Any]) -> str:
  """What a fully sharded step gathers, for the forward and backward pass."""
  step = remedies.step_shape_of(facts)
  if not step.parameters_are_sharded:
    return ''
  total = 2 * step.activation_bytes * facts['num_parameters']
  return f'all-gather, data: {total / _GIB:.0f} GiB'


def _compiled(cell: Cell, predicted: float) -> list[str]:
  """Whether it fits, both figures of memory, and what is sent."""
  limit = cell.topology.chip.memory_bytes
  if cell.program is None:
    fits = 'yes' if predicted * search.MARGIN <= limit else (
        'unsure' if predicted <= limit else 'no'
    )
    is_fused = cell.facts.get('attention_features') is not None
    return [
        fits, '', f'{predicted / _GIB:.1f}', 'fused' if is_fused else 'xla',
        _gathered(cell.facts),
    ]  # fmt: skip
  peak = cell.program['peak_bytes']
  sent = cell.program.get('collectives') or []
  kernel = cell.program['kernels']['attention_forward']
  most = ''
  if sent:
    axes = ' x '.join(sent[0]['axes'])
    most = f'{sent[0]["kind"]}, {axes}: {sent[0]["bytes"] / _GIB:.0f} GiB'
  return [
      'yes' if cell.program['fits'] else 'no',
      f'{peak / _GIB:.1f}' if peak else '',
      f'{predicted / _GIB:.1f}',
      'xla' if kernel == kernels.NO_KERNEL else 'fused',
      most,
  ]
