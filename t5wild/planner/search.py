# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to spread a recipe over a machine, predicted and ranked; no JAX."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools
import math
from typing import Any

from t5wild import hardware
from t5wild.planner import memory
from t5wild.planner import remedies
from t5wild.planner import step_shape
from t5wild.planner import timing
from t5wild.planner import topologies

_AXES = ('replica', 'data', 'model', 'sequence', 'expert')
_MODEL_SIZES = (1, 2, 4, 8)
_SEQUENCE_SIZES = (2, 4, 8)
_LEAST_PIECE = 512  # of a row; smaller ones are not worth sending keys for
_MICROBATCHES = (1, 2, 4, 8, 16, 32)
# How far predictions of memory were from the compilers' (docs/scale.md).
MARGIN = 1.25
ACTIVATION_BYTES = {'bfloat16': 2, 'float16': 2, 'float32': 4}
_BESIDE_8_BITS = 'bfloat16'  # activations where dense layers are 8-bit


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
  """How state and activations lie on the machine.

  Attributes:
    replica: copies of what is sharded over `data`.
    data: size of the data axis.
    model: size of the model axis.
    parameter_dims: `parameter_partitioning_dims`.
    activation_dims: `activation_partitioning_dims`.
    sequence: pieces that a row is cut into.
  """

  replica: int
  data: int
  model: int
  parameter_dims: int
  activation_dims: int
  sequence: int = 1

  @property
  def mesh(self) -> dict[str, int]:
    """Axis -> size, of every axis."""
    sizes = dict.fromkeys(_AXES, 1)
    return sizes | {
        'replica': self.replica, 'data': self.data, 'model': self.model,
        'sequence': self.sequence,
    }  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
  """A way to train, and what is predicted of it.

  Attributes:
    split: over the machine.
    step: everything that the predictions follow from.
    dtype: of the activations; what of them is 8-bit says `step`.
    memory: predicted bytes of a device.
    time: predicted seconds.
    fits: whether the memory suffices with `MARGIN` to spare.
  """

  split: Split
  step: step_shape.StepShape
  dtype: str
  memory: memory.Estimate
  time: timing.StepTime
  fits: bool

  @property
  def precision(self) -> str:
    """As `--dtypes` names it."""
    return self.step.quantization or self.dtype

  @property
  def typical_seconds(self) -> float:
    """Between best and worst."""
    return math.sqrt(self.time.best * self.time.worst)


