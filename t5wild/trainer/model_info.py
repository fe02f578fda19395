# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a state consists of: names, shapes, shardings, bytes per device."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

from absl import logging
import flax
import jax

from t5wild import hardware
from t5wild import run_dir as run_dir_lib
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.planner import formulas
from t5wild.trainer import initializer
from t5wild.trainer import metrics_manager
from t5wild.trainer import xla_peak

_FLOAT32_BYTES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variable:
  """One array of the state.

  Attributes:
    name: Path joined by '/': `target/encoder/...`.
    shape: Global shape.
    dtype: Name of its dtype.
    spec: How it lies on the mesh.
    bytes_per_device: Bytes of one device's shard.
  """

  name: str
  shape: tuple[int, ...]
  dtype: str
  spec: str
  bytes_per_device: int

  @property
  def size(self) -> int:
    """Number of elements of the global array."""
    return math.prod(self.shape)

  @property
  def is_parameter(self) -> bool:
    """Whether it belongs to the model, not to the optimiser."""
    return self.name.startswith('target/')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelInfo:
  """All arrays of a state, and the mesh they lie on."""

  variables: Sequence[Variable]
  mesh: Mapping[str, int]

  @property
  def num_parameters(self) -> int:
    """Elements of the model's parameters."""
    return sum(v.size for v in self.variables if v.is_parameter)

  @property
  def mesh_text(self) -> str:
    """Every axis of the mesh and its size."""
    return ' x '.join(f'{axis} {size}' for axis, size in self.mesh.items())

  def bytes_by_kind(self) -> dict[str, int]:
    """Bytes per device of parameters, optimiser state and gradients."""
    parameters = [v for v in self.variables if v.is_parameter]
    others = [v for v in self.variables if not v.is_parameter]
    return {
        'parameters': sum(v.bytes_per_device for v in parameters),
        'optimizer state': sum(v.bytes_per_device for v in others),
        'gradients (float32)': sum(
            v.bytes_per_device // _itemsize(v.dtype) * _FLOAT32_BYTES
            for v in parameters
        ),
    }

  def text(self) -> str:
    """The whole description, a line an array."""
    lines = [f'mesh: {self.mesh_text}', '']
    width = max(len(v.name) for v in self.variables)
    for v in self.variables:
      lines.append(
          f'{v.name:<{width}}  {v.size:>12,}  {v.shape!s:<20}  {v.dtype:<9}  '
          f'{v.spec}'
      )
    lines += ['', f'parameters: {self.num_parameters:,}']
    lines += [
        f'bytes per device, {kind}: {count:,}'
        for kind, count in self.bytes_by_kind().items()
    ]
    return '\n'.join(lines) + '\n'


def describe(
    states: initializer.TrainStateInitializer,
    partitioner: partitioner_lib.BasePartitioner,
) -> ModelInfo:
  """Describes the state that `states` would make; allocates nothing."""
  return _describe(
      states.global_train_state_shape, states.train_state_axes, partitioner
  )


def describe_state(
    state: Any, partitioner: partitioner_lib.BasePartitioner
) -> ModelInfo:
  """Describes a state of arrays or shapes as the partitioner would lay it."""
  return _describe(state, partitioner.get_mesh_axes(state), partitioner)


def _describe(
    state: Any, axes: Any, partitioner: partitioner_lib.BasePartitioner
) -> ModelInfo:
  shapes = _flat(state.state_dict())
  specs = _flat(axes.state_dict())
  mesh = dict(partitioner.mesh.shape)
  variables = []
  for name, leaf in sorted(shapes.items()):
    spec = specs.get(name)
    variables.append(
        Variable(
            name=name,
            shape=tuple(leaf.shape),
            dtype=leaf.dtype.name,
            spec=str(spec),
            bytes_per_device=_shard_bytes(leaf, spec, mesh),
        )
    )
  return ModelInfo(variables=variables, mesh=mesh)


def write(info: ModelInfo, run_dir: run_dir_lib.RunDir) -> None:
  """Writes model-info.txt."""
  from etils import epath  # bucket paths as well as folders

  path = epath.Path(run_dir.model_info)
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(info.text())
  logging.info(
      '%s parameters on %d x %s, mesh %s; details in %s',
      f'{info.num_parameters:,}', math.prod(info.mesh.values()),
      jax.devices()[0].device_kind, info.mesh_text, path,
  )


def step_cost(
    model: Any, input_shapes: Mapping[str, tuple[int, ...]]
) -> metrics_manager.StepCost | None:
  """What MFU is computed from; None when the network is not ours to count."""
  config = getattr(getattr(model, 'module', None), 'config', None)
  targets = input_shapes.get('decoder_target_tokens')
  if config is None or targets is None:
    return None
  try:
    shape = formulas.model_shape_of(config)
  except AttributeError as error:
    logging.info('No MFU: the network config does not tell its sizes (%s)',
                 error)
    return None
  hint = hint_of_products(config, jax.devices()[0].device_kind)
  if hint is not None:
    logging.warning('%s', hint)
  inputs = input_shapes.get('encoder_input_tokens', (0, 0))
  return metrics_manager.StepCost(
      flops_per_step=formulas.train_step_flops(
          shape,
          batch=targets[0],
          input_length=inputs[1],
          target_length=targets[1],
      ),
      peak_flops_per_second=_peak(str(config.dtype)),
  )


def hint_of_products(config: Any, device_kind: str) -> str | None:
  """What is to be said where FP8 brings nothing; None = nothing.

  Args:
    config: of a network.
    device_kind: JAX's name of a device.
  """
  chip = hardware.chip_of(device_kind)
  if getattr(config, 'quantization', None) != 'fp8' or chip is None:
    return None
  if 'float8' in chip.peak_flops_per_second:
    return None
  return (
      f"{type(config).__name__}.quantization is 'fp8' on {chip.name}, which "
      'multiplies no 8-bit floats: they are rounded to FP8 and multiplied as '
      'wider numbers, slower than without. Expected an H100 or newer (what has '
      'float8 in t5wild/hardware.py): set quantization to None'
  )


def _peak(dtype: str) -> float | None:
  device = jax.devices()[0]
  if device.platform == 'cpu':
    # Virtual CPU devices share the cores that the measured peak is of; several
    # processes on one machine share them too, which no process can see. CPUs
    # compute bfloat16 products by way of float32.
    return xla_peak.highest_matmul_flops_per_second()
  chip = hardware.chip_of(device.device_kind)
  try:
    return chip.peak(dtype) * jax.device_count() if chip else None
  except ValueError:
    return None


def _flat(state_dict: Mapping[str, Any]) -> dict[str, Any]:
  flat = flax.traverse_util.flatten_dict(state_dict, sep='/')
  return {name: leaf for name, leaf in flat.items() if leaf is not None}


def _shard_bytes(leaf, spec, mesh: Mapping[str, int]) -> int:
  pieces = 1
  for entry in spec or ():
    axes = (entry,) if isinstance(entry, str) else tuple(entry or ())
    pieces *= math.prod(mesh[axis] for axis in axes)
  return math.prod(leaf.shape) * leaf.dtype.itemsize // pieces


def _itemsize(dtype: str) -> int:
  return jax.numpy.dtype(dtype).itemsize
