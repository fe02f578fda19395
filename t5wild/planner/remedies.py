# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What would make a step fit, by arithmetic and with numbers; no JAX.

Each remedy changes one thing of the recipe. Its bytes are the compiler's figure
of the recipe, changed by as much as the arithmetic says that it would change.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import Any

from t5wild.planner import formulas
from t5wild.planner import memory
from t5wild.planner import step_shape

_MICROBATCHES = (2, 4, 8, 16, 32, 64)
_MODEL_AXES = (2, 4, 8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Remedy:
  """One change.

  Attributes:
    what: the change, as a user would make it.
    peak_bytes: of one device, predicted.
    fits: whether that is within the device's memory.
  """

  what: str
  peak_bytes: int
  fits: bool


def step_shape_of(facts: Mapping[str, Any]) -> step_shape.StepShape | None:
  """The step that `worker.describe` tells of; None for foreign networks."""
  if not facts.get('shape'):
    return None
  batch = facts['batch']
  rows, target_length = batch['decoder_target_tokens']
  sizes = facts['bytes_by_kind']
  width = 2 if '16' in facts['dtype'] else 4
  mesh = facts['mesh']
  whole = 4 * facts['num_parameters']
  return step_shape.StepShape(
      model=formulas.ModelShape(**facts['shape']),
      batch=rows,
      input_length=batch.get('encoder_input_tokens', (0, 0))[1],
      target_length=target_length,
      mesh=mesh,
      remat_policy=facts['remat_policy'] or 'none',
      num_microbatches=facts['num_microbatches'],
      activation_bytes=width,
      attention_is_fused=facts.get('attention_features') is not None,
      attention_features=facts.get('attention_features') or 0,
      quantization=facts.get('quantization'),
      moments_are_apart=facts.get('platform') != 'tpu',
      # By what they take: rules may be a user's own.
      parameters_are_sharded=(
          mesh['data'] > 1
          and sizes['parameters'] * mesh['model'] < 0.75 * whole
      ),
  )


def find(
    facts: Mapping[str, Any], *, peak_bytes: int, memory_bytes: int
) -> list[Remedy]:
  """All single changes, those that fit first.

  Args:
    facts: of `worker.describe`.
    peak_bytes: what the compiler says of the recipe as it is.
    memory_bytes: of a device.
  """
  step = step_shape_of(facts)
  if step is None:
    return []
  sizes = facts['bytes_by_kind']
  now = _estimate(step, step, sizes)
  found = []
  for what, changed in _changes(step):
    peak = peak_bytes + _estimate(changed, step, sizes) - now
    found.append(Remedy(
        what=what, peak_bytes=int(max(peak, 0)), fits=peak <= memory_bytes
    ))
  return sorted(found, key=lambda each: (not each.fits, -each.peak_bytes
                                         if each.fits else each.peak_bytes))


def _estimate(
    changed: step_shape.StepShape,
    given: step_shape.StepShape,
    sizes: Mapping[str, int],
) -> float:
  """Peak bytes where the state is split more or less than it is given."""
  share = _ways(given) / _ways(changed)
  return memory.estimate(
      changed,
      state_bytes=share * (sizes['parameters'] + sizes['optimizer state']),
      gradient_bytes=share * sizes['gradients (float32)'],
  ).peak


def _ways(step: step_shape.StepShape) -> int:
  """In how many parts the parameters lie."""
  data = step.axis('data') if step.parameters_are_sharded else 1
  return data * step.axis('model')


def _changes(
    step: step_shape.StepShape,
) -> Iterator[tuple[str, step_shape.StepShape]]:
  for policy in _more_thorough(step.remat_policy):
    yield (
        f"remat_policy = '{policy}'",
        dataclasses.replace(step, remat_policy=policy),
    )
  if not step.parameters_are_sharded and step.axis('data') > 1:
    yield (
        'standard_logical_axis_rules.parameter_partitioning_dims = 2',
        dataclasses.replace(step, parameters_are_sharded=True),
    )
  for parts in _MICROBATCHES:
    if parts > step.num_microbatches and step.rows * step.num_microbatches >= (
        parts
    ):
      yield (
          f'trainer.Trainer.num_microbatches = {parts}',
          dataclasses.replace(step, num_microbatches=parts),
      )
  yield from _meshes(step)


def _more_thorough(policy: str) -> Sequence[str]:
  policies = memory.REMAT_POLICIES
  return policies[policies.index(policy) + 1 :]


def _meshes(
    step: step_shape.StepShape,
) -> Iterator[tuple[str, step_shape.StepShape]]:
  devices = memory.pieces_of(step.mesh)
  for model in _MODEL_AXES:
    if model == step.axis('model') or devices % model:
      continue
    if step.model.num_heads % model or step.batch % (devices // model):
      continue
    mesh = dict.fromkeys(step.mesh, 1) | {
        'data': devices // model, 'model': model
    }
    yield (
        f'PjitPartitioner.mesh_shape = {{"data": {devices // model}, '
        f'"model": {model}}}'.replace('"', "'"),
        dataclasses.replace(step, mesh=mesh),
    )
