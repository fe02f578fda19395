# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a training step takes, as a range, by arithmetic; no JAX.

Nothing of it is measured here: it is what follows from the makers' figures and
from the assumptions below, of which each says where it is from. docs/scale.md
holds it against published runs.

- Products run at `PRODUCT_SHARE` of a chip's peak. GPUs: large bf16 products
  under cuBLAS, and a GPU's clock under load, come to 0.55 to 0.75 of the data
  sheet's figure; small or awkward ones to less. TPUs: 0.6 to 0.85.
- All else reads and writes memory at `MEMORY_SHARE` of its bandwidth: each
  array that the backward pass reads, `PASSES` times, and the optimizer's state.
- Products of 8-bit numbers run at the same share of their own peak, beside
  those that stay as they are; their operands are made 8-bit in
  `QUANTIZING_PASSES`, and parameters are gathered so.
- Collectives run at `LINK_SHARE` of a link's speed, rings of n moving (n-1)/n
  of the bytes, an all-reduce twice that. A group that has k devices in each
  host uses k ports of it at once (NCCL's rings do).
- Rows in pieces (`sequence`) gather keys and values of the other pieces, which
  attention waits for.
- Gathering parameters and scattering gradients may be hidden behind computing,
  wholly at best and not at all at worst. What tensor parallelism sums in every
  layer is waited for.
"""

from collections.abc import Mapping
import dataclasses

from t5wild import hardware
from t5wild.planner import formulas
from t5wild.planner import memory
from t5wild.planner import step_shape
from t5wild.planner import topologies

# Of each two the best case comes first.
PRODUCT_SHARE = {
    'gpu': (0.72, 0.45), 'tpu': (0.80, 0.50), 'cpu': (1.0, 0.6)
}  # fmt: skip
MEMORY_SHARE = (0.9, 0.6)
LINK_SHARE = (0.85, 0.5)
PASSES = (3, 6)  # write, read, and once more for the gradient; unfused: twice
# Of an operand's 8-bit numbers: written by what makes them; or else their
# 16-bit ones read for the largest, read again, and written.
QUANTIZING_PASSES = (1, 5)
# The name that the table of chips has for products of a quantization.
TYPE_OF_PRODUCTS = {'fp8': 'float8', 'int8': 'int8'}
_FLOAT32 = 4
_LATENCY_SECONDS = (5e-6, 3e-5)  # of one collective


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepTime:
  """Seconds of a step, (best, worst) each.

  Attributes:
    products: matrix products.
    rest: all that is bound by memory.
    hideable: collectives that computing may go on beside.
    exposed: collectives that every layer waits for.
  """

  products: tuple[float, float]
  rest: tuple[float, float]
  hideable: tuple[float, float]
  exposed: tuple[float, float]

  @property
  def best(self) -> float:
    """All hidden that can be."""
    computing = self.products[0] + self.rest[0]
    return max(computing, self.hideable[0]) + self.exposed[0]

  @property
  def worst(self) -> float:
    """One after the other."""
    return (
        self.products[1] + self.rest[1] + self.hideable[1] + self.exposed[1]
    )


def estimate(
    step: step_shape.StepShape,
    topology: topologies.Topology,
    *,
    dtype: str,
    num_parameters: int,
    state_bytes: float,
) -> StepTime:
  """Returns the range of a step's seconds.

  Args:
    step: what is trained, and how it is split.
    topology: on what.
    dtype: of the activations.
    num_parameters: of the model.
    state_bytes: of parameters and optimizer state on one device.
  """
  chip = topology.chip
  seconds = _product_seconds(step, topology, dtype)
  shares = PRODUCT_SHARE[topology.platform]
  moved = _memory_traffic(step, state_bytes)
  hideable, exposed = _collectives(step, topology, num_parameters)
  return StepTime(
      products=(seconds / shares[0], seconds / shares[1]),
      rest=tuple(
          bytes_ / chip.memory_bytes_per_second / share
          for bytes_, share in zip(moved, MEMORY_SHARE, strict=True)
      ),
      hideable=hideable,
      exposed=exposed,
  )


def _product_seconds(
    step: step_shape.StepShape, topology: topologies.Topology, dtype: str
) -> float:
  """Seconds of all matrix products at the chip's peak.

  Where a chip has none of 8-bit numbers, they take as long as the others.
  """
  chip, peak = topology.chip, topology.chip.peak(dtype)
  low = memory.quantized_flops(step)
  low_peak = chip.peak_flops_per_second.get(
      TYPE_OF_PRODUCTS.get(step.quantization), peak
  )
  seconds = low / low_peak + (memory.step_flops(step) - low) / peak
  return seconds / topology.num_devices


def _memory_traffic(
    step: step_shape.StepShape, state_bytes: float
) -> tuple[float, float]:
  """Bytes of a device that a step moves through its memory, (best, worst)."""
  activations = step.num_microbatches * memory.activation_bytes(step)
  operands = step.num_microbatches * memory.quantized_bytes(step)
  optimizer = 3 * state_bytes  # read, written, and gradients read
  return tuple(
      passes * activations + more * operands + optimizer
      for passes, more in zip(PASSES, QUANTIZING_PASSES, strict=True)
  )


def _collectives(
    step: step_shape.StepShape,
    topology: topologies.Topology,
    num_parameters: int,
) -> tuple[tuple[float, float], tuple[float, float]]:
  """Seconds of what can be hidden, and of what is waited for."""
  model, data = step.axis('model'), step.axis('data')
  replica, parts = step.axis('replica'), step.num_microbatches
  of_model = num_parameters / model
  inner = model * step.axis('sequence') * step.axis('expert')
  hideable = [0.0, 0.0]
  if step.parameters_are_sharded and data > 1:
    # Gathered for the forward and again for the backward pass, scattered once.
    width = 2 * step.gathered_bytes + step.activation_bytes
    payload = parts * width * of_model
    _add(hideable, payload, data, topology, stride=inner)
    of_model /= data
  elif data > 1:
    _add(hideable, 2 * _FLOAT32 * of_model, data, topology, stride=inner)
  if replica > 1:
    _add(
        hideable, 2 * _FLOAT32 * of_model, replica, topology,
        stride=inner * data,
    )  # fmt: skip
  exposed = [0.0, 0.0]
  if model > 1:
    payload, count = _tensor_parallel(step)
    # `model` comes before `sequence` in a mesh: its neighbours lie further off.
    _add(
        exposed, 2 * parts * payload, model, topology,
        stride=step.axis('sequence') * step.axis('expert'), count=count,
    )  # fmt: skip
  if step.axis('sequence') > 1:
    _add_sequence(hideable, exposed, step, topology, of_model)
  return tuple(hideable), tuple(exposed)


def _add_sequence(
    hideable: list[float],
    exposed: list[float],
    step: step_shape.StepShape,
    topology: topologies.Topology,
    num_parameters: float,
) -> None:
  """Adds what pieces of rows send: keys and values, and parts of gradients.

  Keys and values are gathered for the forward and the backward pass, once more
  under remat, and their gradients scattered.
  """
  size, stride = step.axis('sequence'), step.axis('expert')
  passes = 3 + (step.remat_policy != 'none')
  payload = passes * step.num_microbatches * memory.gathered_key_bytes(step)
  _add(exposed, payload, size, topology, stride=stride)
  _add(hideable, 2 * _FLOAT32 * num_parameters, size, topology, stride=stride)


def _tensor_parallel(step: step_shape.StepShape) -> tuple[float, int]:
  """Bytes that layers sum over the model axis, and how often."""
  shape = step.model
  passes = 3 if step.remat_policy == 'full' else 2
  width = step.activation_bytes * shape.emb_dim * step.rows
  width /= step.axis('sequence')
  has_encoder = bool(shape.num_encoder_layers)
  encoder = 2 * shape.num_encoder_layers * step.input_length
  decoder = (2 + has_encoder) * shape.num_decoder_layers * step.target_length
  count = 2 * shape.num_encoder_layers + 3 * shape.num_decoder_layers
  return passes * width * (encoder + decoder), passes * count


def _add(
    total: list[float],
    payload: float,
    size: int,
    topology: topologies.Topology,
    *,
    stride: int,
    count: int = 100,
) -> None:
  """Adds the seconds of collectives over an axis, (best, worst)."""
  speed = axis_speed(topology, size=size, stride=stride)
  moved = payload * (size - 1) / size
  for which in (0, 1):
    total[which] += moved / (speed * LINK_SHARE[which])
    total[which] += count * _LATENCY_SECONDS[which]


def axis_speed(
    topology: topologies.Topology, *, size: int, stride: int
) -> float:
  """Bytes per second that a device can take in from its group.

  Args:
    topology: the machine.
    size: of the axis.
    stride: devices between neighbours along it: the product of the axes after
      it.
  """
  chip = topology.chip
  domain = topology.devices_of_fast_domain
  fast = _fast_speed(chip)
  members = max(1, min(size, domain // stride))
  if stride * size <= domain:
    return fast
  return min(fast, members * chip.network_bytes_per_second)


def _fast_speed(chip: hardware.Chip) -> float:
  # A TPU's ring goes both ways round one axis of the torus.
  return chip.link_bytes_per_second * min(chip.num_links, 2)


def mfu(
    step: step_shape.StepShape,
    topology: topologies.Topology,
    *,
    dtype: str,
    seconds: float,
) -> float:
  """Model operations over what the chips could do in that time."""
  flops = formulas.train_step_flops(
      step.model,
      batch=step.batch,
      input_length=step.input_length,
      target_length=step.target_length,
  )
  peak = topology.num_devices * topology.chip.peak(dtype)
  return flops / (peak * seconds)


def tokens_of_step(step: step_shape.StepShape) -> int:
  """Positions of inputs and targets."""
  return step.batch * (step.input_length + step.target_length)


def money(
    *, seconds: float, num_devices: int, price_per_device_hour: float
) -> float:
  """What so many devices cost for so long."""
  return seconds / 3600 * num_devices * price_per_device_hour


def as_mapping(time: StepTime) -> Mapping[str, object]:
  """For JSON."""
  return {**vars(time), 'best': time.best, 'worst': time.worst}
