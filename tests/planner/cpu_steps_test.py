# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Predicted times beside steps that ran, on a CPU with its measured facts.

`cpu_steps.jsonl` is what `python tools/benchmark.py predict --runs=3` printed
on one core of an AMD EPYC, nothing else running.
"""

import json
import pathlib
import sys

import pytest

_TOOLS = str(pathlib.Path(__file__).resolve().parents[2] / 'tools')
sys.path.insert(0, _TOOLS)
from benchmarks import run_predict  # noqa: E402 (after the path is set)

sys.path.remove(_TOOLS)

_STEPS = {
    one['name'].removeprefix('predict_'): one
    for one in map(
        json.loads,
        pathlib.Path(__file__).with_name('cpu_steps.jsonl').read_text()
        .splitlines(),
    )
}  # fmt: skip


def _predicted(name):
  step = _STEPS[name]
  return run_predict.predict(
      run_predict.CASES[name],
      run_predict.machine_of(
          flops_per_second=step['flops_per_second'],
          memory_bytes_per_second=step['memory_bytes_per_second'],
      ),
  )


def test_every_case_was_measured():
  assert set(_STEPS) == set(run_predict.CASES)


# A large vocabulary's softmax and optimizer are arithmetic on a CPU, not only
# traffic: what the planner does not count, and docs/scale.md tells.
@pytest.mark.parametrize('name', sorted(set(_STEPS) - {'words'}))
def test_measured_steps_lie_within_the_predicted_range(name):
  time = _predicted(name)
  assert time.best < _STEPS[name]['value'] < time.worst
