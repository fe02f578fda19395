# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's and Hugging Face's step on W1, where the user has them installed."""

from collections.abc import Callable
import importlib.util
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
  """Prints seconds of each, and t5wild's ratio to each peer."""
  workload = workload_lib.of(options)
  batch = workload_lib.make_batch(workload)
  trainer = workload_lib.make_trainer(workload)
  steps: dict[str, Callable[[], object]] = {
      't5wild': lambda: workload_lib.run_step(trainer, batch)
  }
  for name in filter(is_installed, _GOALS):
    steps[name] = _PEERS[name].make_step(workload, batch)
  times = measure.interleave(
      steps, runs=options.runs, in_a_row=measure.STEPS_IN_A_ROW
  )
  for name, one in times.items():
    measure.emit_times(f'peers_{name}', one)
  for name in steps:
    if name in _GOALS:
      measure.emit_ratio(
          f'peers_t5wild_to_{name}',
          times['t5wild'],
          times[name],
          goal=_GOALS[name],
      )
