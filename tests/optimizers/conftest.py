# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's own states and gradients, read without any of our readers."""

import json
import types

from flax import traverse_util
import jax
import numpy as np
import pytest


@pytest.fixture(params=['encoder_decoder', 'encoder_decoder_scanned'])
def t5x_update(t5x_fixtures, request):
  """One update by T5X: state before, gradients, state after, axes."""
  import orbax.checkpoint as ocp

  folder = t5x_fixtures / request.param
  checkpoint = folder / 'ckpt_orbax' / 'checkpoint_300' / 'state'
  reader = ocp.PyTreeCheckpointer()
  # Only the structure counts here; leaves are replaced by restore_args.
  after = dict(np.load(folder / 'state_after_apply_gradient_lr0.01.npz'))
  structure = traverse_util.unflatten_dict(after, sep='/')
  before = reader.restore(
      str(checkpoint),
      item=structure,
      restore_args=jax.tree.map(
          lambda _: ocp.RestoreArgs(restore_type=np.ndarray), structure
      ),
  )
  axes = json.loads((folder / 'param_logical_axes.json').read_text())
  return types.SimpleNamespace(
      name=request.param,
      before=before,
      after=after,
      gradients=traverse_util.unflatten_dict(
          dict(np.load(folder / 'grads_nodropout.npz')), sep='/'
      ),
      axes=traverse_util.unflatten_dict(
          {k: jax.sharding.PartitionSpec(*v) for k, v in axes.items()}, sep='/'
      ),
      shapes=json.loads((folder / 'state_dict_shapes.json').read_text()),
  )
