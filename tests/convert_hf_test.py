# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild convert` to and from Hugging Face, and what goes beside weights."""

import json
import pathlib
import types

import flax.core
import gin
import jax
import numpy as np
import pytest

from t5wild import convert
from t5wild import exit_codes
from t5wild import run_config
from t5wild.checkpoints import configs
from t5wild.checkpoints import formats
from t5wild.checkpoints import hf
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import transforms
from tests.checkpoints import hf_recorded

MODELS = hf_recorded.read()
_RUN = """
from __gin__ import dynamic_registration
from t5wild import partitioning
from t5wild import train as train_script
{head}
include '{model}'
DROPOUT_RATE = 0.0
train_script.train:
  model = %MODEL
  partitioner = @partitioning.PjitPartitioner()
{more}
"""


@pytest.fixture(autouse=True)
def _clean_gin():
  gin.clear_config()
  yield
  gin.clear_config()


def _convert(*arguments):
  return convert.main([str(argument) for argument in arguments])


def _make_run(folder, *, model, more='', head=''):
  """A run directory with a checkpoint that was not trained."""
  folder.mkdir()
  text = _RUN.format(head=head, model=model, more=more)
  (folder / 'config.gin').write_text(text)
  made = run_config.RunConfig.read(str(folder / 'config.gin')).need('model')
  gin.clear_config()
  names = (
      ('decoder_input_tokens', 'decoder_target_tokens')
      if 'TransformerConfig' in str(type(made.module.config))
      else (
          'encoder_input_tokens', 'decoder_input_tokens',
          'decoder_target_tokens',
      )
  )
  shapes = jax.eval_shape(
      lambda key: made.get_initial_variables(key, dict.fromkeys(names, (2, 4))),
      jax.random.PRNGKey(0),
  )
  random = np.random.RandomState(0)
  params = jax.tree.map(
      lambda x: random.standard_normal(x.shape).astype(np.float32),
      flax.core.unfreeze(shapes['params']),
  )
  manager = manager_lib.CheckpointManager(
      folder, config=configs.SaveCheckpointConfig(dtype=None)
  )
  manager.save(3, {'target': params, 'state': {'step': np.int32(3)}})
  manager.close()
  return params


def _values(module, config, changes):
  lines = [f'{module}.{config}.{k} = {v!r}' for k, v in changes.items()]
  return '\n'.join(lines)


GEMMA_3 = {
    'post_norms': True, 'normalize_heads': True, 'local_window': 3,
    'layer_pattern': ('local', 'global'), 'query_pre_attn_scalar': 7.0,
    'local_rotary_wavelength': 1e4, 'rotary_wavelength': 1e6,
}  # fmt: skip


@pytest.mark.parametrize(
    ('model', 'changes', 'family'),
    [
        ('llama_like', {}, 'llama'),
        ('llama_like', {'attention_bias': 'inputs'}, 'qwen2'),
        ('gemma_like', {}, 'gemma'),
        ('gemma_like', GEMMA_3 | {'scan_layers': True}, 'gemma3_text'),
    ],
)
def test_decoder_of_a_run_is_written_by_its_config(
    tmp_path, model, changes, family
):
  module = 'from t5wild.networks import decoder_only as network'
  params = _make_run(
      tmp_path / 'run',
      model=f'models/{model}/tiny.gin',
      head=module + '\nimport seqio',
      more=_values(
          'network', 'TransformerConfig', {'vocab_size': 259} | changes
      ) + '\nVOCABULARY = @seqio.ByteVocabulary()',
  )  # fmt: skip
  out = tmp_path / 'out'
  assert _convert('--run', tmp_path / 'run', '--to', out, '--to_format=hf') == (
      exit_codes.DONE.code
  )
  config = json.loads((out / 'config.json').read_text())
  assert config['model_type'] == family
  assert config['eos_token_id'] == 1
  assert (out / 'tokenizer_config.json').exists()
  network = hf.read_network(str(out))
  for key, value in changes.items():
    if key != 'scan_layers':
      assert network[key] == value, key
  read = formats.read_structure(out)
  table = 'target/decoder/token_embedder/embedding'
  np.testing.assert_array_equal(
      np.asarray(read[table]), transforms.flatten({'target': params})[table]
  )


def test_t5_of_a_run_tells_its_activation_and_epsilon(tmp_path):
  _make_run(
      tmp_path / 'run',
      model='models/ul2/tiny.gin',
      head='from t5wild.networks import transformer as network\nimport seqio',
      more=_values('network', 'T5Config', {'norm_epsilon': 1e-5})
      + '\nVOCABULARY = @seqio.ByteVocabulary()',
  )
  out = tmp_path / 'out'
  assert _convert('--run', tmp_path / 'run', '--to', out, '--to_format=hf') == 0
  config = json.loads((out / 'config.json').read_text())
  assert config['feed_forward_proj'] == 'gated-silu'
  assert config['layer_norm_epsilon'] == 1e-5


def test_scanned_t5_whose_layers_differ_in_their_bias_is_a_umt5(tmp_path):
  _make_run(
      tmp_path / 'run',
      model='models/byt5/tiny.gin',
      head='from t5wild.networks import transformer as network',
      more=_values('network', 'T5Config', {'scan_layers': True}),
  )
  out = tmp_path / 'out'
  assert _convert('--run', tmp_path / 'run', '--to', out, '--to_format=hf') == 0
  config = json.loads((out / 'config.json').read_text())
  assert config['model_type'] == 'umt5'


