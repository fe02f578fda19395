# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Decoders too have one loss curve, whatever the mesh.

As `mesh_law_test`, for language models on the packed targets of real text.
"""

import functools

import numpy as np
import pytest

from t5wild import models
from t5wild.data import vocabularies
from t5wild.networks import decoder_only as network
from t5wild.optimizers import adafactor

_MESHES = {
    'fully sharded': {
        'mesh_shape': {'data': 8}, 'parameter_partitioning_dims': 2,
    },
    # Four shards of heads, and one or two heads of keys.
    'tensor parallel': {'mesh_shape': {'data': 2, 'model': 4}},
}
_DECODERS = {
    'palm': {
        'parallel_blocks': True, 'positions': 'rotary', 'num_kv_heads': 1,
        'norm': 'layer_without_bias', 'logits_via_embedding': True,
    },
    'gemma, scanned': {
        'positions': 'rotary', 'num_kv_heads': 2, 'norm': 'rms_from_one',
        'normalize_heads': True, 'post_norms': True, 'attention_softcap': 5.0,
        'embedding_scale': 'inputs', 'logits_via_embedding': True,
        'scan_layers': True, 'remat_policy': 'minimal',
    },
}
_NUM_STEPS = 8


def _make_model(name):
  config = network.TransformerConfig(
      vocab_size=384, emb_dim=32, num_heads=4, head_dim=8, mlp_dim=64,
      num_layers=2, mlp_activations=('silu', 'linear'), **_DECODERS[name],
  )  # fmt: skip
  return models.DecoderOnlyModel(
      network.DecoderWrapper(config),
      vocabularies.ByteVocabulary(125),
      adafactor.Adafactor(
          decay_rate=0.8,
          logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
      z_loss=1e-4,
      loss_normalizing_factor='NUM_REAL_TARGET_TOKENS',
  )


@pytest.fixture(scope='module')
def undivided_losses(start_run, packed_batches):
  @functools.cache
  def losses(name):
    run = start_run(model=_make_model(name), is_divided=False)
    return run.losses(packed_batches[:_NUM_STEPS])

  return losses


@pytest.mark.slow
@pytest.mark.parametrize('mesh', _MESHES)
@pytest.mark.parametrize('name', _DECODERS)
def test_the_first_losses_of_a_decoder_are_those_of_the_undivided_one(
    name, mesh, start_run, packed_batches, undivided_losses
):
  run = start_run(model=_make_model(name), **_MESHES[mesh])
  losses = run.losses(packed_batches[:_NUM_STEPS])
  assert losses[-1] < losses[0]
  np.testing.assert_allclose(losses, undivided_losses(name), rtol=1e-5)
