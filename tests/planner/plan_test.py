# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The search for how to spread a recipe, and its predictions of time."""

import dataclasses
import json
import pathlib

import gin
import pytest

from t5wild import exit_codes
from t5wild import partitioning
from t5wild.networks import transformer
from t5wild.planner import compile as compile_lib
from t5wild.planner import environment
from t5wild.planner import formulas
from t5wild.planner import memory
from t5wild.planner import plan
from t5wild.planner import remedies
from t5wild.planner import search
from t5wild.planner import step_shape
from t5wild.planner import timing
from t5wild.planner import topologies

_CELLS = json.loads(
    pathlib.Path(__file__).with_name('compiled_cells.json').read_text()
)
_XXL = next(c for c in _CELLS if c['cell'] == 't5_1_1/xxl@h100:32x8')['recipe']
_FACTS = {**_XXL, 'config': 'T5Config'}
_POD = topologies.parse('h100:64')
_RECIPE = ('--gin_file=models/t5_1_1/tiny.gin', '--gin_file=runs/pretrain.gin')


@pytest.fixture(autouse=True)
def _flags():
  plan.define_flags()


def _sizes(split):
  """Bytes as the rules would have them, for 11 billion parameters."""
  ways = split.model * (split.data if split.parameter_dims == 2 else 1)
  parameters = 4 * _FACTS['num_parameters'] // ways
  return {
      'parameters': parameters,
      'optimizer state': parameters // 16,
      'gradients (float32)': parameters,
  }


def _found(topology=_POD, precisions=('bfloat16',), **changes):
  facts = {**_FACTS, **changes}
  splits = search.splits(topology, num_heads=64, batch=2048)
  return search.candidates(
      facts,
      topology,
      sizes_of={split: _sizes(split) for split in splits},
      precisions=precisions,
  )


def test_every_split_uses_all_devices_and_keeps_model_inside_a_host():
  splits = list(search.splits(_POD, num_heads=64, batch=2048))
  assert len(set(splits)) == len(splits)
  for split in splits:
    assert split.replica * split.data * split.model == 64
    assert split.model <= 8
  assert {s.model for s in splits} == {1, 2, 4, 8}
  assert {s.parameter_dims for s in splits} == {1, 2}


def test_heads_and_rows_that_do_not_divide_leave_splits_out():
  splits = list(search.splits(_POD, num_heads=6, batch=32))
  assert {s.model for s in splits} == {2}


@pytest.mark.parametrize('num_heads', [6, 7, 64])
@pytest.mark.parametrize('lengths', [(512, 128), (8192, 2048)])
def test_a_batch_has_splits_where_it_is_a_multiple_of_the_least_rows(
    num_heads, lengths
):
  least = search.least_rows(_POD, num_heads=num_heads, lengths=lengths)
  for batch in (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 100, 128):
    has_some = any(
        search.splits(_POD, num_heads=num_heads, batch=batch, lengths=lengths)
    )
    assert has_some == (batch % least == 0)


def test_a_batch_without_splits_is_told_one_that_has_some():
  facts = {
      'batch': {'decoder_target_tokens': [16, 64]},
      'shape': {'num_heads': 6},
  }
  told = plan._no_split(facts, _POD)
  assert 'BATCH_SIZE 16 ' in told and 'a multiple of 32,' in told
  assert 'Set BATCH_SIZE = 64,' in told


def test_only_long_rows_are_cut_and_model_and_pieces_share_a_host():
  short = search.splits(_POD, num_heads=64, batch=2048, lengths=(512, 128))
  assert {s.sequence for s in short} == {1}
  long = list(search.splits(_POD, num_heads=64, batch=16, lengths=(8192, 2048)))
  # 16 rows on 64 devices leave four for each row.
  assert {s.model * s.sequence for s in long} == {4, 8}
  assert {s.sequence for s in long} == {1, 2, 4, 8}
  for split in long:
    assert split.replica * split.data * split.model * split.sequence == 64
    assert split.mesh['sequence'] == split.sequence
  odd = search.splits(_POD, num_heads=64, batch=64, lengths=(8192, 1022))
  assert {s.sequence for s in odd} == {1, 2}


