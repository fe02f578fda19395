# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory of a device a training step takes, by arithmetic; no JAX.

State bytes are counted, not guessed, by the caller (they follow from the
rules); here is what the step adds: gradients, what the forward pass keeps for
the backward one, and the most that is alive while one layer or the loss is
worked on. docs/scale.md holds predictions against the compilers'.
"""

from collections.abc import Mapping
import dataclasses
import math

from t5wild.planner import formulas

REMAT_POLICIES = ('none', 'minimal', 'full')
_FLOAT32 = 4
_MASK = 1  # a byte for each element that dropout or a mask decides on


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

  def axis(self, name: str) -> int:
    """Size of a mesh axis; 1 where there is none."""
    return self.mesh.get(name, 1)

  @property
  def rows(self) -> float:
    """Rows of a microbatch on one device."""
    ways = self.axis('replica') * self.axis('data') * self.axis('expert')
    return max(1.0, self.batch / ways / self.num_microbatches)

  @property
  def heads(self) -> float:
    """Heads of one device; they stay whole where they do not divide."""
    ways = self.axis('model')
    whole = self.model.num_heads
    return whole / ways if whole % ways == 0 else whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
  """Bytes of one device.

  Attributes:
    state: parameters and optimizer state.
    gradients: all of them, in float32 and as they come.
    kept: what the forward pass keeps for the backward one.
    working: the most that working on one layer, or on the loss, adds.
  """

  state: float
  gradients: float
  kept: float
  working: float

  @property
  def peak(self) -> float:
    """All together."""
    return self.state + self.gradients + self.kept + self.working


def estimate(
    step: StepShape, *, state_bytes: float, gradient_bytes: float
) -> Estimate:
  """Returns the bytes of one device.

  Args:
    step: what is trained.
    state_bytes: of parameters and optimizer state on a device.
    gradient_bytes: of the gradients on a device.
  """
  encoder = _Layer(step, is_decoder=False)
  decoder = _Layer(step, is_decoder=True)
  shape = step.model
  kept = (
      shape.num_encoder_layers * encoder.kept()
      + shape.num_decoder_layers * decoder.kept()
  )
  layers = [decoder] + [encoder] * bool(shape.num_encoder_layers)
  of_layers = max(layer.working() for layer in layers)
  working = max(_loss_bytes(step), of_layers + _table_gradient_bytes(step))
  return Estimate(
      state=state_bytes,
      gradients=gradient_bytes * _copies(step),
      kept=kept,
      working=working,
  )


def _copies(step: StepShape) -> float:
  """How often gradients count: stacks of layers are cast as a whole.

  Beside the float32 gradients stand the parameters and the gradients in the
  type of the activations, where that is another one.
  """
  if not step.scan_layers or step.activation_bytes == _FLOAT32:
    return 1.0
  return 1.0 + 2 * step.activation_bytes / _FLOAT32


class _Layer:
  """Bytes of one layer's arrays on one device."""

  def __init__(self, step: StepShape, *, is_decoder: bool):
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
    self._wide = shape.emb_dim / (model if step.activations_are_2d else 1)
    self._embed = shape.emb_dim
    self._joined = step.heads * shape.head_dim
    self._mlp = shape.mlp_dim / (model if shape.mlp_dim % model == 0 else 1)

  def _products(self) -> float:
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

  def _pairs_in_memory(self) -> float:
    fused = self._step.attention_is_fused
    return 0 if fused else self._pairs + self._cross_pairs

  def _everything(self) -> float:
    """Bytes of all arrays that a backward pass without remat reads."""
    width = self._step.activation_bytes
    blocks = 2 + self._has_cross
    normed = blocks * self._tokens * self._wide
    averaged = (1 + self._has_cross) * self._tokens * self._joined
    gated = self._tokens * self._mlp
    numbers = self._products() + normed + averaged + gated
    numbers += self._of_fused_kernels() + self._pairs_in_memory()
    total = width * numbers
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
    return self._everything()

  def kept(self) -> float:
    """What stays in memory from the forward to the backward pass."""
    width = self._step.activation_bytes
    inputs = width * self._tokens * self._wide
    policy = self._step.remat_policy
    if policy == 'full':
      return inputs
    if policy == 'minimal':
      return inputs + width * self._products()
    return inputs + self._everything() + self._of_norms()

  def working(self) -> float:
    """The most that is alive while its gradient is made."""
    width = self._step.activation_bytes
    policy = self._step.remat_policy
    recomputed = 0.0 if policy == 'none' else self._everything()
    if policy == 'minimal':
      recomputed -= width * self._products()
    # Where rows are cut into pieces, keys and values are gathered whole.
    recomputed += self.gathered_key_bytes()
    # A softmax and its gradient are float32; the compilers need one at a time.
    pairs = max(self._pairs, self._cross_pairs)
    softmax = 0 if self._step.attention_is_fused else _FLOAT32 * pairs
    gradients = width * max(
        self._tokens * 3 * self._joined,
        self._tokens * self._step.model.num_mlp_branches * self._mlp,
    )
    return recomputed + softmax + gradients + self._gathered()

  def _gathered_keys(self) -> float:
    """Numbers of all keys and values of its rows."""
    shape = self._step.model
    share = (shape.num_kv_heads or shape.num_heads) / shape.num_heads
    whole = self._tokens * self._step.axis('sequence')
    return 2 * whole * self._joined * share

  def _gathered(self) -> float:
    """A layer's parameters whole over `data`, and their gradients likewise."""
    shape, step = self._step.model, self._step
    if not step.parameters_are_sharded or step.axis('data') == 1:
      return 0.0
    shared = shape.joined_shared_kv
    attention = 2 * shape.emb_dim * (shape.joined_kv + shared)
    mlp = (shape.num_mlp_branches + 1) * shape.emb_dim * shape.mlp_dim
    total = (1 + self._has_cross) * attention + mlp
    return 2 * step.activation_bytes * total / step.axis('model')


