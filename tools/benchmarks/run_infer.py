# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Inference from text to text against bare decoding of the same batches.

Neither side counts the start of the process, the checkpoint or compilation. The
one reads lines, tokenises, decodes, detokenises and writes them; the other
decodes the batches that these lines make.
"""

import dataclasses
import pathlib
import tempfile

import numpy as np

from benchmarks import inference_sides
from benchmarks import measure
from benchmarks import workload as workload_lib

NUM_INPUTS = 2000
NUM_NEW_TOKENS = 64
GOAL = 0.85  # of the rate of bare decoding


def run(options) -> None:
  """Prints CPU seconds of both, and the ratio of their rates."""
  workload = dataclasses.replace(
      workload_lib.of(options), targets=NUM_NEW_TOKENS
  )
  num_inputs = 60 if options.small else NUM_INPUTS
  with tempfile.TemporaryDirectory(dir=options.folder) as folder:
    path = pathlib.Path(folder, 'in.txt')
    path.write_text(_make_lines(num_inputs, workload.inputs), 'utf-8')
    times = measure.interleave(
        inference_sides.make_sides(workload, path), runs=options.runs
    )
  for name, one in times.items():
    measure.emit_times(f'infer_{name}', one, inputs=num_inputs)
  value = measure.ratio(times['bare'].cpu, times['whole'].cpu)
  measure.emit(
      'infer_to_bare_decoding', value, 'ratio', goal=GOAL, met=value >= GOAL
  )


def _make_lines(number: int, longest: int) -> str:
  """Lines of letters, of 1 token to the most there may be."""
  random = np.random.RandomState(0)
  lengths = random.randint(1, longest, number)
  letters = [random.randint(97, 123, length).tolist() for length in lengths]
  return ''.join(bytes(line).decode() + '\n' for line in letters)
