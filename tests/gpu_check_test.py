# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`tools/gpu_check.py` finds what is wrong, and tells all it found."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

_TOOLS = str(pathlib.Path(__file__).resolve().parents[1] / 'tools')
sys.path.insert(0, _TOOLS)
from gpu_checks import attention  # noqa: E402 (after the path is set)
from gpu_checks import command_line  # noqa: E402
from gpu_checks import device  # noqa: E402
from gpu_checks import parts  # noqa: E402
from gpu_checks import speed  # noqa: E402

sys.path.remove(_TOOLS)

# Parts in one process, which has neither seqio nor TensorFlow.
_ALONE = """
import sys
sys.modules['seqio'] = sys.modules['tensorflow'] = None
sys.path[:0] = sys.argv[1:3]
from gpu_checks import command_line, parts
options = command_line.parse(['--small', *sys.argv[3:]])
run_part = lambda name, options, seconds: parts.run(name, small=True)
sys.exit(command_line.run_all(options, run_part=run_part))
"""


def options_of(tmp_path, *arguments):
  return command_line.parse([f'--output={tmp_path / "found.json"}', *arguments])


def run(tmp_path, answers, *arguments):
  """Runs the parts with answers made up; returns exit code and the file."""
  options = options_of(tmp_path, *arguments)
  code = command_line.run_all(
      options, run_part=lambda name, options, seconds: dict(answers[name])
  )
  return code, json.loads((tmp_path / 'found.json').read_text())


def test_a_part_that_fails_takes_nothing_with_it(tmp_path, capsys):
  right, wrong = {'name': 'a', 'ok': True}, {'name': 'b', 'ok': False}
  answers = {
      'device': {'platform': 'gpu'},
      'attention': {'failed': 'exit code -6', 'stderr': ['F0000']},
      'low_precision': {'checks': [right, wrong]},
      'base': {'mfu': 0.41},
  }
  parts_of = '--parts=' + ','.join(answers)
  code, found = run(tmp_path, answers, parts_of)
  assert code == 1
  assert list(found) == list(answers)
  shown = capsys.readouterr().out
  assert "low_precision: 2 checks, WRONG: ['b']" in shown
  assert "FAILED: ['attention', 'low_precision']" in shown
  assert 'mfu 0.41' in shown


def test_what_there_is_no_time_for_is_skipped_and_is_no_fault(tmp_path):
  code, found = run(
      tmp_path, {}, '--parts=base,xl', '--seconds=5'
  )
  assert code == 0
  assert all('were left' in each['skipped'] for each in found.values())


def test_a_process_that_ends_badly_is_told_with_its_last_words(tmp_path):
  found = command_line.run_in_process(
      'no such part', argparse.Namespace(
          output=str(tmp_path / 'found.json'), small=True
      ), 60.0,
  )  # fmt: skip
  assert found['failed'] == 'exit code 1'
  assert "KeyError: 'no such part'" in found['stderr'][-1]


def test_a_part_that_takes_too_long_is_ended(tmp_path):
  found = command_line.run_in_process(
      'device', argparse.Namespace(
          output=str(tmp_path / 'found.json'), small=True
      ), 0.01,
  )  # fmt: skip
  assert 'longer than' in found['failed']


def test_an_unknown_part_is_refused(tmp_path, capsys):
  with pytest.raises(SystemExit):
    options_of(tmp_path, '--parts=bass')
  assert "['bass']" in capsys.readouterr().err


@pytest.mark.parametrize('model', speed.MODELS)
def test_the_batch_is_the_largest_that_the_planner_lets_in(monkeypatch, model):
  gib = 2**30
  monkeypatch.setattr(device, 'memory_bytes', lambda: 80 * gib)
  case = speed.make_case(model, small=False)
  assert speed.predicted_bytes(case) <= 0.7 * 80 * gib
  monkeypatch.setattr(device, 'memory_bytes', lambda: 800 * gib)
  assert speed.make_case(model, small=False).rows > case.rows or (
      case.rows == 256
  )


def test_a_step_on_a_known_chip_has_a_predicted_range(monkeypatch):
  h200 = types.SimpleNamespace(device_kind='NVIDIA H200', platform='gpu')
  case = speed.make_case('large', small=False, quantization='fp8')
  plain = speed.make_case('large', small=False)
  assert speed.predicted_seconds(case) is None  # a CPU has no row
  monkeypatch.setattr(speed.jax, 'devices', lambda: [h200])
  fp8, bfloat16 = map(speed.predicted_seconds, (case, plain))
  assert 0 < fp8.best < bfloat16.best < bfloat16.worst


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({}, True),
        ({'dtype': 'float32'}, False),  # cuDNN attends in 16 bits only
        ({'attention_implementation': 'xla'}, False),
    ],
)
def test_attention_is_fused_in_the_prediction_where_networks_choose_so(
    monkeypatch, changes, expected
):
  case = speed.make_case('base', small=True, **changes)
  assert not case.step.attention_is_fused
  h200 = types.SimpleNamespace(compute_capability='9.0')
  monkeypatch.setattr(speed.jax, 'default_backend', lambda: 'gpu')
  monkeypatch.setattr(speed.jax, 'local_devices', lambda: [h200])
  assert case.step.attention_is_fused == expected


def test_a_batch_has_the_shapes_that_its_case_tells():
  case = speed.make_case('base', small=True)
  assert {k: x.shape for k, x in case.batch().items()} == case.shapes


def test_a_gradient_that_is_off_is_found():
  params = {'layer': {'kernel': np.ones((4, 4)), 'bias': np.ones(4)}}
  off = jax.tree.map(lambda x: x.copy(), params)
  off['layer']['bias'][2] += 1.0
  errors = attention.relative_errors((2.0, off), (2.0, params))
  assert errors == {'loss': 0.0, 'layer/kernel': 0.0, 'layer/bias': 0.5}
  plain = dict.fromkeys(errors, 0.1)
  entry = attention.entry('t5: cudnn', errors, plain=plain, text='')
  assert not entry['ok']
  assert set(entry['wrong']) == {'layer/bias'}


@pytest.mark.slow
def test_small_checks_are_well_on_a_cpu_without_seqio_and_tensorflow(tmp_path):
  names = ('device', 'attention', 'low_precision', 'base',
           'decoder_8b_slice_fp8')  # fmt: skip
  output = tmp_path / 'found.json'
  done = subprocess.run(
      [sys.executable, '-c', _ALONE, _TOOLS, str(pathlib.Path(_TOOLS).parent),
       f'--output={output}', '--parts=' + ','.join(names)],
      capture_output=True, text=True, check=False,
      # Quick to compile; the programs are small.
      env=os.environ | {'XLA_FLAGS': '--xla_backend_optimization_level=0'},
  )  # fmt: skip
  assert done.returncode == 0, done.stdout + done.stderr
  found = json.loads(output.read_text())
  assert list(found) == list(names)
  for name in names[-2:]:
    losses = found[name]['losses']
    assert losses[-1] < losses[0]
    assert found[name]['sequences_per_second'] > 0
    assert found[name]['predicted_bytes'] > 0
  kernels = [each['name'] for each in found['attention']['checks']]
  assert any('cudnn' in name for name in kernels)


def test_every_part_is_one_that_can_be_run():
  for name in parts.NAMES:
    module, arguments = parts.part(name)
    assert (pathlib.Path(_TOOLS) / 'gpu_checks' / f'{module}.py').exists()
    if 'model' in arguments:
      assert arguments['model'] in speed.MODELS