def test_rows_in_pieces_take_less_memory_and_send_keys_and_values():
  step = dataclasses.replace(
      remedies.step_shape_of(_FACTS), mesh={'data': 64}, num_microbatches=1
  )
  cut = dataclasses.replace(step, mesh={'data': 32, 'sequence': 2}, batch=1024)
  assert cut.rows == step.rows
  whole, halves = (memory.activation_bytes(each) for each in (step, cut))
  assert halves < 0.6 * whole
  keys = cut.model.joined_shared_kv * 2 * cut.activation_bytes * cut.rows
  encoder = cut.model.num_encoder_layers * cut.input_length
  decoder = cut.model.num_decoder_layers * (
      cut.target_length + cut.input_length
  )
  assert memory.gathered_key_bytes(cut) == keys * (encoder + decoder)
  assert memory.gathered_key_bytes(step) == 0
  times = [
      timing.estimate(
          each, _POD, dtype='bfloat16', state_bytes=1e9,
          num_parameters=_FACTS['num_parameters'],
      )  # fmt: skip
      for each in (step, cut)
  ]
  assert times[0].exposed == (0, 0) and times[1].exposed[0] > 0


def test_what_fits_comes_first_and_fastest_first():
  found = _found()
  fits = [c.fits for c in found]
  assert fits == sorted(fits, reverse=True) and any(fits) and not all(fits)
  times = [c.typical_seconds for c in found if c.fits]
  assert times == sorted(times)
  assert all(c.time.best < c.time.worst for c in found)


def test_more_remat_less_memory_more_time():
  by_policy = {
      c.step.remat_policy: c
      for c in _found()
      if (c.split.data, c.split.parameter_dims) == (64, 2)
      and c.step.num_microbatches == 4
  }
  none, minimal, full = (by_policy[p] for p in memory.REMAT_POLICIES)
  assert none.memory.peak > minimal.memory.peak > full.memory.peak
  assert none.time.best < minimal.time.best < full.time.best


def test_microbatches_gather_parameters_once_more_each():
  one, two = (
      next(
          c for c in _found()
          if (c.split.data, c.split.parameter_dims) == (64, 2)
          and c.step.remat_policy == 'full'
          and c.step.num_microbatches == parts
      )
      for parts in (1, 2)
  )
  assert two.memory.kept == pytest.approx(one.memory.kept / 2)
  assert two.time.hideable[1] > 1.8 * one.time.hideable[1]


def test_bytes_of_gathering_are_those_that_the_compiler_sends():
  program = next(
      c for c in _CELLS if c['cell'] == 't5_1_1/xxl@h100:32x8'
  )['program']
  sent = sum(
      each['bytes']
      for each in program['collectives']
      if each['kind'] in ('all-gather', 'reduce-scatter')
  )
  # Gathered in bfloat16 for both passes and scattered once.
  assert sent == pytest.approx(3 * 2 * _FACTS['num_parameters'], rel=0.05)


def test_an_axis_that_leaves_its_host_has_the_ports_of_its_members():
  speed = timing.axis_speed
  assert speed(_POD, size=8, stride=1) == 450e9
  assert speed(_POD, size=64, stride=1) == 8 * 50e9
  assert speed(_POD, size=32, stride=2) == 4 * 50e9
  assert speed(_POD, size=8, stride=8) == 50e9


