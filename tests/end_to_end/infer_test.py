# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild infer` with a trained run: killed, on several processes, in score."""

import json
import subprocess
import sys
import time

import pytest

from tests import multiprocess
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

NUM_INPUTS = 50


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('infer') / 'run'
  assert runs.train(folder) == 0
  lines = [
      {'id': i, 'inputs': 'ab ' * (i * 7 % 20), 'targets': 'b' * (i % 5 + 1)}
      for i in range(NUM_INPUTS)
  ]
  folder.with_name('in.jsonl').write_text(
      '\n'.join(map(json.dumps, lines)), encoding='utf-8'
  )
  return folder


def _arguments(run, output, **changes):
  flags = {
      'run': run, 'input': run.with_name('in.jsonl'), 'output': output,
      'batch_size': 8, 'checkpoint_period': 2, **changes,
  }  # fmt: skip
  given = [f'--{name}={value}' for name, value in flags.items()]
  return ['-m', 't5wild.infer', *given]


def _infer(arguments, *, num_processes=1):
  return multiprocess.run_processes(
      arguments, num_processes, timeout=runs.TIMEOUT_SECONDS
  )


def _lines(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope='module')
def whole(run):
  output = run.with_name('whole.jsonl')
  _infer(_arguments(run, output))
  return output


def test_outputs_are_in_the_order_of_the_inputs(whole):
  assert [line['inputs']['id'] for line in _lines(whole)] == list(
      range(NUM_INPUTS)
  )


def test_killed_and_started_again_it_writes_the_same(run, whole):
  output = run.with_name('killed.jsonl')
  arguments = _arguments(run, output)
  process = subprocess.Popen(
      [sys.executable, *arguments],
      env=multiprocess.process_environment(devices_per_process=1),
      stderr=subprocess.DEVNULL,
  )
  while process.poll() is None and not list(
      run.parent.glob('tmp-killed*/*chunk00000.COMPLETED')
  ):
    time.sleep(0.02)
  process.kill()
  process.wait()
  assert not output.exists()
  (again,) = _infer(arguments)
  assert 'were there already' in again.stderr
  assert output.read_bytes() == whole.read_bytes()


def test_two_processes_write_what_one_does(run, whole):
  output = run.with_name('two.jsonl')
  _infer(_arguments(run, output), num_processes=2)
  assert output.read_bytes() == whole.read_bytes()


def test_a_score_is_the_sum_of_those_of_the_tokens(run):
  output = run.with_name('scores.jsonl')
  _infer(_arguments(run, output, mode='score'))
  for index, line in enumerate(_lines(output)):
    scores = line['aux']['token_scores']
    assert len(scores) == index % 5 + 2  # and the end token
    assert line['score'] == pytest.approx(sum(scores), rel=1e-5)


def test_other_settings_do_not_touch_an_output(run, whole):
  before = whole.read_bytes()
  with pytest.raises(AssertionError, match='there: predict'):
    _infer(_arguments(run, whole, mode='score'))
  assert whole.read_bytes() == before


def test_an_unknown_step_lists_those_there_are(run):
  with pytest.raises(AssertionError, match=r'step 5: expected one of \[0, 4'):
    _infer(_arguments(run, run.with_name('no.jsonl'), step=5))
