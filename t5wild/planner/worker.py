# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The process that compiles: `python -m t5wild.planner.worker JOB`.

A compiler may end its process, so it never runs in the one that was asked. JOB
is a JSON file: the command line of gin, the topology, the programs; what was
found is written into the folder that it names, one JSON file a program, each
when it is done, so that what was found before an end remains.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import importlib
import json
import os
import pathlib
import re
import shutil
import sys
import threading
import time
from typing import Any

from absl import flags
from absl import logging
import jax

from t5wild import command_line
from t5wild import exit_codes
from t5wild.partitioning import devices as devices_lib
from t5wild.partitioning import fast_domains
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.planner import attention
from t5wild.planner import collectives
from t5wild.planner import described
from t5wild.planner import for_topology
from t5wild.planner import formulas
from t5wild.planner import hlo
from t5wild.planner import kernels
from t5wild.planner import recipe as recipe_lib
from t5wild.planner import search
from t5wild.planner import topologies
from t5wild.trainer import model_info

_MEMORY = ('argument', 'output', 'alias', 'temp', 'generated_code')
# How the TPU's compiler says that a program is too large.
_TOO_LARGE = re.compile(
    r'Used ([\d.]+)([KMG]) of ([\d.]+)([KMG]) hbm', re.IGNORECASE
)
_UNITS = {'K': 2**10, 'M': 2**20, 'G': 2**30}


def main(argv: Sequence[str]) -> int:
  """Does the job of a file; returns one of `exit_codes`."""
  job = json.loads(pathlib.Path(argv[1]).read_text())
  topology = topologies.parse(job['topology'])
  out = pathlib.Path(job['out'])
  threading.Thread(
      target=end_with, args=(job['parent'], out), daemon=True
  ).start()
  try:
    recipe = _read_recipe(job['arguments'])
    if 'plan_for' in job:
      found = describe_splits(recipe, topologies.parse(job['plan_for']))
      _write(out / 'splits.json', found)
      return exit_codes.DONE.code
    with devices_lib.described(described.devices_of(topology)):
      facts = describe(recipe)
      _write(out / 'recipe.json', facts)
      # All are traced first: what is wrong is told before minutes of compiling.
      for lowered in [_lower(recipe, each) for each in job['programs']]:
        found = compile_program(
            lowered,
            mesh=dict(recipe.partitioner.mesh.shape),
            text_path=out / f'{lowered.program}.hlo.txt',
        )
        _write(out / f'{lowered.program}.json', found)
  except (ValueError, LookupError, OSError, TypeError, flags.Error) as error:
    print(command_line.complaint(error), file=sys.stderr)  # noqa: T201 -- the product
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def end_with(
    parent: int,
    out: pathlib.Path,
    *,
    period_seconds: float = 2.0,
    end: Callable[[int], Any] = os._exit,
) -> None:
  """Ends this process once its parent is gone, however that ended.

  A compiler goes on for minutes, and nobody would read what it finds, nor take
  the folder away. Called in a thread: XLA compiles without Python's lock.
  """
  while os.getppid() == parent:
    time.sleep(period_seconds)
  shutil.rmtree(out, ignore_errors=True)
  end(exit_codes.FAILED.code)


def _read_recipe(arguments: Sequence[str]) -> recipe_lib.Recipe:
  for_topology.define_flags()  # all of them may stand there
  command_line.parse_flags(['t5wild precompile', *arguments])
  command_line.use_data_dirs()
  # Recipes name these functions; nothing of them is called.
  functions = {
      name: getattr(importlib.import_module(f't5wild.{name}'), name)
      for name in ('train', 'precompile')
  }
  # Nothing is written there.
  command_line.parse_gin(where_unset={'MODEL_DIR': ''}, **functions)
  return recipe_lib.read(**functions)


def describe_splits(
    recipe: recipe_lib.Recipe, topology: topologies.Topology
) -> dict[str, Any]:
  """The recipe's facts, and the bytes of a device by kind for each split.

  Args:
    recipe: its own mesh does not matter.
    topology: the machine, of as many devices as there are virtual CPUs here.

  Raises:
    ValueError: the network does not tell its sizes.
  """
  devices = jax.devices()
  with devices_lib.described(devices[:1]):
    whole = dataclasses.replace(
        recipe,
        partitioner=partitioner_lib.PjitPartitioner(mesh_shape={'data': 1}),
    )
    facts = describe(whole, platform=topology.platform)
    state = whole.states.global_train_state_shape
  if 'shape' not in facts:
    raise ValueError(
        f'The network {type(recipe.model.module).__name__} does not tell its '
        'sizes.\n'
        'Expected one of t5wild.networks, whose config the arithmetic reads.\n'
        'Use t5wild precompile --topology, which compiles any network.'
    )
  sizes = []
  for split in search.splits(
      topology,
      num_heads=facts['shape']['num_heads'],
      batch=facts['batch']['decoder_target_tokens'][0],
      lengths=search.lengths_of(facts),
  ):
    partitioner = partitioner_lib.PjitPartitioner(
        mesh_shape=split.mesh,
        activation_partitioning_dims=split.activation_dims,
        parameter_partitioning_dims=split.parameter_dims,
    )
    info = model_info.describe_state(state, partitioner)
    sizes.append({'split': vars(split), 'bytes': info.bytes_by_kind()})
  return {'recipe': facts, 'splits': sizes}


