# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory one layer takes, by arithmetic; no JAX."""

from t5wild.planner import step_shape

_FLOAT32 = 4
_MASK = 1  # a byte for each element that dropout or a mask decides on


class Layer:
  """Bytes of one layer's arrays on one device."""

  def __init__(self, step: step_shape.StepShape, *, is_decoder: bool):
    """Counts its arrays."""
    self._step = step
    shape = step.model
    length = step.target_length if is_decoder else step.input_length
    split = step.axis('sequence')
    self._has_cross = is_decoder and shape.num_encoder_layers > 0
    self._tokens = step.rows * length / split
    self._keys = step.rows * step.input_length  # of attention to the encoder
    self._pairs = step.rows * step.heads * length / split * length
    self._cross_pairs = (
        step.rows * step.heads * length / split * step.input_length
        if self._has_cross else 0
    )
    model = step.axis('model')
    has_bias = shape.num_relative_buckets > 0
    self._bias = has_bias * step.heads * length / split * length
    self._wide = shape.emb_dim / (model if step.activations_are_2d else 1)
    self._joined = step.heads * shape.head_dim
    self._mlp = shape.mlp_dim / (model if shape.mlp_dim % model == 0 else 1)

  def outputs(self) -> float:
    """Numbers that products with parameters give."""
    shape = self._step.model
    kv = self._joined * (shape.num_kv_heads or shape.num_heads)
    kv /= shape.num_heads
    attention = self._tokens * (self._joined + 2 * kv + self._wide)
    if self._has_cross:
      attention += self._tokens * (self._joined + self._wide)
      attention += self._keys * 2 * kv
    mlp = self._tokens * (shape.num_mlp_branches * self._mlp + self._wide)
    return attention + mlp

  def _read_outputs(self) -> float:
    """Those of them that the backward pass reads: all but the last's."""
    return self.outputs() - self._tokens * self._wide

  def inputs(self) -> float:
    """Numbers that products with parameters read; the encoder's output not."""
    normed = (2 + self._has_cross) * self._tokens * self._wide
    averaged = (1 + self._has_cross) * self._tokens * self._joined
    return normed + averaged + self._tokens * self._mlp

  def _pairs_in_memory(self) -> float:
    fused = self._step.attention_is_fused
    return 0 if fused else self._pairs + self._cross_pairs

  def _everything(self) -> float:
    """Bytes of all arrays that a backward pass without remat reads.

    Without what the last product gives: added to its input, that is the next
    layer's.
    """
    width = self._step.activation_bytes
    blocks = 2 + self._has_cross
    numbers = self._read_outputs()
    numbers += self._of_fused_kernels() + self._pairs_in_memory()
    of_inputs = 1 if self._step.quantization else width
    total = width * numbers + of_inputs * self.inputs()
    if self._step.dropout:
      total += _MASK * blocks * self._tokens * self._wide
    return total

  def gathered_key_bytes(self) -> float:
    """Bytes of keys and values that attention takes in from other pieces."""
    if self._step.axis('sequence') == 1:
      return 0.0
    return self._step.activation_bytes * self._gathered_keys()

  def _of_fused_kernels(self) -> float:
    """Numbers that fused kernels keep beside queries, keys and values.

    Their outputs, and all of it padded by what they add to each head.
    """
    if not self._step.attention_is_fused:
      return 0.0
    shape = self._step.model
    kv = self._joined * (shape.num_kv_heads or shape.num_heads)
    kv /= shape.num_heads
    averaged = (1 + self._has_cross) * self._tokens * self._joined
    keys = 2 * kv * (self._tokens + self._has_cross * self._keys)
    padding = self._step.attention_features / shape.head_dim
    return averaged + padding * (2 * averaged + keys)

  def _of_norms(self) -> float:
    """Bytes that norms keep: their inputs and outputs, in float32."""
    if self._step.activation_bytes == _FLOAT32:
      return 0.0
    blocks = 2 + self._has_cross
    return 2 * _FLOAT32 * blocks * self._tokens * self._wide

  def all_arrays(self) -> float:
    """Bytes of all arrays that a forward pass makes."""
    width = self._step.activation_bytes
    return self._everything() + width * self._tokens * self._wide

  def kept(self) -> float:
    """What stays in memory from the forward to the backward pass."""
    width = self._step.activation_bytes
    inputs = width * self._tokens * self._wide
    policy = self._step.remat_policy
    if policy == 'full':
      return inputs
    if policy == 'minimal':
      return inputs + width * self._read_outputs()
    # Fused kernels read the bias again, `xla` its own pairs.
    bias = width * self._bias if self._step.attention_is_fused else 0.0
    return inputs + self._everything() + self._of_norms() + bias

  def working(self) -> float:
    """The most that is alive while its gradient is made."""
    width = self._step.activation_bytes
    policy = self._step.remat_policy
    recomputed = 0.0 if policy == 'none' else self._everything()
    if policy == 'minimal':
      recomputed -= width * self._read_outputs()
    # Where rows are cut into pieces, keys and values are gathered whole.
    recomputed += self.gathered_key_bytes()
    # A softmax and its gradient are float32; the compilers need one at a time.
    pairs = max(self._pairs, self._cross_pairs)
    softmax = 0 if self._step.attention_is_fused else _FLOAT32 * pairs
    gradients = width * max(
        self._tokens * 3 * self._joined,
        self._tokens * self._step.model.num_mlp_branches * self._mlp,
    )
    bias = 2 * width * self._bias  # and its gradient, of all rows together
    return recomputed + softmax + bias + gradients + self._gathered()

  def _gathered_keys(self) -> float:
    """Numbers of all keys and values of its rows."""
    shape = self._step.model
    share = (shape.num_kv_heads or shape.num_heads) / shape.num_heads
    whole = self._tokens * self._step.axis('sequence')
    return 2 * whole * self._joined * share

  def _gathered(self) -> float:
    """Parameters whole over `data`, and their gradients likewise.

    The largest kernel three times: one that a product reads, the next on its
    way, and the gradient of the last one before it is scattered.
    """
    shape, step = self._step.model, self._step
    if not step.gathers_parameters:
      return 0.0
    largest = shape.emb_dim * max(shape.mlp_dim, shape.joined_kv)
    width = 2 * step.gathered_bytes + step.activation_bytes
    return width * largest / step.axis('model')
