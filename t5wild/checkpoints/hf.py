# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face's models, read as checkpoints.

Weights are safetensors and nothing else: pickles can run any program.
"""

from collections.abc import Mapping, Sequence
import json
import os
from typing import Any

import jax.numpy as jnp
import numpy as np

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import confinement
from t5wild.checkpoints import hf_decoders
from t5wild.checkpoints import hf_names
from t5wild.checkpoints import hf_t5
from t5wild.checkpoints import safetensors_files
from t5wild.checkpoints import stored as stored_lib

FAMILIES = (*hf_t5.FAMILIES, *hf_decoders.FAMILIES)
CONFIG = 'config.json'
WEIGHTS = 'model.safetensors'
INDEX = 'model.safetensors.index.json'
_MOST_JSON_BYTES = 100_000_000
_MOST_NAMED = 8
# Numbers that old files hold and that config.json says.
_NEEDLESS = '.rotary_emb.inv_freq'
_INSTEAD = {
    'gemma3': 'the text-only gemma3_text',
    'gpt2': 'a decoder such as llama',
    'mixtral': 'a dense model: experts are not read',
}


def read_config(folder: str) -> dict[str, Any]:
  """Returns config.json of a model that is read here.

  Raises:
    steps.NotACheckpointError: It is damaged, of another network, or of numbers
      in a packed form.
  """
  config = _read_json(os.path.join(folder, CONFIG))
  family = config.get('model_type')
  if family not in FAMILIES:
    raise steps.NotACheckpointError(
        f'{folder} is of model_type {family!r}, expected one of '
        f'{list(FAMILIES)}: take {_INSTEAD.get(str(family), "one of these")}; '
        'other networks are not read yet'
    )
  if config.get('quantization_config'):
    raise steps.NotACheckpointError(
        f'{folder} has a quantization_config, expected numbers that are not '
        'packed: take the model that it was made of'
    )
  return config


def read_network(folder: str) -> dict[str, Any]:
  """Returns the values of our network's configuration that config.json says.

  Those of `TransformerConfig` for decoders, of `T5Config` for the others.

  Raises:
    steps.NotACheckpointError: Our networks have not what it says.
  """
  config = read_config(folder)
  kind = hf_decoders if is_decoder(config) else hf_t5
  try:
    return kind.read_config(config, where=folder)
  except (TypeError, AttributeError, ValueError, OverflowError) as error:
    if isinstance(error, steps.NotACheckpointError):
      raise
    raise steps.NotACheckpointError(
        f'{folder} has a {CONFIG} with a value of another type ({error}), '
        'expected those that transformers writes: copy it again'
    ) from error


def is_decoder(config: Mapping[str, Any]) -> bool:
  """Whether a config.json is a decoder's alone."""
  return config['model_type'] in hf_decoders.FAMILIES


def read_structure(folder: str) -> dict[str, stored_lib.Stored]:
  """Returns the parameters by our keys, and a step of 0.

  Args:
    folder: It holds config.json and safetensors.

  Raises:
    steps.NotACheckpointError: It is damaged, or of another network.
    confinement.UnsafeCheckpointError: Its index names files elsewhere.
  """
  config = read_config(folder)
  network = read_network(folder)
  arrays = {
      name: array
      for name, array in _read_weights(folder).items()
      if not name.endswith(_NEEDLESS)
  }
  if is_decoder(config):
    pairs = list(hf_names.decoder_pairs(network))
    if network['logits_via_embedding']:
      arrays.pop(hf_names.LOGITS, None)
    return _renamed(arrays, pairs, folder)
  for name in hf_names.COPIES:
    copy = arrays.pop(name, None)
    if copy is not None:
      arrays.setdefault(hf_names.EMBEDDING, copy)
  if network['logits_via_embedding']:
    arrays.pop(hf_names.LOGITS, None)
  elif hf_names.LOGITS not in arrays and hf_names.EMBEDDING in arrays:
    arrays[hf_names.LOGITS] = arrays[hf_names.EMBEDDING]
  return _renamed(arrays, t5_pairs(network), folder)


