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
from t5wild.planner import layer_memory
from t5wild.planner import step_shape

REMAT_POLICIES = ('none', 'minimal', 'full')
_FLOAT32 = 4


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
    step: step_shape.StepShape, *, state_bytes: float, gradient_bytes: float
) -> Estimate:
  """Returns the bytes of one device, at that moment of a step that takes most.

  State and gradients are there all the time: compilers make room for the
  gradients of all layers before the first. Beside them stand

  - at the loss: what all layers kept, and `_loss_bytes`;
  - in the decoder's backward pass: the same, with a layer's work in place of
    the loss;
  - in the encoder's: what its own layers kept, and a layer's work;
  - after it: the token tables' gradients, see `_table_gradients`.

  A TPU's compiler sums the tables' gradients over devices between the backward
  passes, whose buffers it keeps to the end: there all but the loss stand side
  by side, less one of the tables.

  Args:
    step: what is trained.
    state_bytes: of parameters and optimizer state on a device.
    gradient_bytes: of the gradients on a device.
  """
  encoder = layer_memory.Layer(step, is_decoder=False)
  decoder = layer_memory.Layer(step, is_decoder=True)
  shape = step.model
  of_encoder = shape.num_encoder_layers * encoder.kept()
  of_both = of_encoder + shape.num_decoder_layers * decoder.kept()
  scores = _table_gradients(step, 1)
  moments = [
      (of_both, _loss_bytes(step)),
      (of_both, decoder.working() + scores),
      (0.0, _table_gradients(step, _num_table_gradients(step))),
  ]
  if shape.num_encoder_layers:
    moments.append((of_encoder, encoder.working() + scores))
  if step.moments_are_apart:
    kept, working = max(moments, key=sum)
  else:
    kept = of_both
    working = max(encoder.working(), decoder.working())
    working += _table_gradients(step, _num_table_gradients(step) - 1)
  return Estimate(
      state=state_bytes,
      gradients=_with_copies(step, gradient_bytes),
      kept=kept,
      working=working,
  )


def _with_copies(step: step_shape.StepShape, gradient_bytes: float) -> float:
  """Bytes of the gradients, and of what stands beside them all the time.

  Parameters have the axis of layers second, as T5X's; a loop over layers reads
  them from copies that have it first, in float32, which stay until the update.
  Tables of tokens are in no loop. The sum over microbatches stands beside the
  gradients of one.
  """
  of_tables = _num_tables(step) * _table_bytes(step) / _table_ways(step)
  copies = max(0.0, gradient_bytes - of_tables) if step.scan_layers else 0.0
  return gradient_bytes * (1 + (step.num_microbatches > 1)) + copies


def _loss_bytes(step: step_shape.StepShape) -> float:
  """Logits, which their gradient takes over, and what they are made of.

  That is the decoder's output and its gradient, and the table where it is not
  at hand as it is: gathered, and turned if it is that of the embeddings. All in
  float32.
  """
  tokens = step.rows * step.target_length / step.axis('sequence')
  tables = step.gathers_parameters + step.model.logits_via_embedding
  numbers = tokens * (_vocab(step) + 2 * step.model.emb_dim)
  return _FLOAT32 * numbers + tables * _table_bytes(step)


def _vocab(step: step_shape.StepShape) -> float:
  """Tokens of one device."""
  vocab, model = step.model.vocab_size, step.axis('model')
  return vocab / (model if vocab % model == 0 else 1)


def _table_bytes(step: step_shape.StepShape) -> float:
  """The table of tokens in float32, whole over `data`."""
  return _FLOAT32 * _vocab(step) * step.model.emb_dim


def _table_gradients(step: step_shape.StepShape, count: int) -> float:
  """So many tables, whole over `data`, less what the gradients have of them.

  Where parameters are not sharded, these have them whole.
  """
  counted = min(count, _num_tables(step))
  return _table_bytes(step) * (count - counted / _table_ways(step))


def _num_tables(step: step_shape.StepShape) -> int:
  """Tables of tokens that are parameters."""
  return 1 if step.model.logits_via_embedding else 2


def _table_ways(step: step_shape.StepShape) -> int:
  """In how many parts one lies over `data`."""
  return step.axis('data') if step.parameters_are_sharded else 1


def _num_table_gradients(step: step_shape.StepShape) -> int:
  """How many there are before they are scattered, which is late.

  One of the scores, one of each lookup, and the sum of those of one table.
  """
  shape = step.model
  lookups = 1 + bool(shape.num_encoder_layers)
  has_sum = lookups + shape.logits_via_embedding > 1
  return 1 + lookups + has_sum


def activation_bytes(step: step_shape.StepShape) -> float:
  """Bytes that a microbatch's forward pass writes on a device, kept or not."""
  shape = step.model
  encoder = layer_memory.Layer(step, is_decoder=False).all_arrays()
  decoder = layer_memory.Layer(step, is_decoder=True).all_arrays()
  scores = step.rows * step.target_length * shape.vocab_size
  scores *= step.activation_bytes / step.axis('model') / step.axis('sequence')
  return (
      shape.num_encoder_layers * encoder
      + shape.num_decoder_layers * decoder
      + scores
  )


def gathered_key_bytes(step: step_shape.StepShape) -> float:
  """Bytes of all layers' keys and values, gathered over `sequence` once."""
  shape = step.model
  encoder = layer_memory.Layer(step, is_decoder=False).gathered_key_bytes()
  decoder = layer_memory.Layer(step, is_decoder=True).gathered_key_bytes()
  has_cross = bool(shape.num_encoder_layers)
  return (
      shape.num_encoder_layers * encoder
      + shape.num_decoder_layers * (decoder + has_cross * encoder)
  )


def step_flops(step: step_shape.StepShape) -> float:
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


def quantized_flops(step: step_shape.StepShape) -> float:
  """Operations of a step that are products of 8-bit numbers.

  Those of dense layers but the scores: forward and for the inputs' gradient,
  and with 'fp8' for the kernel's; under full remat once more.
  """
  if step.quantization is None:
    return 0.0
  shape = step.model
  forward = formulas.forward_flops(
      shape,
      batch=step.batch,
      input_length=step.input_length,
      target_length=step.target_length,
  )
  scores = 2.0 * step.batch * step.target_length
  scores *= shape.emb_dim * shape.vocab_size
  products = 3 if step.quantization == 'fp8' else 2
  products += step.remat_policy == 'full'
  return products * (forward - scores - _attention_flops(step))


def quantized_bytes(step: step_shape.StepShape) -> float:
  """Bytes of the operands that a microbatch makes 8-bit on a device.

  Inputs once, under full remat twice; gradients of outputs once, with 'fp8'
  twice, as they are scaled along another axis for the kernel's gradient.
  """
  if step.quantization is None:
    return 0.0
  shape = step.model
  encoder = layer_memory.Layer(step, is_decoder=False)
  decoder = layer_memory.Layer(step, is_decoder=True)
  inputs = 1 + (step.remat_policy == 'full')
  outputs = 2 if step.quantization == 'fp8' else 1
  return sum(
      count * (inputs * layer.inputs() + outputs * layer.outputs())
      for count, layer in (
          (shape.num_encoder_layers, encoder),
          (shape.num_decoder_layers, decoder),
      )
  )


def _attention_flops(step: step_shape.StepShape) -> float:
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
