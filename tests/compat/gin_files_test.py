# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's gin paths give T5X's values, whoever reads them."""

import subprocess
import sys

import pytest

from t5wild import eval as evaluate
from t5wild import infer
from t5wild import train
from t5wild.compat import gin_files
from t5wild.gin_config import lint
from t5wild.gin_config import reader

_RUN = 't5x/configs/runs/pretrain.gin'


@pytest.fixture
def served(t5x_names, monkeypatch, tmp_path):
  """T5X's paths are served, in a directory that holds none of them."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(reader, '_SOURCES', [gin_files.text_of])
  for name, function in (
      ('train', train.train), ('evaluate', evaluate.evaluate),
      ('infer', infer.infer),
  ):  # fmt: skip
    monkeypatch.setattr(
        sys.modules['__main__'], name, function, raising=False
    )


def _values(*paths):
  """What `paths` bind in the end: (object, parameter) or macro -> value."""
  report = lint.lint([reader.read_file(path) for path in paths])
  assert not [each for each in report.findings if each.kind == 'name']
  return {
      (
          seen.target.value.__name__ if seen.target else 'macro',
          seen.binding.parameter or seen.binding.name,
      ): seen.binding.value
      for seen in report.seen
  }


@pytest.mark.parametrize(
    'path',
    [
        't5x/examples/t5/t5_1_1/xxl.gin', 't5x/examples/t5/t5_1_0/11B.gin',
        't5x/examples/t5/mt5/xl.gin', 't5x/examples/t5/byt5/large.gin',
        't5x/examples/scalable_t5/mt5/xxl.gin',
        't5x/examples/decoder_only/models/base.gin',
        't5x/contrib/gpu/t5/t5_1_1/large.gin',
        't5x/contrib/gpu/t5/configs/runs/finetune.gin',
        't5x/examples/scalable_t5/umt5/runs/pretraining_common.gin',
        't5x/configs/runs/infer.gin',
    ],
)
def test_the_paths_that_recipes_include_are_served(path, served):
  assert path in gin_files.paths()
  assert reader.read_file(path).statements


@pytest.mark.parametrize(
    'path',
    [
        't5x/configs/runs/eval.gin', 't5x/examples/t5/mt5/large.gin',
        't5x/examples/scalable_t5/umt5/runs/pretraining_common.gin',
    ],
)
def test_the_paths_of_googles_tree_mean_the_same_files(path, served):
  at_google = f'third_party/py/{path}'
  assert _values(at_google) == _values(path)
  assert gin_files.path_of_ours(at_google) == gin_files.path_of_ours(path)
  assert gin_files._is_served(at_google)


@pytest.mark.parametrize(
    ('path', 'config', 'values'),
    [
        (
            't5x/examples/t5/t5_1_1/small.gin', 'T5Config',
            {'emb_dim': 512, 'num_heads': 6, 'mlp_dim': 1024},
        ),
        (
            't5x/contrib/gpu/t5/t5_1_1/small.gin', 'GpuT5Config',
            {'emb_dim': 512, 'num_heads': 6, 'mlp_dim': 1024},
        ),
        (
            't5x/examples/scalable_t5/t5_1_1/small.gin', 'ScannedT5Config',
            {'emb_dim': 512, 'scan_layers': True, 'remat_policy': 'minimal'},
        ),
        (
            't5x/examples/t5/t5_1_0/3B.gin', 'T5Config',
            {'head_dim': 128, 'mlp_dim': 16384, 'logits_via_embedding': True},
        ),
        (
            't5x/examples/t5/mt5/tiny.gin', 'T5Config',
            {'vocab_size': 32128, 'head_dim': 3},
        ),
        (
            't5x/examples/decoder_only/models/large.gin', 'TransformerConfig',
            {'emb_dim': 1024, 'num_layers': 24},
        ),
    ],
)  # fmt: skip
def test_each_network_of_t5x_has_its_own_config_with_its_values(
    path, config, values, served
):
  found = _values(path)
  assert {name: found[config, name] for name in values} == values
  others = {'T5Config', 'GpuT5Config', 'ScannedT5Config'} - {config}
  assert not others & {owner for owner, _ in found}


def test_the_macros_that_recipes_set_are_there(served):
  found = _values('t5x/examples/t5/t5_1_1/base.gin', _RUN)
  macros = {name for owner, name in found if owner == 'macro'}
  assert macros >= {
      'BATCH_SIZE', 'DROPOUT_RATE', 'LABEL_SMOOTHING',
      'LOSS_NORMALIZING_FACTOR', 'MIXTURE_OR_TASK_MODULE',
      'MIXTURE_OR_TASK_NAME', 'MODEL', 'MODEL_DIR',
      'OPTIMIZER', 'RANDOM_SEED', 'SHUFFLE_TRAIN_EXAMPLES',
      'TASK_FEATURE_LENGTHS', 'TRAIN_STEPS', 'TRAIN_STEPS_RELATIVE',
      'USE_CACHED_TASKS', 'USE_HARDWARE_RNG', 'VOCABULARY', 'Z_LOSS',
  }  # fmt: skip
  macros = {
      name
      for owner, name in _values('t5x/configs/runs/finetune.gin')
      if owner == 'macro'
  }
  assert macros >= {
      'EVALUATOR_NUM_EXAMPLES', 'EVALUATOR_USE_MEMORY_CACHE', 'EVAL_PERIOD',
      'EVAL_STEPS', 'INITIAL_CHECKPOINT_PATH', 'JSON_WRITE_N_RESULTS',
  }  # fmt: skip


def test_a_path_that_t5x_has_not_is_not_served(served):
  with pytest.raises(reader.GinError, match='no gin file'):
    reader.find_file('t5x/examples/t5/t5_1_1/smal.gin')


@pytest.mark.parametrize(
    ('asked', 'closest'),
    [
        ('t5x/examples/t5/t5_1_1/smal.gin', 't5x/examples/t5/t5_1_1/small.gin'),
        ('t5x/examples/t5/mt5/bas.gin', 't5x/examples/t5/mt5/base.gin'),
        ('t5x/configs/runs/finetun.gin', 't5x/configs/runs/finetune.gin'),
        ('models/t5_1_1/smal.gin', 'models/t5_1_1/small.gin'),
        (
            'third_party/py/t5x/contrib/gpu/t5/byt5/smal.gin',
            't5x/contrib/gpu/t5/byt5/small.gin',
        ),
    ],
)
def test_a_mistyped_path_is_told_the_closest_one_first(
    asked, closest, tmp_path, monkeypatch
):
  monkeypatch.setattr(reader, '_SOURCES', [])
  monkeypatch.setattr(reader, '_PATHS_OF_SOURCES', [])
  monkeypatch.setattr(gin_files.gin.config, 'register_file_reader', print)
  gin_files.register()
  file = tmp_path / 'recipe.gin'
  file.write_text(f'include {asked!r}\n')
  with pytest.raises(reader.GinError) as raised:
    reader.read_file(str(file))
  assert f'no gin file {asked!r}; did you mean {closest!r}' in str(raised.value)


def test_a_file_of_the_working_directory_comes_first(served, tmp_path):
  own = tmp_path / 't5x/examples/t5/t5_1_1/small.gin'
  own.parent.mkdir(parents=True)
  own.write_text('A = 1\n')
  found = reader.read_file('t5x/examples/t5/t5_1_1/small.gin')
  assert len(found.statements) == 1


def test_gin_itself_finds_the_paths(tmp_path):
  code = """
import gin
import t5wild.compat
gin.parse_config_files_and_bindings(
    ['t5x/contrib/gpu/t5/t5_1_1/small.gin'], ['DROPOUT_RATE = 0.0'])
print(gin.query_parameter('network.T5Config.emb_dim'))
"""
  done = subprocess.run(
      [sys.executable, '-c', code],
      capture_output=True, text=True, check=False, cwd=tmp_path,
  )
  assert done.stdout == '512\n', done.stderr
