# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The fixture networks of T5X, their trained parameters and batches."""

import gzip
import json
import pathlib
import types

from flax import serialization
from flax import traverse_util
import numpy as np
import pytest

from t5wild.networks import transformer
from tests import t5x_network

FEATURES = (
    'encoder_input_tokens',
    'decoder_input_tokens',
    'decoder_target_tokens',
    'encoder_segment_ids',
    'decoder_segment_ids',
)


@pytest.fixture
def config():
  """A tiny configuration: one layer on each side, plain."""
  return t5x_network.PLAIN.replace(num_encoder_layers=1, num_decoder_layers=1)


@pytest.fixture(params=sorted(t5x_network.CHANGES))
def t5x(request, t5x_fixtures):
  """One of the networks T5X's numbers were written with, and the numbers."""
  folder = t5x_fixtures / request.param
  config = t5x_network.PLAIN.replace(**t5x_network.CHANGES[request.param])
  outputs = dict(np.load(folder / 'outputs.npz'))

  def batch(name):
    return tuple(
        outputs[f'{name}/{f}'] for f in FEATURES if f'{name}/{f}' in outputs
    )

  return types.SimpleNamespace(
      folder=folder,
      network=transformer.Transformer(config),
      params=_read_params(folder / 'ckpt_legacy' / 'checkpoint_300'),
      outputs=outputs,
      batch=batch,
      load=lambda name: dict(np.load(folder / f'{name}.npz')),
  )


def _read_params(folder: pathlib.Path):
  """Reads the parameters of a checkpoint in T5X's own format."""
  index = serialization.msgpack_restore((folder / 'checkpoint').read_bytes())
  flat = traverse_util.flatten_dict(index['optimizer']['target'], sep='/')
  end = '/kvstore/path'
  paths = {k.removesuffix(end) for k in flat if k.endswith(end)}
  inline = {
      k: v
      for k, v in flat.items()
      if not any(k.startswith(f'{path}/') for path in paths)
  }
  arrays = {path: _read_zarr(folder, path) for path in paths}
  return traverse_util.unflatten_dict(inline | arrays, sep='/')


def _read_zarr(folder: pathlib.Path, path: str) -> np.ndarray:
  array = folder / ('target.' + path.replace('/', '.'))
  meta = json.loads((array / '.zarray').read_text())
  assert meta['chunks'] == meta['shape'], meta
  (chunk,) = (f for f in array.iterdir() if f.name != '.zarray')
  data = np.frombuffer(gzip.decompress(chunk.read_bytes()), meta['dtype'])
  return data.reshape(meta['shape'])
