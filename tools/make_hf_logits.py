# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes what `transformers` makes of small models of each family.

For tests where torch is not installed: config.json, the names and shapes of
the weights, and the logits of a few tokens, for weights that numpy draws. Run
from a checkout where torch and transformers are installed:

  python tools/make_hf_logits.py
"""

import pathlib
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from t5wild.checkpoints import safetensors_files
from tests.checkpoints import hf_models
from tests.checkpoints import hf_recorded


def record(name: str) -> dict:
  """What is kept of one model."""
  model = hf_models.make(name)
  with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    shapes = {
        key: list(array.shape)
        for key, array in sorted(
            safetensors_files.read_file(f'{folder}/model.safetensors').items()
        )
    }
    config = pathlib.Path(folder, 'config.json').read_text()
  weights = hf_recorded.make_weights(shapes)
  model.load_state_dict(
      {key: torch.tensor(value) for key, value in weights.items()},
      strict=False,
  )
  logits = hf_models.logits(model, *hf_recorded.make_batch())
  return {
      'config': hf_recorded.parse(config),
      'shapes': shapes,
      'logits': [f'{x:.8g}' for x in np.ravel(hf_recorded.kept(logits))],
  }


if __name__ == '__main__':
  hf_recorded.write({name: record(name) for name in hf_models.FAMILIES})