def _loss_bytes(step: StepShape) -> float:
  """Logits, their softmax and gradient, and the table that gives them."""
  shape = step.model
  model = step.axis('model')
  vocab = shape.vocab_size / (model if shape.vocab_size % model == 0 else 1)
  tokens = step.rows * step.target_length / step.axis('sequence')
  scores = tokens * vocab * (2 * _FLOAT32 + step.activation_bytes)
  table = vocab * shape.emb_dim
  gathers = step.parameters_are_sharded and step.axis('data') > 1
  return scores + (step.activation_bytes * table if gathers else 0.0)


def _table_gradient_bytes(step: StepShape) -> float:
  """The embedding's gradient, whole over `data` before it is scattered.

  It is being summed while the layers' gradients are made.
  """
  if not step.parameters_are_sharded or step.axis('data') == 1:
    return 0.0
  return _FLOAT32 * step.model.vocab_size * step.model.emb_dim / (
      step.axis('model')
  )


def activation_bytes(step: StepShape) -> float:
  """Bytes that a microbatch's forward pass writes on a device, kept or not."""
  shape = step.model
  encoder = _Layer(step, is_decoder=False).all_arrays()
  decoder = _Layer(step, is_decoder=True).all_arrays()
  scores = step.rows * step.target_length * shape.vocab_size
  scores *= step.activation_bytes / step.axis('model') / step.axis('sequence')
  return (
      shape.num_encoder_layers * encoder
      + shape.num_decoder_layers * decoder
      + scores
  )


def gathered_key_bytes(step: StepShape) -> float:
  """Bytes of all layers' keys and values, gathered over `sequence` once."""
  shape = step.model
  encoder = _Layer(step, is_decoder=False).gathered_key_bytes()
  decoder = _Layer(step, is_decoder=True).gathered_key_bytes()
  has_cross = bool(shape.num_encoder_layers)
  return (
      shape.num_encoder_layers * encoder
      + shape.num_decoder_layers * (decoder + has_cross * encoder)
  )


def step_flops(step: StepShape) -> float:
  """Operations that all devices do in a step, recomputation included.

  Full remat does the forward pass twice; minimal only attention's products of
  queries, keys and values.
  """
  lengths = {
      'batch': step.batch,
      'input_length': step.input_length,
      'target_length': step.target_length,
  }
  model = formulas.train_step_flops(step.model, **lengths)
  if step.remat_policy == 'full':
    return model + formulas.forward_flops(step.model, **lengths)
  if step.remat_policy == 'minimal':
    return model + _attention_flops(step)
  return model


def _attention_flops(step: StepShape) -> float:
  shape = step.model
  joined = shape.joined_kv
  encoder = 4.0 * step.batch * step.input_length**2 * joined
  decoder = 4.0 * step.batch * step.target_length**2 * joined
  cross = 4.0 * step.batch * step.target_length * step.input_length * joined
  has_encoder = bool(shape.num_encoder_layers)
  return (
      shape.num_encoder_layers * encoder
      + shape.num_decoder_layers * (decoder + has_encoder * cross)
  )


def pieces_of(mesh: Mapping[str, int]) -> int:
  """Devices of a mesh."""
  return math.prod(mesh.values())