def test_8_bit_products_are_those_of_dense_layers_but_the_scores():
  shape = formulas.ModelShape(
      num_encoder_layers=0, num_decoder_layers=3, emb_dim=8, mlp_dim=32,
      num_heads=2, head_dim=4, vocab_size=100,
  )  # fmt: skip
  step = step_shape.StepShape(
      model=shape, batch=5, input_length=0, target_length=7, mesh={'data': 1},
      quantization='fp8',
  )  # fmt: skip
  # Queries, keys, values and outputs; two inputs of the MLP and its output.
  forward = 3 * 2 * 5 * 7 * (4 * 8 * 8 + 3 * 8 * 32)
  assert memory.quantized_flops(step) == 3 * forward
  for changes, products in (
      ({'quantization': None}, 0),
      ({'quantization': 'int8'}, 2),  # the kernel's gradient is not
      ({'remat_policy': 'full'}, 4),
      ({'remat_policy': 'minimal'}, 3),
  ):
    changed = dataclasses.replace(step, **changes)
    assert memory.quantized_flops(changed) == products * forward


def test_fp8_halves_what_is_gathered_and_most_of_the_products_seconds():
  plain, fp8 = (
      next(
          c for c in _found(precisions=('bfloat16', 'fp8'))
          if (c.split.data, c.split.parameter_dims) == (64, 2)
          and (c.step.remat_policy, c.step.num_microbatches) == ('full', 1)
          and c.precision == precision
      )
      for precision in ('bfloat16', 'fp8')
  )
  # Two gathers of half the bytes, and gradients as they were.
  assert fp8.time.hideable[1] == pytest.approx(
      2 / 3 * plain.time.hideable[1], rel=0.01
  )
  saved = fp8.time.products[0] / plain.time.products[0]
  assert 0.5 < saved < 0.6
  assert fp8.time.rest[0] > plain.time.rest[0]
  assert fp8.memory.working < plain.memory.working
  assert fp8.dtype == 'bfloat16'


def test_a_recipe_in_fp8_is_planned_in_fp8_where_the_chip_has_it():
  facts = {'dtype': 'bfloat16', 'quantization': 'fp8'}
  a100 = topologies.parse('a100:8').chip
  assert search.precision_of(facts, _POD.chip) == 'fp8'
  assert search.precision_of(facts, a100) == 'bfloat16'


def test_mfu_is_one_where_a_step_takes_what_its_operations_take():
  step = remedies.step_shape_of(_FACTS)
  seconds = _FACTS['model_flops'] / (64 * _POD.chip.peak('bfloat16'))
  assert timing.mfu(
      step, _POD, dtype='bfloat16', seconds=seconds
  ) == pytest.approx(1.0)


def test_the_best_is_the_first_that_the_compiler_lets_fit():
  found = _found()
  too_large = plan.Confirmed(peak_bytes=99 * 10**9, seconds=1.0)
  good = plan.Confirmed(peak_bytes=50 * 10**9, seconds=1.0)
  assert plan.best_of(found, {}, _POD) is found[0]
  assert plan.best_of(found, {0: too_large, 1: good}, _POD) is found[1]
  assert plan.best_of(found, {0: too_large}, _POD) is None


def test_the_table_has_money_where_a_price_is_given():
  shown = plan.text(
      _found()[:3],
      {0: plan.Confirmed(peak_bytes=50 * 2**30, seconds=1.0)},
      {**_FACTS, 'total_steps': 100_000},
      _POD,
      price=2.5,
  )
  head = next(line for line in shown.splitlines() if 'MFU' in line)
  assert 'money' in head and 'days' in head
  assert '50.0' in shown


def test_the_table_has_the_best_of_like_ways_and_the_compilers_word():
  found = _found()
  last = len(found) - 1
  too_large = plan.Confirmed(peak_bytes=99 * 2**30, seconds=1.0)
  shown = plan._shown(found, {1: too_large})
  kinds = [
      (c.split, c.step.remat_policy, c.precision)
      for c in (found[i] for i in shown if i != 1)
  ]
  assert len(set(kinds)) == len(kinds)
  assert 0 in shown and 1 in shown and last not in shown
  row = plan._row(found[1], too_large, _FACTS, _POD, None)
  assert found[1].fits and 'no' in row and '99.0' in row


