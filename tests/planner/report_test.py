# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The verdict on a compiled program, and what is proposed."""

import dataclasses
import json
import pathlib

import pytest

from t5wild.planner import compile as compile_lib
from t5wild.planner import memory
from t5wild.planner import remedies
from t5wild.planner import report
from t5wild.planner import topologies

# What the compilers said of cells of docs/scale.md, written by its commands.
CELLS = json.loads(
    pathlib.Path(__file__).with_name('compiled_cells.json').read_text()
)
_BY_NAME = {cell['cell']: cell for cell in CELLS}
_XXL = _BY_NAME['t5_1_1/xxl@h100:32x8']


def _compiled(cell, **memory_changes):
  program = dict(cell['program'])
  program['memory'] = {**program['memory'], **memory_changes}
  return compile_lib.Compiled(
      recipe=cell['recipe'], programs={'train': program}, texts={}
  )


def test_kinds_add_up_to_the_peak():
  (verdict,) = report.judge(_compiled(_XXL), topologies.parse('h100:32x8'))
  assert verdict.fits
  assert sum(verdict.bytes.values()) == verdict.peak_bytes
  assert verdict.remedies == []


def test_what_does_not_fit_is_answered_with_changes_that_do():
  compiled = _compiled(_XXL, temp=90 * 10**9, peak=91 * 10**9)
  recipe = {**compiled.recipe, 'remat_policy': 'none'}
  compiled = dataclasses.replace(compiled, recipe=recipe)
  topology = topologies.parse('h100:32x8')
  (verdict,) = report.judge(compiled, topology)
  assert not verdict.fits
  whats = [remedy.what for remedy in verdict.remedies]
  assert any('remat_policy' in what for what in whats)
  assert any('num_microbatches' in what for what in whats)
  assert any('mesh_shape' in what for what in whats)
  assert [r.fits for r in verdict.remedies] == sorted(
      (r.fits for r in verdict.remedies), reverse=True
  )
  shown = report.text(compiled, [verdict], topology)
  assert 'DOES NOT FIT; one change at a time' in shown


def test_a_refusal_by_the_compiler_is_no_fit_with_what_it_asked_for():
  compiled = _compiled(_XXL)
  compiled.programs['train'].update(
      memory=None, needed_bytes=20 * 2**30, refused='RESOURCE_EXHAUSTED: ...'
  )
  (verdict,) = report.judge(compiled, topologies.parse('v5e:16x16'))
  assert not verdict.fits
  assert verdict.peak_bytes == 20 * 2**30


def test_a_fast_axis_over_the_network_is_warned_of_with_bytes_and_seconds():
  topology = topologies.parse('h100:32x8')
  traffic = [{'axes': ['model'], 'bytes': 100 * 2**30, 'group_size': 16}]
  recipe = {'crossing_axes': {'model': 2, 'data': 16}}
  total, warning = report.slow_network_lines(traffic, recipe, topology)
  assert '100.000 GiB' in total
  assert 'WARNING: the model axis spans 2 hosts' in warning
  # Half of it comes from the other host, through the ports of eight GPUs.
  assert f'{50 * 2**30 / (8 * 50e9):.3g} s or more' in warning
  inside = {'crossing_axes': {'data': 32}}
  assert report.slow_network_lines(traffic, inside, topology) == []



@pytest.mark.parametrize('name', _BY_NAME)
def test_predicted_memory_is_within_25_percent_with_fused_attention_10(name):
  cell = _BY_NAME[name]
  sizes = cell['recipe']['bytes_by_kind']
  predicted = memory.estimate(
      remedies.step_shape_of(cell['recipe']),
      state_bytes=sizes['parameters'] + sizes['optimizer state'],
      gradient_bytes=sizes['gradients (float32)'],
  ).peak
  program = cell['program']
  found = (program['memory'] or {}).get('peak') or program['needed_bytes']
  is_fused = 'fmha' in program['kernels']['attention_forward']
  share = 0.1 if is_fused else 0.25
  assert predicted == pytest.approx(found, rel=share)


def test_a_second_compilation_leaves_nothing_of_the_first(tmp_path):
  topology = topologies.parse('v5e:4x4')
  others = ('v5e-4x4-2.json', 'v5e-4x4-2-eval.hlo.txt')
  for name in ('v5e-4x4-eval.hlo.txt', 'v5e-4x4.png', *others):
    (tmp_path / name).touch()
  paths = report.write(tmp_path, _compiled(_XXL), [], topology)
  assert [path.name for path in paths] == ['v5e-4x4.json']
  left = {path.name for path in tmp_path.iterdir()}
  assert left == {'v5e-4x4.json', *others}


def test_files_hold_the_verdict_and_a_picture(tmp_path):
  compiled, topology = _compiled(_XXL), topologies.parse('h100:32x8')
  verdicts = report.judge(compiled, topology)
  paths = report.write(tmp_path / 'new', compiled, verdicts, topology)
  assert [path.name for path in paths] == ['h100-32x8.json', 'h100-32x8.png']
  found = json.loads(paths[0].read_text())
  assert found['programs']['train']['fits'] is True
  assert paths[1].read_bytes().startswith(b'\x89PNG')