def splits(
    topology: topologies.Topology,
    *,
    num_heads: int,
    batch: int,
    lengths: Sequence[int] = (),
) -> Iterator[Split]:
  """Every split that is worth a look.

  The model and sequence axes stay within a fast domain together, and divide the
  heads and the lengths; rows divide over replica x data; replicas are as many
  as there are domains, or fewer.

  Args:
    topology: the machine.
    num_heads: of attention.
    batch: rows of the global batch.
    lengths: of the model's features; long ones may be cut into pieces.
  """
  devices = topology.num_devices
  domain = topology.devices_of_fast_domain
  inner = [
      (model, sequence)
      for model, sequence in _inner(topology, num_heads, lengths)
      if batch % (devices // model // sequence) == 0
  ]
  for (model, sequence), replica, parameter_dims, activation_dims in (
      itertools.product(inner, _divisors(devices // domain), (1, 2), (1, 2))
  ):
    is_same_as_more_data = replica > 1 and parameter_dims == 1
    if is_same_as_more_data or (activation_dims == 2 and model == 1):
      continue
    yield Split(
        replica=replica,
        data=devices // model // sequence // replica,
        model=model,
        parameter_dims=parameter_dims,
        activation_dims=activation_dims,
        sequence=sequence,
    )


def _inner(
    topology: topologies.Topology, num_heads: int, lengths: Sequence[int]
) -> list[tuple[int, int]]:
  """Sizes of the model and sequence axes that heads and lengths allow."""
  return [
      (model, sequence)
      for model in _MODEL_SIZES
      for sequence in _sequence_sizes(lengths)
      if topology.devices_of_fast_domain % (model * sequence) == 0
      and num_heads % model == 0
  ]


def least_rows(
    topology: topologies.Topology,
    *,
    num_heads: int,
    lengths: Sequence[int] = (),
) -> int:
  """The smallest batch that there are splits for; so are its multiples."""
  return topology.num_devices // max(
      model * sequence
      for model, sequence in _inner(topology, num_heads, lengths)
  )


def _sequence_sizes(lengths: Sequence[int]) -> list[int]:
  """In how many pieces a row may be cut; all features are cut alike."""
  long = max(lengths, default=0)
  return [1] + [
      n
      for n in _SEQUENCE_SIZES
      if long >= n * _LEAST_PIECE and all(one % n == 0 for one in lengths)
  ]


def lengths_of(facts: Mapping[str, Any]) -> list[int]:
  """Of the features of a recipe's batch."""
  return [shape[1] for shape in facts['batch'].values() if len(shape) == 2]


def _divisors(number: int) -> list[int]:
  return [n for n in range(1, number + 1) if number % n == 0]


def candidates(
    facts: Mapping[str, Any],
    topology: topologies.Topology,
    *,
    sizes_of: Mapping[Split, Mapping[str, int]],
    precisions: Sequence[str],
) -> list[Candidate]:
  """Every way with its predictions, the fastest that fits first.

  Args:
    facts: of the recipe.
    topology: the machine.
    sizes_of: split -> bytes of a device by kind, counted.
    precisions: to try, see `precisions_on`.
  """
  given = remedies.step_shape_of(facts)
  found = [
      _candidate(facts, topology, given, split, sizes, policy, parts, each)
      for split, sizes in sizes_of.items()
      for policy in memory.REMAT_POLICIES
      for parts in _MICROBATCHES
      if given.batch % (parts * split.replica * split.data) == 0
      for each in precisions
  ]
  return sorted(found, key=_rank)


def _rank(candidate: Candidate) -> tuple[Any, ...]:
  """Fastest first; of equals the one with more memory to spare."""
  if not candidate.fits:
    return (True, candidate.memory.peak)
  return (False, candidate.typical_seconds, candidate.memory.peak)


def _candidate(
    facts, topology, given, split, sizes, policy, parts, precision
) -> Candidate:
  is_8_bit = precision in timing.TYPE_OF_PRODUCTS
  dtype = _BESIDE_8_BITS if is_8_bit else precision
  step = dataclasses.replace(
      given,
      mesh=split.mesh,
      remat_policy=policy,
      num_microbatches=parts,
      activation_bytes=ACTIVATION_BYTES[dtype],
      quantization=precision if is_8_bit else None,
      # No kernel is for float32.
      attention_is_fused=given.attention_is_fused and dtype != 'float32',
      parameters_are_sharded=split.parameter_dims == 2,
      activations_are_2d=split.activation_dims == 2,
  )
  state = sizes['parameters'] + sizes['optimizer state']
  needed = memory.estimate(
      step,
      state_bytes=state,
      gradient_bytes=sizes['gradients (float32)'],
  )
  return Candidate(
      split=split,
      step=step,
      dtype=dtype,
      memory=needed,
      time=timing.estimate(
          step,
          topology,
          dtype=dtype,
          num_parameters=facts['num_parameters'],
          state_bytes=state,
      ),
      fits=needed.peak * MARGIN <= topology.chip.memory_bytes,
  )


def precisions_on(chip: hardware.Chip) -> list[str]:
  """What a chip has products of: types of activations, 'fp8' and 'int8'."""
  known = chip.peak_flops_per_second
  low = timing.TYPE_OF_PRODUCTS
  return sorted(set(ACTIVATION_BYTES) & set(known)) + [
      name for name, dtype in low.items() if dtype in known
  ]


def precision_of(facts: Mapping[str, Any], chip: hardware.Chip) -> str:
  """The recipe's own; where a chip has no such products, its activations'."""
  own = facts.get('quantization')
  return own if own in precisions_on(chip) else dtype_of(facts)


def dtype_of(facts: Mapping[str, Any]) -> str:
  """The recipe's type of activations, as the table of chips names it."""
  for dtype in ACTIVATION_BYTES:
    if dtype in facts['dtype']:
      return dtype
  return 'float32'


def gin_text(candidate: Candidate, *, config: str, head: str) -> str:
  """The gin file that trains so, to be given after the recipe.

  Args:
    candidate: the way.
    config: the network's configuration class: 'T5Config', ...
    head: comment lines.
  """
  split = candidate.split
  mesh = {axis: n for axis, n in split.mesh.items() if n > 1} or {'data': 1}
  module = 'transformer' if config == 'T5Config' else 'decoder_only'
  parts = candidate.step.num_microbatches
  return '\n'.join([
      *(f'# {line}'.rstrip() for line in head.splitlines()),
      'from __gin__ import dynamic_registration',
      '',
      'from t5wild import partitioning',
      'from t5wild import trainer',
      f'from t5wild.networks import {module}',
      '',
      f'partitioning.PjitPartitioner.mesh_shape = {mesh}',
      'partitioning.standard_logical_axis_rules:',
      f'  parameter_partitioning_dims = {split.parameter_dims}',
      f'  activation_partitioning_dims = {split.activation_dims}',
      f'trainer.Trainer.num_microbatches = {parts if parts > 1 else None}',
      f'{module}.{config}.remat_policy = {candidate.step.remat_policy!r}',
      f'{module}.{config}.dtype = {candidate.dtype!r}',
      f'{module}.{config}.quantization = {candidate.step.quantization!r}',
      '',
  ])
