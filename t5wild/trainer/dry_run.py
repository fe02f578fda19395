# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a dry run: what a run would be made of, for people to read.

model-info.txt has every array on a line of its own. Here arrays that differ by
the number of their layer alone share one, and the optimizer's are added up.
"""

from collections.abc import Callable, Iterable, Sequence
import re
import time
from typing import Any

import gin
import jax

from t5wild.trainer import model_info

_LAYER = re.compile(r'\blayers_\d+\b')
# Optimizers have arrays of one number where they keep nothing.
_PLACEHOLDER = (1,)


def print_page(
    info: model_info.ModelInfo,
    *,
    batch_bytes: int,
    compile_step: Callable[[], Any],
    stream: Any = None,
) -> None:
  """Prints what a run would be made of, and its operative config.

  Args:
    info: The state's description.
    batch_bytes: Bytes of one device's rows of a batch.
    compile_step: Returns the compiled train step.
    stream: Where to print; None means standard output.
  """
  start = time.perf_counter()
  compiled = compile_step()
  seconds = time.perf_counter() - start
  lines = [
      f'mesh: {info.mesh_text}',
      '',
      *_parameters(info),
      '',
      *_others(info),
      '',
      'bytes per device:',
      *_table([
          *((f'{n:,}', kind) for kind, n in info.bytes_by_kind().items()),
          (f'{batch_bytes:,}', 'batch'),
          *_compiled_memory(compiled),
      ]),
      f'(the step compiled in {seconds:.1f} s on '
      f'{jax.default_backend()}; nothing was trained or written)',
      '',
      'operative config:\n' + gin.operative_config_str(),
  ]
  print('\n'.join(lines), file=stream)


def _parameters(info: model_info.ModelInfo) -> list[str]:
  """One line for all arrays that only the number of their layer tells apart."""
  parameters = [v for v in info.variables if v.is_parameter]
  alike: dict[tuple[str, ...], int] = {}
  for each in parameters:
    name = _LAYER.sub('layers_*', each.name.removeprefix('target/'))
    key = (name, str(each.shape), each.dtype, each.spec)
    alike[key] = alike.get(key, 0) + 1
  head = (
      f'parameters: {info.num_parameters:,} in {len(parameters)} arrays '
      '(how many, name, shape, dtype, sharding)'
  )
  return [head, *_table((f'{n} x', *key) for key, n in alike.items())]


def _others(info: model_info.ModelInfo) -> list[str]:
  """One line for each kind of array that the optimizer keeps."""
  others = [v for v in info.variables if not v.is_parameter]
  kept = [v for v in others if v.shape != _PLACEHOLDER]
  sizes: dict[tuple[str, str], list[int]] = {}
  for each in kept:
    kind = (each.name.rsplit('/', 1)[-1], each.dtype)
    sizes.setdefault(kind, []).append(each.size)
  rows = [
      (f'{len(of_kind)} x', name, f'{sum(of_kind):,} numbers', dtype)
      for (name, dtype), of_kind in sizes.items()
  ]
  num_placeholders = len(others) - len(kept)
  head = f'optimizer and other state: {sum(v.size for v in kept):,} numbers'
  if num_placeholders:
    head += f', and {num_placeholders} placeholders of what it does not keep'
  return [head, *_table(rows)]


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
  """Columns as wide as they must be; the first is set to the right."""
  rows = list(rows)
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
      f'  {"  ".join(map(_padded, row, widths, range(len(row))))}'.rstrip()
      for row in rows
  ]


def _padded(cell: str, width: int, column: int) -> str:
  return cell.ljust(width) if column else cell.rjust(width)


def _compiled_memory(compiled: Any) -> list[tuple[str, str]]:
  """What the compiler says that a step needs on each device."""
  memory = compiled.memory_analysis()
  if memory is None:
    return [('unknown', 'activations: this backend does not tell')]
  # Outputs that take over the donated state's memory are counted once.
  total = (
      memory.argument_size_in_bytes
      + memory.output_size_in_bytes
      - memory.alias_size_in_bytes
      + memory.temp_size_in_bytes
  )
  return [
      (
          f'{memory.temp_size_in_bytes:,}',
          'temporary memory of the step: activations, gradients and work '
          'space, at its peak',
      ),
      (f'{total:,}', 'the step in all'),
  ]
