# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of models on machines, and predictions beside published runs."""

import json
import pathlib

import pytest

from t5wild.planner import formulas
from t5wild.planner import scale_table
from t5wild.planner import step_shape
from t5wild.planner import timing
from t5wild.planner import topologies

_CELLS = json.loads(
    pathlib.Path(__file__).with_name('compiled_cells.json').read_text()
)
_XXL = next(c for c in _CELLS if c['cell'] == 't5_1_1/xxl@h100:32x8')


def _t5(emb_dim, num_heads, mlp_dim):
  return formulas.ModelShape(
      num_encoder_layers=24, num_decoder_layers=24, emb_dim=emb_dim,
      mlp_dim=mlp_dim, num_heads=num_heads, head_dim=64, vocab_size=32128,
  )  # fmt: skip


_LARGE, _XL, _LARGEST = (
    _t5(1024, 16, 2816), _t5(2048, 32, 5120), _t5(4096, 64, 10240)
)  # fmt: skip
_LLAMA_8B = formulas.ModelShape(
    num_encoder_layers=0, num_decoder_layers=32, emb_dim=4096, mlp_dim=14336,
    num_heads=32, num_kv_heads=8, head_dim=128, vocab_size=128256,
    num_relative_buckets=0,
)  # fmt: skip
# Model, machine, rows of a batch, model axis, quantization, sequences a second
# as published for 512 inputs and 128 targets: NVIDIA JAX-Toolbox,
# rosetta/projects/t5x/README.md. Its FP8 is Transformer Engine's.
PUBLISHED_T5 = {
    'large, 64 A100': (_LARGE, 'a100:8x8', 2048, 1, None, 4853),
    'XL, 144 A100': (_XL, 'a100:18x8', 1152, 1, None, 3021),
    'XL, 256 A100': (_XL, 'a100:32x8', 2048, 1, None, 4322),
    'XXL, 512 A100': (_LARGEST, 'a100:64x8', 2304, 8, None, 1887),
    'large, 64 H100': (_LARGE, 'h100:8x8', 2048, 1, 'fp8', 10156),
    'XL, 144 H100': (_XL, 'h100:18x8', 2016, 1, 'fp8', 7257),
    'XL, 256 H100': (_XL, 'h100:32x8', 2048, 1, 'fp8', 9688),
}


@pytest.mark.parametrize('name', PUBLISHED_T5)
def test_published_steps_of_t5_lie_within_the_predicted_range(name):
  shape, machine, batch, model, quantization, per_second = PUBLISHED_T5[name]
  topology = topologies.parse(machine)
  mesh = {'data': topology.num_devices // model, 'model': model}
  parameters = formulas.count_parameters(shape)
  time = timing.estimate(
      step_shape.StepShape(
          model=shape, batch=batch, input_length=512, target_length=128,
          mesh=mesh, quantization=quantization,
      ),
      topology,
      dtype='bfloat16',
      num_parameters=parameters,
      state_bytes=12 * parameters / model,  # Adam
  )  # fmt: skip
  assert time.best < batch / per_second < time.worst


def test_a_published_step_of_llama_8b_lies_within_the_predicted_range():
  # torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, table 1: 8 H100s,
  # FSDP, two rows of 8192 tokens each, selective checkpointing, torch.compile.
  tokens_per_second = 6667
  parameters = formulas.count_parameters(_LLAMA_8B)
  time = timing.estimate(
      step_shape.StepShape(
          model=_LLAMA_8B, batch=16, input_length=0, target_length=8192,
          mesh={'data': 8}, parameters_are_sharded=True,
          remat_policy='minimal', attention_is_fused=True,
      ),
      topologies.parse('h100:1x8'),
      dtype='bfloat16',
      num_parameters=parameters,
      state_bytes=12 * parameters / 8,
  )  # fmt: skip
  assert time.best < 2 * 8192 / tokens_per_second < time.worst


def _write(folder, cell):
  program = cell['program']
  folder.mkdir()
  (folder / 'cell.json').write_text(json.dumps({
      'topology': 'h100:32x8',
      'recipe': cell['recipe'],
      'programs': {'train': {
          **program, 'peak_bytes': program['memory']['peak'], 'fits': True,
      }},
  }))  # fmt: skip


def test_what_was_compiled_is_told_apart_from_what_is_planned(tmp_path):
  _write(tmp_path / 'XXL', _XXL)
  found = scale_table.cells(tmp_path, ['h100:32x8', 'v5e:16x16'])
  compiled, planned = scale_table.markdown(found).splitlines()[2:]
  assert f'{_XXL["program"]["compile_seconds"]:.0f} s |' in compiled
  assert 'all-gather, data: 41 GiB' in compiled
  assert planned.endswith('| planned |')


def test_a_recipe_moved_keeps_its_rows_on_each_device():
  facts = scale_table.moved(_XXL['recipe'], 64)
  assert facts['batch']['encoder_input_tokens'] == [8 * 64, 512]
  assert facts['mesh']['data'] == 64
  assert facts['bytes_by_kind']['parameters'] == pytest.approx(
      4 * _XXL['recipe']['bytes_by_kind']['parameters']
  )


def test_parameters_that_do_not_divide_are_replicated():
  byt5 = next(c for c in _CELLS if c['cell'] == 'byt5/xxl@h100:8x8')['recipe']
  facts = scale_table.moved(byt5, 256)  # of an embed axis of 4672 = 64 x 73
  assert (facts['mesh']['replica'], facts['mesh']['data']) == (4, 64)
  assert facts['bytes_by_kind'] == byt5['bytes_by_kind']
  assert facts['batch']['encoder_input_tokens'] == [4 * 256, 1024]


def test_a_folder_without_cells_is_told(tmp_path):
  with pytest.raises(ValueError, match='no compiled cells'):
    scale_table.cells(tmp_path, ['h100:1x8'])
