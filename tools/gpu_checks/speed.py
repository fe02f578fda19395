# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training steps of published sizes on this device, beside the planner's word.

The batch is the largest power of two that the planner says takes at most 70 %
of the device's memory.
"""

import dataclasses
import statistics
import time
from typing import Any

from benchmarks import one_device
from benchmarks import workload as workload_lib
import jax
import jax.numpy as jnp
import numpy as np

from gpu_checks import device as device_lib
from t5wild import hardware
from t5wild.data import vocabularies
from t5wild.models import decoder_only as decoder_model
from t5wild.models import encoder_decoder
from t5wild.networks import config as network_config
from t5wild.networks import decoder_only
from t5wild.networks import transformer
from t5wild.optimizers import adafactor
from t5wild.partitioning import partitioner as partitioner_lib
from t5wild.planner import attention as attention_planner
from t5wild.planner import formulas
from t5wild.planner import memory
from t5wild.planner import step_shape
from t5wild.planner import timing
from t5wild.trainer import initializer
from t5wild.trainer import model_info
from t5wild.trainer import trainer as trainer_lib

_T5_1_1 = network_config.T5Config(
    vocab_size=32128, dtype='bfloat16', emb_dim=768, num_heads=12, head_dim=64,
    num_encoder_layers=12, num_decoder_layers=12, mlp_dim=2048,
    mlp_activations=('gelu', 'linear'), dropout_rate=0.0, scan_layers=True,
    remat_policy='minimal',
)  # fmt: skip
_24_LAYERS = {'num_encoder_layers': 24, 'num_decoder_layers': 24}
MODELS = {
    'base': _T5_1_1,
    'large': _T5_1_1.replace(
        emb_dim=1024, num_heads=16, mlp_dim=2816, **_24_LAYERS
    ),
    'xl': _T5_1_1.replace(
        emb_dim=2048, num_heads=32, mlp_dim=5120, **_24_LAYERS
    ),
    # Six of Llama 3 8B's 32 layers, and its vocabulary.
    'decoder_8b_slice': network_config.TransformerConfig(
        vocab_size=128256, dtype='bfloat16', emb_dim=4096, num_heads=32,
        num_kv_heads=8, head_dim=128, mlp_dim=14336, num_layers=6,
        mlp_activations=('silu', 'linear'), positions='rotary',
        rotary_wavelength=500_000.0, scale_queries=True,
        embedding_scale='none', dropout_rate=0.0, scan_layers=True,
        remat_policy='minimal',
    ),
}  # fmt: skip
_TINY = {
    'vocab_size': 64, 'emb_dim': 32, 'num_heads': 2, 'head_dim': 16,
    'mlp_dim': 64,
}  # fmt: skip
_STEPS = 10
_SHARE_OF_MEMORY = 0.7
_MOST_ROWS = 256
_LENGTHS = (512, 128, 2048)  # encoder, decoder after one, decoder alone


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
  """What is trained.

  Attributes:
    config: of the network.
    inputs: length of the encoder's rows; 0 without one.
    targets: length of the decoder's.
    rows: of a batch.
  """

  config: network_config.LayerConfig
  inputs: int
  targets: int
  rows: int

  @property
  def step(self) -> step_shape.StepShape:
    """As the planner takes it."""
    config = self.config
    features = attention_planner.fused_features(
        config, self.shapes, jax.default_backend()
    )
    return step_shape.StepShape(
        model=formulas.model_shape_of(config), batch=self.rows,
        input_length=self.inputs, target_length=self.targets, mesh={},
        remat_policy=config.remat_policy, scan_layers=config.scan_layers,
        activation_bytes=jnp.dtype(config.dtype).itemsize,
        attention_is_fused=features is not None,
        attention_features=features or 0, quantization=config.quantization,
    )  # fmt: skip

  @property
  def shapes(self) -> dict[str, tuple[int, int]]:
    """Of the features of a batch, by name."""
    lengths = {
        'decoder_target_tokens': self.targets,
        'decoder_input_tokens': self.targets,
        'decoder_loss_weights': self.targets,
    }
    if self.inputs:
      lengths['encoder_input_tokens'] = self.inputs
    return {name: (self.rows, length) for name, length in lengths.items()}

  def batch(self) -> dict[str, jax.Array]:
    """Random rows without padding."""
    random = np.random.default_rng(0)
    found = {
        name: random.integers(3, self.config.vocab_size, shape)
        for name, shape in self.shapes.items()
        if name.endswith(('target_tokens', 'encoder_input_tokens'))
    }
    targets = found['decoder_target_tokens']
    found['decoder_input_tokens'] = np.pad(targets[:, :-1], ((0, 0), (1, 0)))
    found['decoder_loss_weights'] = np.ones_like(targets)
    return jax.device_put(
        {name: array.astype(np.int32) for name, array in found.items()}
    )


def make_case(model: str, *, small: bool, **changes: Any) -> Case:
  """The case of a model, its batch as large as the planner lets it be.

  Args:
    model: one of `MODELS`.
    small: tiny sizes.
    **changes: of the network's configuration.
  """
  config = MODELS[model].replace(**changes)
  is_decoder = isinstance(config, network_config.TransformerConfig)
  inputs, targets, alone = (32, 16, 32) if small else _LENGTHS
  if small:
    layers = {'num_encoder_layers': 1, 'num_decoder_layers': 1}
    if is_decoder:
      layers = {'num_layers': 1, 'num_kv_heads': 1}
    config = config.replace(**_TINY, **layers)
  case = Case(
      config=config, rows=8 if small else _MOST_ROWS,
      inputs=0 if is_decoder else inputs,
      targets=alone if is_decoder else targets,
  )  # fmt: skip
  limit = device_lib.memory_bytes()
  while limit and case.rows > 1 and (
      predicted_bytes(case) > _SHARE_OF_MEMORY * limit
  ):
    case = dataclasses.replace(case, rows=case.rows // 2)
  return case


def predicted_bytes(case: Case) -> float:
  """Peak memory by the planner's arithmetic."""
  parameters = 4 * formulas.count_parameters(case.step.model)
  # Adafactor's factors are next to nothing.
  return memory.estimate(
      case.step, state_bytes=parameters, gradient_bytes=parameters
  ).peak


