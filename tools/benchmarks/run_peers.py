# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's and Hugging Face's step on W1, where the user has them installed."""

from collections.abc import Callable
import importlib.util
import multiprocessing
import sys

from benchmarks import hugging_face
from benchmarks import measure
from benchmarks import peers_t5x
from benchmarks import workload as workload_lib

_PEERS = {'t5x': peers_t5x, 'hugging_face': hugging_face}
# Peer -> how much of its time t5wild's step may take.
_GOALS = {'t5x': 0.67, 'hugging_face': 0.9}
_NEEDS = {'t5x': ('t5x',), 'hugging_face': ('transformers', 'torch')}


def is_installed(name: str) -> bool:
  """Whether a peer can be run; says what is missing if not."""
  missing = [m for m in _NEEDS[name] if importlib.util.find_spec(m) is None]
  if missing:
    sys.stderr.write(
        f'peers: {name} is left out, {missing} not installed; expected '
        f'{list(_NEEDS[name])}: install them beside t5wild to compare.\n'
    )
  return not missing


def run(options) -> None:
  """Prints seconds of t5wild and a peer and their ratio, for each peer.

  A process for each: T5X brings TensorFlow along, beside which importing torch
  crashes. The peers share nothing but the workload.
  """
  spawn = multiprocessing.get_context('spawn')
  for name in filter(is_installed, _GOALS):
    process = spawn.Process(target=_compare, args=(options, name))
    process.start()
    process.join()
    if process.exitcode:
      raise RuntimeError(
          f'The comparison with {name} ended with exit code '
          f'{process.exitcode}; expected 0. Its own lines above say why.'
      )


def _compare(options, name: str) -> None:
  workload = workload_lib.of(options)
  batch = workload_lib.make_batch(workload)
  trainer = workload_lib.make_trainer(workload)
  steps: dict[str, Callable[[], object]] = {
      't5wild': lambda: workload_lib.run_step(trainer, batch),
      name: _PEERS[name].make_step(workload, batch),
  }
  times = measure.interleave(
      steps, runs=options.runs, in_a_row=measure.STEPS_IN_A_ROW
  )
  for side, one in times.items():
    suffix = '' if side == name else f'_beside_{name}'
    measure.emit_times(f'peers_{side}{suffix}', one)
  measure.emit_ratio(
      f'peers_t5wild_to_{name}',
      times['t5wild'],
      times[name],
      goal=_GOALS[name],
  )