def describe(
    recipe: recipe_lib.Recipe, *, platform: str | None = None
) -> dict[str, Any]:
  """What follows from the recipe before anything is compiled.

  Args:
    recipe: what.
    platform: of the devices it is for; None: those of its mesh.
  """
  devices = recipe.partitioner.mesh.devices
  platform = platform or devices.flat[0].platform
  info = model_info.describe(recipe.states, recipe.partitioner)
  shapes = {name: list(x.shape) for name, x in recipe.batch.items()}
  config = getattr(getattr(recipe.model, 'module', None), 'config', None)
  facts = {
      'platform': platform,
      'mesh': dict(info.mesh),
      'crossing_axes': fast_domains.crossing_axes(
          devices, axes=list(info.mesh)
      ),
      'num_parameters': info.num_parameters,
      'bytes_by_kind': info.bytes_by_kind(),
      'batch': shapes,
      'num_microbatches': recipe.num_microbatches,
      'model_dir': recipe.model_dir,
      'total_steps': recipe.total_steps,
      'dtype': str(getattr(config, 'dtype', '')),
      'quantization': getattr(config, 'quantization', None),
      'remat_policy': getattr(config, 'remat_policy', None),
      'scan_layers': getattr(config, 'scan_layers', None),
      'model_flops': None,
      'config': type(config).__name__,
  }
  cost = model_info.step_cost(recipe.model, shapes)
  if cost is not None:
    facts['model_flops'] = cost.flops_per_step
    facts['shape'] = vars(formulas.model_shape_of(config))
    facts['attention_features'] = attention.fused_features(
        config, shapes, platform
    )
  return facts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lowered:
  """A program for the compiler.

  Attributes:
    program: one of `for_topology.PROGRAMS`.
    stage: JAX's.
    seconds: that tracing took.
  """

  program: str
  stage: jax.stages.Lowered
  seconds: float


def _lower(recipe: recipe_lib.Recipe, program: str) -> Lowered:
  start = time.perf_counter()
  stage = recipe.lower(program)
  seconds = time.perf_counter() - start
  logging.info('Lowered %s in %.1f s', program, seconds)
  return Lowered(program=program, stage=stage, seconds=seconds)


def compile_program(
    lowered: Lowered, *, mesh: Mapping[str, int], text_path: pathlib.Path
) -> dict[str, Any]:
  """Compiles one program; returns what is known of it.

  Args:
    lowered: what.
    mesh: axis -> size, in the mesh's order.
    text_path: where the compiled program's text is left.
  """
  start, cpu_start = time.perf_counter(), _cpu_seconds()
  try:
    compiled = lowered.stage.compile()
  except jax.errors.JaxRuntimeError as error:
    found = _of_refusal(str(error))
  else:
    text = compiled.as_text()
    text_path.write_text(text)
    found = {
        'memory': _memory(compiled),
        **of_text(text, mesh=mesh),
    }
  return {
      'lower_seconds': lowered.seconds,
      'compile_seconds': time.perf_counter() - start,
      # What to compare between machines that others use too.
      'compile_cpu_seconds': _cpu_seconds() - cpu_start,
      **found,
  }


def _cpu_seconds() -> float:
  """Of all threads and of processes that ended: ptxas is one of its own."""
  return sum(os.times()[:4])


def of_text(text: str, *, mesh: Mapping[str, int]) -> dict[str, Any]:
  """Collectives and kernels of a compiled program's text."""
  module = hlo.Module(text)
  return {
      'collectives': [
          vars(each) for each in collectives.of_module(module, mesh)
      ],
      'kernels': vars(kernels.of_module(module)),
  }


def _memory(compiled: Any) -> dict[str, int] | None:
  """Bytes of one device; None where the compiler does not tell."""
  memory = compiled.memory_analysis()
  if memory is None:
    return None
  found = {
      name: getattr(memory, f'{name}_size_in_bytes') for name in _MEMORY
  }
  # Outputs that take over the donated state's memory are counted once.
  found['peak'] = sum(found.values()) - 2 * found['alias']
  return found


def _of_refusal(message: str) -> dict[str, Any]:
  """What a compiler said that compiled nothing: that it does not fit.

  Raises:
    ValueError: it said something else.
  """
  match = _TOO_LARGE.search(message)
  if not match and 'RESOURCE_EXHAUSTED' not in message:
    raise ValueError(
        f'The compiler refuses the program: {message}\n'
        'Expected one that compiles; the same recipe on CPUs (--topology=cpu:N)'
        ' tells whether it is the recipe.\n'
        'Mend the recipe, or report this with the command.'
    )
  needed = _bytes(match[1], match[2]) if match else None
  return {'memory': None, 'refused': message[:2000], 'needed_bytes': needed}


def _bytes(number: str, unit: str) -> int:
  return int(float(number) * _UNITS[unit.upper()])


def _write(path: pathlib.Path, found: Mapping[str, Any]) -> None:
  path.write_text(json.dumps(found, indent=1, default=str))


if __name__ == '__main__':
  sys.exit(main(sys.argv))
