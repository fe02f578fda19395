# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a run: a dry run, traces, figures that make sense."""

import gzip
import json
import re
import signal
import subprocess
import sys

import pytest

from t5wild.vitals import records
from tests import multiprocess
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_STEPS = 60


@pytest.fixture(scope='module')
def traced(tmp_path_factory):
  """A run with a trace by gin and another upon a signal."""
  folder = tmp_path_factory.mktemp('traced') / 'run'
  with folder.with_suffix('.log').open('wb') as log:
    process = runs.start(
        folder,
        log=log,
        TRAIN_STEPS=_STEPS,
        profiling__StepProfiler__start_step=2,
        profiling__StepProfiler__num_steps=3,
    )
    runs.wait_for_step(folder, 10, process)
    process.send_signal(signal.SIGUSR2)
    assert process.wait(runs.TIMEOUT_SECONDS) == 0
  return folder


def test_traces_by_gin_and_by_signal_can_be_opened(traced):
  # The layout that TensorBoard's profile plugin reads.
  folders = sorted((traced / 'profile' / 'plugins' / 'profile').iterdir())
  assert len(folders) == 2
  steps = []
  for folder in folders:
    assert list(folder.glob('*.xplane.pb'))
    (trace,) = folder.glob('*.trace.json.gz')
    events = json.loads(gzip.decompress(trace.read_bytes()))['traceEvents']
    steps.append([
        int(event['args']['step_num'])
        for event in events
        if event.get('name') == 'train'
    ])
  assert steps[0] == [3, 4, 5]
  assert len(steps[1]) == 3
  assert steps[1][0] > 10


def test_figures_of_a_run_fit_each_other(traced):
  values = {
      name.name: name.value
      for name in records.read_records(traced / 'metrics.jsonl')
      if name.step in (0, _STEPS)
  }
  step_seconds = values['train/timing/step_seconds']
  split = ('data_wait', 'device', 'other')
  assert sum(
      values[f'train/timing/{part}_seconds'] for part in split
  ) == pytest.approx(step_seconds)
  assert values['train/timing/examples_per_second'] == pytest.approx(
      values['train/effective_batch_size/decoder'] / step_seconds, rel=0.02
  )
  assert 0 < values['train/timing/mfu'] < 1
  assert values['train/timing/compile_seconds'] > 0
  assert values['train/timing/init_or_restore_seconds'] > 0
  assert values['train/memory/host_peak_bytes'] > 1e8
  # The recipe divides by the tokens, so this is nats a byte.
  assert 0.5 < values['train/cross_ent_loss'] < 6
  evaluation = {
      name.removeprefix('training_eval/local_text/timing/'): value
      for name, value in values.items()
  }
  assert evaluation['seconds'] <= 1.1 * evaluation['evaluate_seconds'] + 1


def test_a_dry_run_prints_memory_by_kind_and_leaves_nothing(tmp_path):
  folder = tmp_path / 'run'
  done = subprocess.run(
      [sys.executable, *runs.arguments(folder), '--dry_run'],
      env=multiprocess.process_environment(devices_per_process=2),
      capture_output=True, text=True, check=True,
      timeout=runs.TIMEOUT_SECONDS,
  )  # fmt: skip
  table = done.stdout.split('bytes per device:\n')[1].split('(the step')[0]
  found = {
      kind: int(text.replace(',', ''))
      for text, kind in re.findall(r'^ +([\d,]+)  (\w+)', table, re.M)
  }
  assert found.keys() == {
      'parameters', 'optimizer', 'gradients', 'batch', 'temporary', 'the'
  }
  assert found['the'] > found['temporary'] > found['batch'] > 0
  assert 'train_script.train.total_steps' in done.stdout
  assert not folder.exists()
