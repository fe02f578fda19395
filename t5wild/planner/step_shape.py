# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What of a recipe the memory and time of its step follow from; no JAX."""

from collections.abc import Mapping
import dataclasses

from t5wild.planner import formulas


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepShape:
  """What of a recipe the memory of its step follows from.

  Attributes:
    model: the model's sizes.
    batch: rows of the global batch.
    input_length: encoder positions, 0 without an encoder.
    target_length: decoder positions.
    mesh: axis -> size.
    remat_policy: of the network's configuration.
    num_microbatches: parts of a batch in memory one at a time.
    activation_bytes: of one number of the activations.
    parameters_are_sharded: whether parameters are also split over `data`.
    activations_are_2d: whether the embed axis of activations is split over
      `model`.
    attention_is_fused: no array of [batch, heads, queries, keys] in memory.
    attention_features: that fused kernels add to each head.
    dropout: whether there is any.
    scan_layers: layers are one loop.
    quantization: 'fp8' or 'int8' = all dense layers but the scores of tokens
      multiply such numbers; None = numbers of the activations' type.
    moments_are_apart: what the layers kept is gone when the gradients of the
      tables of tokens are summed, see `memory.estimate`.
  """

  model: formulas.ModelShape
  batch: int
  input_length: int
  target_length: int
  mesh: Mapping[str, int]
  remat_policy: str = 'none'
  num_microbatches: int = 1
  activation_bytes: int = 2
  parameters_are_sharded: bool = False
  activations_are_2d: bool = False
  attention_is_fused: bool = False
  attention_features: int = 0
  dropout: bool = False
  scan_layers: bool = True
  quantization: str | None = None
  moments_are_apart: bool = True

  def axis(self, name: str) -> int:
    """Size of a mesh axis; 1 where there is none."""
    return self.mesh.get(name, 1)

  @property
  def rows(self) -> float:
    """Rows of a microbatch on one device."""
    ways = self.axis('replica') * self.axis('data') * self.axis('expert')
    return max(1.0, self.batch / ways / self.num_microbatches)

  @property
  def gathers_parameters(self) -> bool:
    """Whether parameters come together from devices for their products."""
    return self.parameters_are_sharded and self.axis('data') > 1

  @property
  def gathered_bytes(self) -> int:
    """Of one number of a parameter that devices send each other."""
    return 1 if self.quantization else self.activation_bytes

  @property
  def heads(self) -> float:
    """Heads of one device; they stay whole where they do not divide."""
    ways = self.axis('model')
    whole = self.model.num_heads
    return whole / ways if whole % ways == 0 else whole