def test_the_table_has_the_best_of_each_precision():
  found = _found(precisions=('bfloat16', 'fp8'))
  shown = plan._shown(found, {})
  for precision in ('bfloat16', 'fp8'):
    best = next(i for i, c in enumerate(found) if c.precision == precision)
    assert best in shown
  assert plan._shown(found[:1], {}) == [0]


def test_the_winner_is_a_gin_file_that_binds_what_was_chosen():
  candidate = dataclasses.replace(
      _found(precisions=('fp8',))[0], split=search.Split(
          replica=2, data=16, model=2, parameter_dims=2, activation_dims=1
      )
  )
  text = search.gin_text(candidate, config='T5Config', head='One.\nTwo.')
  assert text.startswith('# One.\n# Two.\n')
  gin.clear_config()
  try:
    gin.parse_config(text)
    bound = gin.get_bindings
    assert bound(partitioning.PjitPartitioner)['mesh_shape'] == {
        'replica': 2, 'data': 16, 'model': 2
    }
    config = bound(transformer.T5Config)
    assert config['remat_policy'] == candidate.step.remat_policy
    assert (config['dtype'], config['quantization']) == ('bfloat16', 'fp8')
  finally:
    gin.clear_config()


@pytest.mark.parametrize(
    ('flags', 'told'),
    [
        (_RECIPE, '--devices is missing'),
        (('--devices=h10:8', *_RECIPE), 'unknown kind'),
        (('--devices=cpu:8', *_RECIPE), 'are CPUs'),
        (('--devices=h100:8',), '--gin_file is missing'),
        (('--devices=h100:8', '--confirm=-1', *_RECIPE), '--confirm=-1'),
        (('--devices=v5e:8', '--dtypes=float8', *_RECIPE), "'float8'"),
        (('--devices=a100:8', '--dtypes=fp8', *_RECIPE), "'fp8'"),
    ],
)
def test_bad_flags_are_refused_with_the_mend(flags, told, capsys):
  assert plan.run(['t5wild plan', *flags]) == exit_codes.BAD_CONFIG.code
  assert told in capsys.readouterr().err


def test_a_missing_compiler_is_answered_before_anything_runs(
    monkeypatch, capsys
):
  monkeypatch.setattr(environment, 'version_of', lambda name: None)
  code = plan.run(['t5wild plan', '--devices=h100:8', *_RECIPE])
  assert code == exit_codes.BAD_CONFIG.code
  told = capsys.readouterr().err
  assert 'pip install' in told and '--confirm=0' in told


def test_the_recipe_is_handed_on_without_the_flags_of_the_plan():
  assert plan.recipe_arguments([
      '--devices=h100:8', '--gin_file=a.gin', '--confirm', '0', '--gin.X=1',
  ]) == ['--gin_file=a.gin', '--gin.X=1']  # fmt: skip


@pytest.mark.slow
def test_a_recipe_is_planned_without_its_data_or_any_compiler(tmp_path, capsys):
  code = plan.run([
      't5wild plan', *_RECIPE, '--devices=h100:1x4', '--confirm=0',
      f'--plan_gin={tmp_path}/plan.gin', '--gin.MIXTURE_OR_TASK_NAME=none',
      "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 8}",
      '--gin.BATCH_SIZE=16', '--gin.DROPOUT_RATE=0.0',
      '--gin.TRAIN_STEPS=10', f'--gin.MODEL_DIR={tmp_path}',
  ])  # fmt: skip
  shown = capsys.readouterr()
  assert code == exit_codes.DONE.code, shown.err
  assert '4 x H100 (h100:1x4)' in shown.out
  assert 'mesh_shape' in (tmp_path / 'plan.gin').read_text()


def test_a_compilers_refusal_is_noted_and_the_next_is_tried(monkeypatch):
  def refuse(request):
    raise compile_lib.CompilerEndedError('It ended.\nMore.')

  monkeypatch.setattr(compile_lib, 'compile_recipe', refuse)
  request = compile_lib.Request(arguments=(), topology=_POD)
  assert plan._compiled(request).note == 'It ended.'
