# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a model costs by arithmetic alone: operations and parameters; no JAX."""

import dataclasses
from typing import Any

BACKWARD_AND_FORWARD = 3  # a product's backward pass is two more products


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelShape:
  """The sizes that a transformer's cost follows from.

  Attributes:
    num_encoder_layers: 0 for a decoder-only model.
    num_decoder_layers: layers with cross attention if there is an encoder.
    emb_dim: width of the residual stream.
    mlp_dim: width inside the MLP.
    num_heads: attention heads.
    head_dim: width of one head.
    vocab_size: rows of the embedding and columns of the logits.
    num_mlp_branches: input products of the MLP, 2 if gated.
    logits_via_embedding: whether the logits reuse the embedding.
    num_relative_buckets: buckets of the relative position bias, per stack; 0
      if positions are told otherwise.
    num_kv_heads: heads of keys and values; None = one per attention head.
  """

  num_encoder_layers: int
  num_decoder_layers: int
  emb_dim: int
  mlp_dim: int
  num_heads: int
  head_dim: int
  vocab_size: int
  num_mlp_branches: int = 2
  logits_via_embedding: bool = False
  num_relative_buckets: int = 32
  num_kv_heads: int | None = None

  def __post_init__(self):
    """Refuses sizes that no model has."""
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if value is None:
        continue
      least = 0 if 'layers' in field.name or 'relative' in field.name else 1
      if not isinstance(value, bool) and value < least:
        raise ValueError(
            f'{field.name} = {value!r}; expected at least {least}; check the '
            'network configuration.'
        )

  @property
  def joined_kv(self) -> int:
    """Width of all heads together."""
    return self.num_heads * self.head_dim

  @property
  def joined_shared_kv(self) -> int:
    """Width of all heads of keys, or of values, together."""
    return (self.num_kv_heads or self.num_heads) * self.head_dim


def model_shape_of(config: Any) -> ModelShape:
  """The shape of a network's configuration, by T5Config's field names.

  A decoder-only configuration has `num_layers` instead of layers on two sides.
  """
  is_decoder_only = hasattr(config, 'num_layers')
  positions = getattr(config, 'positions', 'relative_bias')
  return ModelShape(
      num_encoder_layers=0 if is_decoder_only else config.num_encoder_layers,
      num_decoder_layers=(
          config.num_layers if is_decoder_only else config.num_decoder_layers
      ),
      emb_dim=config.emb_dim,
      mlp_dim=config.mlp_dim,
      num_heads=config.num_heads,
      head_dim=config.head_dim,
      vocab_size=config.vocab_size,
      num_mlp_branches=len(config.mlp_activations),
      logits_via_embedding=config.logits_via_embedding,
      num_relative_buckets=32 if positions.startswith('relative') else 0,
      num_kv_heads=getattr(config, 'num_kv_heads', None),
  )


def forward_flops(
    shape: ModelShape, *, batch: int, input_length: int = 0, target_length: int
) -> float:
  """Operations of the matrix products of one forward pass.

  With b = batch, n = input_length, m = target_length, E = emb_dim, F = mlp_dim,
  J = num_heads x head_dim, K = num_kv_heads x head_dim (as J where keys are not
  shared), V = vocab_size, g = num_mlp_branches, a product of [p, q] and [q, r]
  counting 2pqr:

    encoder layer   2bn (2EJ + 2EK + 2nJ + (g+1)EF)
    decoder layer   2bm (2EJ + 2EK + 2mJ + (g+1)EF)
      with cross attention: + 2bm (2EJ + 2nJ) + 2bn 2EK
    logits          2bm EV

  Attention counts every pair of positions: a causal mask saves nothing here, as
  in the usual definition of model operations (Chowdhery et al., PaLM,
  arXiv:2204.02311, appendix B). Looking up embeddings and position biases,
  norms, softmax and activations count as nothing.

  Args:
    shape: the model.
    batch: sequences.
    input_length: encoder positions (0 for a decoder-only model).
    target_length: decoder positions.
  """
  width, joined = shape.emb_dim, shape.joined_kv
  shared = shape.joined_shared_kv
  projections = 2 * width * (joined + shared)
  mlp = (shape.num_mlp_branches + 1) * width * shape.mlp_dim
  inputs, targets = 2.0 * batch * input_length, 2.0 * batch * target_length
  encoder_layer = inputs * (
      projections + 2 * input_length * joined + mlp
  )
  decoder_layer = targets * (
      projections + 2 * target_length * joined + mlp
  )
  if shape.num_encoder_layers:
    decoder_layer += targets * (2 * width * joined + 2 * input_length * joined)
    decoder_layer += inputs * 2 * width * shared
  return (
      shape.num_encoder_layers * encoder_layer
      + shape.num_decoder_layers * decoder_layer
      + targets * width * shape.vocab_size
  )


def train_step_flops(
    shape: ModelShape, *, batch: int, input_length: int = 0, target_length: int
) -> float:
  """Model operations of one training step: three times the forward pass.

  The backward pass makes two products (for the inputs and for the weights) of
  each forward one. Recomputation under remat is work, not model operations, and
  the optimiser's element-wise work is not counted, so that MFU compares models
  and not tricks. The arguments are those of `forward_flops`.
  """
  return BACKWARD_AND_FORWARD * forward_flops(
      shape,
      batch=batch,
      input_length=input_length,
      target_length=target_length,
  )


def count_parameters(shape: ModelShape) -> int:
  """Number of parameters of the T5 1.1 architecture with this shape.

  One embedding table for both stacks, one relative bias per stack, RMS norms
  with a scale (two per layer and one per attention to another stack), no
  biases.
  """
  width = shape.emb_dim
  attention = 2 * width * (shape.joined_kv + shape.joined_shared_kv)
  mlp = (shape.num_mlp_branches + 1) * width * shape.mlp_dim
  relative = shape.num_heads * shape.num_relative_buckets
  total = shape.vocab_size * width
  if not shape.logits_via_embedding:
    total += shape.vocab_size * width
  has_encoder = shape.num_encoder_layers > 0
  if has_encoder:
    encoder_layer = attention + mlp + 2 * width
    total += shape.num_encoder_layers * encoder_layer + relative + width
  decoder_layer = (1 + has_encoder) * (attention + width) + mlp + width
  total += shape.num_decoder_layers * decoder_layer + relative + width
  return total
