# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What `transformers` gave for small models, recorded by a tool.

See tools/make_hf_logits.py.
"""

import json
import pathlib

import numpy as np

from t5wild.checkpoints import safetensors_files
from t5wild.checkpoints import stored

PATH = pathlib.Path(__file__).with_name('hf_logits.json')
LENGTH = 7


def parse(text):
  """A config.json without what differs from release to release."""
  config = json.loads(text)
  config.pop('transformers_version', None)
  return config


def make_weights(shapes):
  """Weights by name, the same wherever they are drawn."""
  random = np.random.RandomState(0)
  return {
      name: 0.2 * random.standard_normal(shape).astype(np.float32)
      for name, shape in sorted(shapes.items())
  }


def make_batch():
  """Tokens of an encoder, and of a decoder."""
  random = np.random.RandomState(1)
  return random.randint(3, 48, (2, 1, LENGTH)).astype(np.int32)


def kept(logits):
  """The logits of the last two positions, which depend on all before."""
  return logits[0, -2:]


def write(models):
  """Keeps what was recorded, a model a line."""
  lines = [
      f'{json.dumps(name)}: {json.dumps(models[name])}' for name in models
  ]
  PATH.write_text('{\n' + ',\n'.join(lines) + '\n}\n')


def read():
  """All that was recorded, by name."""
  return json.loads(PATH.read_text())


def write_folder(folder, model):
  """The folder that `transformers` would have written."""
  folder.mkdir(parents=True)
  (folder / 'config.json').write_text(json.dumps(model['config']))
  safetensors_files.write_file(
      str(folder / 'model.safetensors'),
      {
          name: stored.InMemory(value, key=name)
          for name, value in make_weights(model['shapes']).items()
      },
  )
