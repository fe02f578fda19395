# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of a tiny model trained with FP8 and int8, beside bfloat16's.

It learns to go on with the text of this checkout's docs, byte by byte; all
formats begin alike and get the same batches and dropout.
"""

from collections.abc import Iterator
import dataclasses
import pathlib
import statistics

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import measure
from benchmarks import workload as workload_lib
from t5wild.networks import config as network_config
from t5wild.networks import quantization as quantization_lib

_DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs'
_GOAL = 1.01  # times bfloat16's loss, at most
_SPECIAL_TOKENS = 3  # padding, end, unknown: bytes come after


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload(workload_lib.Workload):
  """A model that a CPU trains for 300 steps in half a minute.

  Attributes:
    quantization: as in `T5Config`.
  """

  emb_dim: int = 64
  mlp_dim: int = 128
  num_layers: int = 2
  head_dim: int = 16
  inputs: int = 64
  targets: int = 32
  quantization: str | None = None

  @property
  def network(self) -> network_config.T5Config:
    """Configuration of the network."""
    return super().network.replace(
        dtype=jnp.bfloat16,
        quantization=self.quantization,
        quantized_layers='attention|mlp|logits',
    )


def make_batches(workload: Workload) -> Iterator[dict[str, jax.Array]]:
  """Endless batches: pieces of the docs, and how each goes on."""
  text = ''.join(path.read_text() for path in sorted(_DOCS.glob('*.md')))
  tokens = np.frombuffer(text.encode(), np.uint8).astype(np.int32)
  tokens += _SPECIAL_TOKENS
  length = workload.inputs + workload.targets
  random = np.random.default_rng(0)
  while True:
    starts = random.integers(0, len(tokens) - length, workload.batch_size)
    rows = tokens[starts[:, None] + np.arange(length)]
    targets = rows[:, workload.inputs :]
    yield {
        'encoder_input_tokens': rows[:, : workload.inputs],
        'decoder_input_tokens': np.pad(targets[:, :-1], ((0, 0), (1, 0))),
        'decoder_target_tokens': targets,
        'decoder_loss_weights': np.ones_like(targets),
    }


def train(workload: Workload, *, num_steps: int) -> list[float]:
  """Trains from the start; returns the loss of each step, for a target."""
  trainer = workload_lib.make_trainer(workload)
  losses = []
  for _, batch in zip(range(num_steps), make_batches(workload), strict=False):
    metrics = trainer.train_step(jax.device_put(batch))
    loss = metrics['cross_ent_loss_per_all_target_tokens']
    losses.append(float(loss.compute()))
  return losses


def run(options) -> None:
  """Prints the mean losses of the last tenth of the steps, and their ratio."""
  num_steps = 20 if options.small else 300
  last = num_steps // 10
  means = {}
  for number_format in (None, *quantization_lib.FORMATS):
    workload = Workload(quantization=number_format)
    losses = train(workload, num_steps=num_steps)
    name = number_format or 'bfloat16'
    means[name] = statistics.fmean(losses[-last:])
    measure.emit(
        f'quantization_{name}_loss', means[name], 'nats', first=losses[0],
        num_steps=num_steps,
    )  # fmt: skip
  for name in quantization_lib.FORMATS:
    ratio = means[name] / means['bfloat16']
    measure.emit(
        f'quantization_{name}_loss_ratio', ratio, 'ratio', goal=_GOAL,
        met=abs(ratio - 1) <= _GOAL - 1,
    )  # fmt: skip