def t5_pairs(network: Mapping[str, Any]) -> list[hf_names.Pair]:
  """All parameters of a network of T5's kinds, with their shapes."""
  made = []
  for pair in hf_names.pairs(hf_names.Shape.of_network(network)):
    shape = hf_t5.shape_of(pair.ours, network)
    made.append(
        hf_names.Pair(
            pair.theirs, pair.ours, pair.is_transposed,
            shape=shape[::-1] if pair.is_transposed else shape,
        )
    )  # fmt: skip
  return made


def _read_weights(folder: str) -> dict[str, stored_lib.Stored]:
  index = os.path.join(folder, INDEX)
  whole = os.path.join(folder, WEIGHTS)
  if os.path.exists(whole) or not os.path.exists(index):
    return dict(safetensors_files.read_file(whole))
  places = _read_json(index).get('weight_map')
  if not isinstance(places, dict) or not all(
      isinstance(file, str) for file in places.values()
  ):
    raise steps.NotACheckpointError(
        f'{index} has no weight_map of names, expected the file of each array: '
        'copy it again'
    )
  arrays = {}
  for name in sorted(set(places.values())):
    confinement.check_name(name, where=index)
    path = os.path.join(folder, name)
    lacking = sorted(key for key, file in places.items() if file == name)
    if not os.path.isfile(path):
      raise steps.NotACheckpointError(
          f'{path} is missing, and with it {len(lacking)} arrays such as '
          f'{lacking[:3]}, expected all files that {INDEX} names: copy it'
      )
    arrays |= safetensors_files.read_file(path)
  return arrays


def _read_json(path: str) -> dict[str, Any]:
  try:
    if os.path.getsize(path) > _MOST_JSON_BYTES:
      raise ValueError(f'it has more than {_MOST_JSON_BYTES} bytes')
    with open(path, encoding='utf-8') as file:
      content = json.load(file)
  except (OSError, ValueError, RecursionError) as error:
    raise steps.NotACheckpointError(
        f'{path} cannot be read ({error}), expected JSON beside the weights: '
        'copy it again'
    ) from error
  if not isinstance(content, dict):
    raise steps.NotACheckpointError(
        f'{path} holds a {type(content).__name__}, expected an object: copy it '
        'again'
    )
  return content


def _renamed(
    arrays: Mapping[str, stored_lib.Stored],
    pairs: Sequence[hf_names.Pair],
    folder: str,
) -> dict[str, stored_lib.Stored]:
  wanted = {pair.theirs for pair in pairs}
  missing, extra = wanted - arrays.keys(), arrays.keys() - wanted
  if missing or extra:
    raise steps.NotACheckpointError(
        f'{folder} lacks {len(missing)} arrays {sorted(missing)[:5]} and has '
        f'{len(extra)} more {sorted(extra)[:5]}, expected those of its '
        'config.json: it is not whole, or of another network'
    )
  wrong = [
      f'{pair.theirs}: {list(arrays[pair.theirs].shape)} in its file, '
      f'{list(pair.shape)} by config.json'
      for pair in pairs
      if pair.shape is not None and arrays[pair.theirs].shape != pair.shape
  ]
  if wrong:
    lines = '\n'.join(f'  {line}' for line in wrong[:_MOST_NAMED])
    raise steps.NotACheckpointError(
        f'{folder} has {len(wrong)} arrays of another shape than expected:\n'
        f'{lines}\ntake config.json and weights of the same model'
    )
  whole = [
      f'{name}: {arrays[name].dtype}'
      for name in sorted(wanted)
      if not jnp.issubdtype(arrays[name].dtype, jnp.floating)
  ]
  if whole:
    raise steps.NotACheckpointError(
        f'{folder} has {len(whole)} arrays of whole numbers, such as '
        f'{whole[:5]}, expected weights of float32, bfloat16 or float16: '
        'packed or quantised numbers are not read; take the model that it was '
        'made of'
    )
  made = {
      pair.ours: stored_lib.Transposed(arrays[pair.theirs])
      if pair.is_transposed
      else arrays[pair.theirs]
      for pair in pairs
  }
  made['state/step'] = stored_lib.InMemory(np.int32(0), key='state/step')
  return made