@pytest.mark.parametrize(
    ('model', 'words'),
    [
        ('palm_like', "norm = 'layer_without_bias', in"),
        ('t5_1_1', "'scale_queries': True"),
    ],
)
def test_network_that_transformers_lacks_is_told_by_its_values(
    tmp_path, capsys, model, words
):
  is_t5 = model == 't5_1_1'
  network = 'transformer' if is_t5 else 'decoder_only'
  _make_run(
      tmp_path / 'run',
      model=f'models/{model}/tiny.gin',
      head=f'import seqio\nfrom t5wild.networks import {network} as network',
      more='VOCABULARY = @seqio.ByteVocabulary()\n'
      + ('network.T5Config.scale_queries = True' if is_t5 else ''),
  )
  out = tmp_path / 'out'
  code = _convert('--run', tmp_path / 'run', '--to', out, '--to_format=hf')
  assert code == exit_codes.BAD_CONFIG.code
  assert words in capsys.readouterr().err
  assert not out.exists()


def test_network_of_somebody_else_is_refused(tmp_path, capsys, monkeypatch):
  _make_run(tmp_path / 'run', model='models/byt5/tiny.gin')
  theirs = types.SimpleNamespace(config=types.SimpleNamespace(emb_dim=8))
  monkeypatch.setattr(
      run_config.RunConfig,
      'need',
      lambda *_: types.SimpleNamespace(module=theirs),
  )
  code = _convert(
      '--run', tmp_path / 'run', '--to', tmp_path / 'o', '--to_format=hf'
  )
  assert code == exit_codes.BAD_CONFIG.code
  assert 'expected one of t5wild.networks' in capsys.readouterr().err


def _write_theirs(folder, name, files=()):
  hf_recorded.write_folder(folder, MODELS[name])
  for file in files:
    (folder / file).write_text('{"eos_token": "</s>"}')


@pytest.mark.parametrize('name', ['llama_3_1', 'mt5', 'ul2'])
@pytest.mark.parametrize('flags', [[], ['--scan']])
def test_model_that_came_goes_back_with_all_it_had(tmp_path, name, flags):
  theirs, ours, back = (tmp_path / n for n in ('theirs', 'ours', 'back'))
  _write_theirs(theirs, name, ['tokenizer_config.json', 'tokenizer.json'])
  assert _convert('--from', theirs, '--to', ours, *flags) == 0
  assert _convert('--from', ours, '--to', back, '--to_format=hf') == 0
  config = json.loads((back / 'config.json').read_text())
  for key, value in MODELS[name]['config'].items():
    if key not in ('tie_word_embeddings', 'scale_decoder_outputs'):
      assert config[key] == value, key
  assert (back / 'tokenizer.json').exists()
  expected, read = (formats.read_structure(f) for f in (theirs, back))
  assert read.keys() == expected.keys()
  for key, array in expected.items():
    np.testing.assert_array_equal(np.asarray(read[key]), np.asarray(array))


@pytest.mark.parametrize('name', ['gemma_3', 'byt5_depths'])
def test_gin_that_comes_with_a_model_is_its_network(tmp_path, name):
  theirs, ours = tmp_path / 'theirs', tmp_path / 'ours'
  _write_theirs(theirs, name)
  (theirs / 'tokenizer_config.json').write_text(
      '{"tokenizer_class": "ByT5Tokenizer", "x": "<extra_id_0><extra_id_99>"}'
  )
  assert _convert('--from', theirs, '--to', ours) == 0
  assert 'model.gin' in {p.name for p in pathlib.Path(ours).iterdir()}
  model = run_config.RunConfig.read(str(ours / 'config.gin')).need('model')
  assert model.output_vocabulary.vocab_size == 259 + 100
  config = model.module.config
  for key, value in hf.read_network(str(theirs)).items():
    assert getattr(config, key) == value, key
  assert config.dtype == 'float32'


def test_config_of_a_run_is_not_replaced(tmp_path):
  theirs, ours = tmp_path / 'theirs', tmp_path / 'ours'
  _write_theirs(theirs, 'llama_2')
  ours.mkdir()
  (ours / 'config.gin').write_text('# mine')
  assert _convert('--from', theirs, '--to', ours) == 0
  assert (ours / 'config.gin').read_text() == '# mine'


def test_model_to_be_like_must_be_of_the_same_network(tmp_path, capsys):
  theirs, ours = tmp_path / 'theirs', tmp_path / 'ours'
  _write_theirs(theirs, 'llama_2')
  _write_theirs(tmp_path / 'other', 'llama_with_biases')
  assert _convert('--from', theirs, '--to', ours) == 0
  arguments = ['--from', ours, '--to', tmp_path / 'out', '--to_format=hf']
  code = _convert(*arguments, '--like', tmp_path / 'other')
  assert code == exit_codes.BAD_CONFIG.code
  assert 'mlp/wi_0/bias' in capsys.readouterr().err
  code = _convert(*arguments, '--like', tmp_path / 'nowhere')
  assert code == exit_codes.BAD_CONFIG.code
  assert 'correct --like' in capsys.readouterr().err
  assert _convert(*arguments, '--like', theirs) == 0


@pytest.mark.parametrize('flag', ['--family=t5', '--activation=silu'])
def test_flags_of_another_format_are_refused(capsys, flag):
  with pytest.raises(SystemExit):
    _convert('--from', 'a', '--to', 'b', flag)
  assert '--to_format=hf' in capsys.readouterr().err


def test_neither_checkpoint_nor_run_is_refused(capsys):
  with pytest.raises(SystemExit):
    _convert('--to', 'b')
  assert '--run=MODEL_DIR' in capsys.readouterr().err
