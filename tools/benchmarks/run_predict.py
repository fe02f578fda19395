# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training steps on this CPU beside what the planner's arithmetic says of them.

The CPU's row of facts is measured: its fastest product and its memory. All
times are CPU-seconds of one core, so that a busy machine changes them little.
"""

import dataclasses
import functools
import time

import jax
import jax.numpy as jnp

from benchmarks import measure
from benchmarks import one_device
from benchmarks import workload as workload_lib
from t5wild import hardware
from t5wild.planner import formulas
from t5wild.planner import step_shape
from t5wild.planner import timing

_W1 = dataclasses.replace(workload_lib.W1, dropout_rate=0.0)
# Name -> what is trained; each differs from the first in what the time is of.
CASES = {
    'w1': _W1,
    'w1_full_remat': dataclasses.replace(_W1, remat_policy='full'),
    'wide': dataclasses.replace(
        _W1, emb_dim=768, mlp_dim=2048, num_heads=12, num_layers=2,
        batch_size=4,
    ),
    'long': dataclasses.replace(
        _W1, inputs=1024, targets=256, num_layers=2, batch_size=2
    ),
    'words': dataclasses.replace(
        _W1, vocab_size=32128, num_layers=2, batch_size=4
    ),
}  # fmt: skip
_SIDE = 1024  # of the product that the peak is measured with
_ARRAY_BYTES = 2**28  # more than a cache holds
_TRIES = 7
# However long the others of this machine take their turns.
_fastest_cpu_seconds = functools.partial(
    hardware.fastest_seconds, seconds=0, clock=time.process_time
)


def run(options) -> None:
  """Prints, for each case, measured seconds beside the predicted range."""
  machine = measured_machine()
  cases = {'small': workload_lib.SMALL} if options.small else CASES
  for name, workload in cases.items():
    batch = workload_lib.make_batch(workload)
    trainer = workload_lib.make_trainer(workload)
    seconds = _fastest_cpu_seconds(
        lambda t=trainer, b=batch: workload_lib.run_step(t, b),
        repeats=options.runs,
    )
    predicted = predict(workload, machine)
    measure.emit(
        f'predict_{name}', seconds, 'CPU s a step',
        predicted_best=predicted.best,
        predicted_worst=predicted.worst,
        flops_per_second=machine.chip.peak('float32'),
        memory_bytes_per_second=machine.chip.memory_bytes_per_second,
    )  # fmt: skip


def machine_of(
    *, flops_per_second: float, memory_bytes_per_second: float
) -> one_device.OneDevice:
  """A CPU with these facts."""
  return one_device.OneDevice(platform='cpu', chip=hardware.Chip(
      name='this CPU', pattern='cpu', memory_bytes=0,
      peak_flops_per_second={'float32': flops_per_second},
      memory_bytes_per_second=memory_bytes_per_second,
  ))  # fmt: skip


def measured_machine() -> one_device.OneDevice:
  """This CPU's fastest product, and how fast it reads and writes."""
  matrix = jnp.full((_SIDE, _SIDE), 0.5, jnp.float32)
  product = jax.jit(lambda x: x @ x).lower(matrix).compile()
  array = jnp.zeros(_ARRAY_BYTES // 4, jnp.float32)
  add = jax.jit(lambda x: x + 1, donate_argnums=0).lower(array).compile()
  held = [array]

  def sweep():
    held[0] = add(held[0]).block_until_ready()

  return machine_of(
      flops_per_second=2 * _SIDE**3 / _fastest_cpu_seconds(
          lambda: product(matrix).block_until_ready(), repeats=_TRIES
      ),
      memory_bytes_per_second=2 * _ARRAY_BYTES / _fastest_cpu_seconds(
          sweep, repeats=_TRIES
      ),
  )  # fmt: skip


def predict(
    workload: workload_lib.Workload, machine: one_device.OneDevice
) -> timing.StepTime:
  """The planner's range for a step."""
  shape = formulas.model_shape_of(workload.network)
  parameters = formulas.count_parameters(shape)
  return timing.estimate(
      step_shape.StepShape(
          model=shape, batch=workload.batch_size,
          input_length=workload.inputs, target_length=workload.targets,
          mesh={}, remat_policy=workload.remat_policy, activation_bytes=4,
          scan_layers=workload.scan_layers,
      ),
      machine,
      dtype='float32',
      num_parameters=parameters,
      state_bytes=4 * parameters,  # Adafactor's factors are next to nothing
  )  # fmt: skip
