# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""config.json of decoders says one network, in old and new words."""

import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import hf_decoders
from t5wild.networks import config as config_lib
from t5wild.networks import decoder_only

SIZES = {
    'vocab_size': 48, 'hidden_size': 32, 'intermediate_size': 24,
    'num_hidden_layers': 8, 'num_attention_heads': 4, 'num_key_value_heads': 2,
    'head_dim': 8,
}  # fmt: skip
LLAMA_31 = {
    'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
    'original_max_position_embeddings': 8192,
}  # fmt: skip


def _read(model_type, **changes):
  config = SIZES | {'model_type': model_type} | changes
  return hf_decoders.read_config(config, where='the model')


@pytest.mark.parametrize('family', hf_decoders.FAMILIES)
def test_what_is_read_can_be_written_and_read_again(family):
  network = _read(family)
  config = hf_decoders.make_config(network, family=family)
  assert hf_decoders.read_config(config, where='again') == network
  config_lib.check_config(decoder_only.TransformerConfig(**network))


@pytest.mark.parametrize(
    ('family', 'changes', 'found'),
    [
        ('llama', {}, 'llama'),
        ('llama', {'attention_bias': True}, 'llama'),
        ('mistral', {'sliding_window': None}, 'llama'),  # The same network.
        ('mistral', {}, 'mistral'),
        ('qwen2', {}, 'qwen2'),
        ('qwen3', {}, 'qwen3'),
        ('gemma', {}, 'gemma'),
        ('gemma2', {}, 'gemma2'),
        ('gemma3_text', {}, 'gemma3_text'),
    ],
)
def test_family_is_found_by_the_network(family, changes, found):
  network = _read(family, **changes)
  assert hf_decoders.make_config(network)['model_type'] == found


@pytest.mark.parametrize(
    ('family', 'old', 'new'),
    [
        ('llama', {'rope_theta': 5e5}, {'rope_parameters': {
            'rope_type': 'default', 'rope_theta': 5e5}}),
        ('llama', {'rope_theta': 5e5, 'rope_scaling': LLAMA_31 | {
            'rope_type': 'llama3'}},
         {'rope_parameters': LLAMA_31 | {
             'rope_type': 'llama3', 'rope_theta': 5e5}}),
        ('llama', {'rope_scaling': {'type': 'linear', 'factor': 2.0}},
         {'rope_parameters': {
             'rope_type': 'linear', 'factor': 2.0, 'rope_theta': 1e4}}),
        ('gemma', {'hidden_act': 'gelu'}, {'hidden_act': 'gelu_pytorch_tanh'}),
        ('gemma', {'hidden_act': 'gelu', 'hidden_activation': None}, {}),
        ('gemma2', {}, {'layer_types': [
            'sliding_attention', 'full_attention'] * 4}),
        ('gemma3_text', {'sliding_window_pattern': 3}, {'layer_types': [
            'sliding_attention', 'sliding_attention', 'full_attention'] * 2
            + ['sliding_attention'] * 2}),
        ('gemma3_text', {
            'rope_theta': 5e5, 'rope_local_base_freq': 100.0,
            'rope_scaling': {'rope_type': 'linear', 'factor': 8.0}},
         {'rope_parameters': {
             'full_attention': {
                 'rope_type': 'linear', 'factor': 8.0, 'rope_theta': 5e5},
             'sliding_attention': {
                 'rope_type': 'default', 'rope_theta': 100.0}}}),
        ('qwen2', {'use_sliding_window': True, 'sliding_window': 5,
                   'max_window_layers': 6},
         {'use_sliding_window': True, 'sliding_window': 5, 'layer_types': [
             'full_attention'] * 6 + ['sliding_attention'] * 2}),
        ('qwen2', {'sliding_window': 5}, {'sliding_window': None}),
    ],
)  # fmt: skip
def test_old_words_mean_what_new_ones_do(family, old, new):
  assert _read(family, **old) == _read(family, **new)


def test_what_config_json_leaves_out_is_as_transformers_has_it():
  network = _read('gemma2', head_dim=None)
  assert network['head_dim'] == 256
  assert network['query_pre_attn_scalar'] == 256.0
  assert network['attention_softcap'] == 50.0
  assert network['logits_via_embedding']
  network = _read('llama', head_dim=None, num_key_value_heads=None)
  assert network['head_dim'] == 8
  assert network['num_kv_heads'] == 4
  assert not network['logits_via_embedding']


def test_same_pattern_of_layers_however_often_it_is_said():
  kinds = ['local', 'local', 'global', 'local']
  assert hf_decoders.shortest_pattern(kinds) == ('local', 'local', 'global')
  assert hf_decoders.shortest_pattern(['global'] * 4) == ('global',)


@pytest.mark.parametrize(
    ('family', 'changes', 'words'),
    [
        ('llama', {'rope_scaling': {'rope_type': 'yarn', 'factor': 2.0}},
         "'yarn'.*llama3"),
        ('llama', {'rope_scaling': {'rope_type': 'llama3', 'factor': 2.0}},
         'original_max_position_embeddings.*None|low_freq_factor.*None'),
        ('llama', {'rope_scaling': {'rope_type': 'linear', 'factor': 0}},
         'factor.* 0 .*above 0'),
        ('llama', {'rope_theta': 'big'}, "rope_theta.*'big'"),
        ('llama', {'partial_rotary_factor': 0.5}, 'partial_rotary_factor'),
        ('llama', {'hidden_act': 'gelu'}, "activation 'gelu'.*'silu'"),
        ('llama', {'hidden_size': -8}, 'hidden_size is -8'),
        ('gemma3_text', {'use_bidirectional_attention': True},
         'use_bidirectional_attention is True'),
        ('gemma3_text', {'rope_parameters': {'sliding_attention': {
            'rope_type': 'linear', 'factor': 2.0}}}, 'local layers'),
        ('gemma2', {'layer_types': ['chunked_attention'] * 8}, 'chunked'),
        ('gemma2', {'layer_types': ['full_attention']}, '1 layer_types'),
    ],
)  # fmt: skip
def test_what_our_networks_lack_is_refused(family, changes, words):
  with pytest.raises(steps.NotACheckpointError, match=words):
    _read(family, **changes)


def test_network_of_no_family_is_refused_by_what_differs_from_the_nearest():
  network = _read('llama') | {'parallel_blocks': True, 'norm': 'layer'}
  with pytest.raises(ValueError, match='the nearest, llama') as error:
    hf_decoders.make_config(network)
  assert "norm = 'layer', in llama: 'rms'\n" in str(error.value)
  assert 'parallel_blocks = True, in llama: False\n' in str(error.value)
  assert str(error.value).count('in llama:') == 2
  with pytest.raises(ValueError, match='in gemma: .*\n'):
    hf_decoders.make_config(_read('llama'), family='gemma')
