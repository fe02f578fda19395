# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A layer gets a kernel that can serve it, and the run says which and why."""

import dataclasses

from absl import logging
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.networks import attention_choice
from t5wild.networks import config as config_lib

H100 = attention_choice.Site(
    platform='gpu', max_head_dim=256, dtype=np.dtype(jnp.bfloat16),
    head_dim=64, queries=512, keys=512, mask='sight',
)
V5P = dataclasses.replace(H100, platform='tpu')
CPU = dataclasses.replace(H100, platform='cpu')


def choose(implementation, site, **changes):
  return attention_choice.choose(
      implementation, dataclasses.replace(site, **changes)
  )


@pytest.mark.parametrize(
    ('site', 'changes', 'kernel'),
    [
        (H100, {}, 'cudnn'),
        (H100, {'has_bias': True, 'is_packed': True}, 'cudnn'),
        (H100, {'is_causal': True, 'window': 64}, 'cudnn'),
        (H100, {'mask': 'pairs'}, 'cudnn'),
        (V5P, {'is_causal': True, 'softcap': True, 'window': 64}, 'splash'),
        (V5P, {'has_bias': True, 'is_packed': True}, 'flash'),
        (CPU, {}, 'xla'),
    ],
)
def test_auto_takes_a_fused_kernel_that_serves_the_layer(
    site, changes, kernel
):
  assert choose('auto', site, **changes).kernel == kernel


@pytest.mark.parametrize(
    ('site', 'changes', 'reason'),
    [
        (H100, {'dtype': np.dtype('float32')}, 'not in float32'),
        (H100, {'max_head_dim': 0}, 'GPUs from Ampere on'),
        (H100, {'softcap': True}, 'does not cap logits'),
        (H100, {'head_dim': 60}, 'head_dim 60 is not a multiple of 8'),
        (H100, {'head_dim': 512}, 'head_dim 512 is above 256'),
        (H100, {'has_bias': True, 'queries': 113}, 'odd lengths, 113 x 512'),
        (H100, {'has_bias': True, 'mask': 'pairs'}, 'an array of every head'),
        (
            H100,
            {'has_bias': True, 'is_packed': True, 'head_dim': 256},
            'need head_dim <= 240, not 256',
        ),
        (H100, {'window': 9, 'has_bias': True, 'is_causal': True}, 'beside a'),
        (H100, {'window': 9, 'has_prefix': True}, 'what comes after them'),
        (H100, {'window': 'some layers'}, 'differ in their window'),
        (H100, {'is_step': True}, 'one query at a time'),
        (V5P, {'has_bias': True, 'softcap': True}, 'does not cap logits'),
        (V5P, {'keys': 100}, '100 keys are not a multiple of 128'),
        (V5P, {'mask': 'pairs'}, 'no mask of pairs'),
        (V5P, {'sequence_shards': 8}, '64 queries are not a multiple of 128'),
    ],
)
def test_a_layer_no_kernel_serves_is_left_to_xla_with_the_reason(
    site, changes, reason
):
  choice = choose('auto', site, **changes)
  assert choice.kernel == 'xla'
  assert reason in choice.reason


@pytest.mark.parametrize(
    ('implementation', 'site'),
    [('cudnn', CPU), ('cudnn', V5P), ('splash', H100), ('flash', CPU)],
)
def test_a_kernel_of_other_devices_is_left_to_xla_with_the_reason(
    implementation, site
):
  choice = choose(implementation, site)
  assert choice.kernel == 'xla'
  assert choice.reason == (
      f'{implementation} is not for {site.platform.upper()}s'
  )


def test_a_kernel_that_was_asked_for_is_the_only_one_tried():
  choice = choose('splash', V5P, has_bias=True)
  assert choice.kernel == 'xla'
  assert choice.reason == 'splash: it adds no bias'


def test_each_layer_is_told_once_and_aloud_where_it_gets_another_kernel(
    monkeypatch
):
  lines = []
  monkeypatch.setattr(attention_choice, '_told', set())
  for level in ('info', 'warning'):
    monkeypatch.setattr(
        logging, level,
        lambda form, line, level=level: lines.append((level, form % line)),
    )
  for layer in range(2):
    for softcap in (False, True):
      site = dataclasses.replace(H100, softcap=softcap)
      attention_choice.tell(
          'cudnn', ('encoder', f'layers_{layer}', 'attention'),
          attention_choice.choose('cudnn', site), site,
      )
  assert lines == [
      ('info', "Attention 'cudnn', encoder/attention: cudnn"),
      (
          'warning',
          "Attention 'cudnn', encoder/attention: xla "
          '(cudnn: it does not cap logits)',
      ),
  ]


def test_an_unknown_implementation_is_refused_with_those_there_are():
  config = config_lib.T5Config(
      vocab_size=8, attention_implementation='flash3'
  )
  with pytest.raises(ValueError, match="'flash3', expected one of .*'cudnn'"):
    config_lib.check_config(config)