def predicted_seconds(case: Case) -> timing.StepTime | None:
  """A step's range by the planner's arithmetic; None: the chip has no row."""
  device = jax.devices()[0]
  chip = hardware.chip_of(device.device_kind)
  if chip is None:
    return None
  parameters = formulas.count_parameters(case.step.model)
  return timing.estimate(
      case.step, one_device.OneDevice(chip=chip, platform=device.platform),
      dtype='bfloat16',
      num_parameters=parameters, state_bytes=4 * parameters,
  )  # fmt: skip


def make_trainer(case: Case) -> trainer_lib.Trainer:
  """t5wild's trainer and model with Adafactor, as a run has them."""
  vocabulary = vocabularies.ByteVocabulary()
  optimizer_def = adafactor.Adafactor(
      decay_rate=0.8, step_offset=0,
      logical_factor_rules=adafactor.standard_logical_factor_rules(),
  )  # fmt: skip
  if case.inputs:
    model = encoder_decoder.EncoderDecoderModel(
        transformer.Transformer(case.config), vocabulary, vocabulary,
        optimizer_def=optimizer_def, z_loss=workload_lib.Z_LOSS,
    )  # fmt: skip
  else:
    model = decoder_model.DecoderOnlyModel(
        decoder_only.DecoderWrapper(case.config), vocabulary,
        optimizer_def=optimizer_def, z_loss=workload_lib.Z_LOSS,
    )  # fmt: skip
  states = initializer.TrainStateInitializer(
      optimizer_def=optimizer_def,
      init_fn=model.get_initial_variables,
      input_shapes=case.shapes,
      input_types=dict.fromkeys(case.shapes, jnp.int32),
      partitioner=partitioner_lib.PjitPartitioner(num_partitions=1),
  )
  state = states.from_scratch(jax.random.PRNGKey(0))
  return workload_lib.make_trainer_of(model, states, state)


def check(*, model: str, small: bool, **changes: Any) -> dict[str, Any]:
  """Trains some steps; returns speed and memory, measured and predicted.

  Args:
    model: one of `MODELS`.
    small: tiny sizes, few steps.
    **changes: of the network's configuration.
  """
  case = make_case(model, small=small, **changes)
  batch, trainer = case.batch(), make_trainer(case)
  start = time.perf_counter()
  compiled = trainer.compile_train(batch)
  compile_seconds = time.perf_counter() - start
  losses, seconds = _time_steps(trainer, batch, 3 if small else _STEPS)
  cost = model_info.step_cost(trainer._model, case.shapes)
  step_seconds = statistics.median(seconds)
  flops = cost.flops_per_step / step_seconds
  mfu = flops / cost.peak_flops_per_second if cost.peak_flops_per_second else 0
  predicted = predicted_seconds(case)
  analysis = compiled.memory_analysis()
  return {
      'rows': case.rows,
      'lengths': [case.inputs, case.targets],
      'parameters': formulas.count_parameters(case.step.model),
      'changes': changes,
      'compile_seconds': compile_seconds,
      'step_seconds': step_seconds,
      'step_seconds_range': [min(seconds), max(seconds)],
      'sequences_per_second': case.rows / step_seconds,
      'model_teraflops_per_second': flops / 1e12,
      'mfu': mfu,
      'losses': losses,
      'predicted_step_seconds': predicted and [predicted.best, predicted.worst],
      'is_within_prediction': predicted
      and predicted.best <= step_seconds <= predicted.worst,
      'peak_bytes': device_lib.peak_bytes(),
      'compiled_bytes': analysis.argument_size_in_bytes
      + analysis.output_size_in_bytes
      + analysis.temp_size_in_bytes
      - analysis.alias_size_in_bytes,
      'predicted_bytes': predicted_bytes(case),
  }


def _time_steps(trainer, batch, num_steps):
  """Losses and seconds of steps after two that are not counted."""
  losses, seconds = [], []
  for step in range(num_steps + 2):
    start = time.perf_counter()
    metrics = trainer.train_step(batch)
    jax.block_until_ready((trainer.train_state.params, metrics))
    if step >= 2:
      seconds.append(time.perf_counter() - start)
    loss = metrics['cross_ent_loss_per_all_target_tokens'].compute()
    losses.append(float(loss))
  return losses, seconds
