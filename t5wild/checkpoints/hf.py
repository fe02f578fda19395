# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face's models: read as checkpoints, and T5's written.

Weights are safetensors and nothing else: pickles can run any program.
"""

from collections.abc import Mapping, Sequence
import json
import os
from typing import Any

import numpy as np

from t5wild.checkpoints import confinement
from t5wild.checkpoints import hf_names
from t5wild.checkpoints import safetensors_files
from t5wild.checkpoints import steps
from t5wild.checkpoints import stored as stored_lib

_CLASSES = {'t5': 'T5', 'mt5': 'MT5', 'umt5': 'UMT5'}
FAMILIES = tuple(_CLASSES)
DECODERS = ('llama', 'gemma')
_CONFIG = 'config.json'
_WEIGHTS = 'model.safetensors'
_INDEX = 'model.safetensors.index.json'
_MOST_FILE_BYTES = 5 * 1000**3  # Hugging Face's own size of a shard.


def read_structure(folder: str) -> dict[str, stored_lib.Stored]:
  """Returns the parameters by our keys, and a step of 0.

  Args:
    folder: It holds config.json and safetensors.

  Raises:
    steps.NotACheckpointError: It is damaged, or of another network.
    confinement.UnsafeCheckpointError: Its index names files elsewhere.
  """
  config = _read_json(os.path.join(folder, _CONFIG))
  family = config.get('model_type')
  if family not in (*FAMILIES, *DECODERS):
    raise steps.NotACheckpointError(
        f'{folder} is of model_type {family!r}, expected one of '
        f'{[*FAMILIES, *DECODERS]}: other networks are not read yet'
    )
  arrays = _read_weights(folder)
  if family in DECODERS:
    _check_positions(config, folder)
    has_logits = config.get('tie_word_embeddings', family == 'gemma') is False
    if not has_logits:
      arrays.pop(hf_names.LOGITS, None)
    count = hf_names.num_decoder_layers(arrays)
    pairs = hf_names.decoder_pairs(count, has_logits=has_logits)
    return _renamed(arrays, list(pairs), folder)
  for name in hf_names.COPIES:
    copy = arrays.pop(name, None)
    if copy is not None:
      arrays.setdefault(hf_names.EMBEDDING, copy)
  if _scales_outputs(config):
    # The embedding scores tokens, as with our logits_via_embedding.
    arrays.pop(hf_names.LOGITS, None)
  elif hf_names.LOGITS not in arrays and hf_names.EMBEDDING in arrays:
    arrays[hf_names.LOGITS] = arrays[hf_names.EMBEDDING]
  shape = hf_names.Shape.of_theirs(arrays)
  return _renamed(arrays, list(hf_names.pairs(shape)), folder)


def _check_positions(config: Mapping[str, Any], folder: str) -> None:
  """Refuses rotary positions that are bent for long texts (Llama 3.1)."""
  rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
  kind = rope.get('rope_type', rope.get('type', 'default'))
  if kind != 'default':
    raise steps.NotACheckpointError(
        f'{folder} has rotary positions of type {kind!r}, expected the '
        "'default' ones that our networks have: take a model with those"
    )


def _read_weights(folder: str) -> dict[str, stored_lib.Stored]:
  index = os.path.join(folder, _INDEX)
  if not os.path.exists(index):
    return dict(
        safetensors_files.read_file(os.path.join(folder, _WEIGHTS))
    )
  places = _read_json(index).get('weight_map')
  if not isinstance(places, dict):
    raise steps.NotACheckpointError(
        f'{index} has no weight_map, expected the file of each array: copy it '
        'again'
    )
  arrays = {}
  for name in sorted(set(places.values())):
    confinement.check_name(str(name), where=index)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
      lacking = sorted(key for key, file in places.items() if file == name)
      raise steps.NotACheckpointError(
          f'{path} is missing, and with it {len(lacking)} arrays such as '
          f'{lacking[:3]}, expected all files that {_INDEX} names: copy it'
      )
    arrays |= safetensors_files.read_file(path)
  return arrays


def _read_json(path: str) -> dict[str, Any]:
  try:
    with open(path, encoding='utf-8') as file:
      content = json.load(file)
  except (OSError, ValueError) as error:
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


def _scales_outputs(config: Mapping[str, Any]) -> bool:
  """Whether the decoder's outputs are divided by sqrt(d_model): T5 1.0."""
  if config['model_type'] == 'mt5':  # It never does, whatever is told.
    return False
  tied = config.get('tie_word_embeddings', True) is not False
  return bool(config.get('scale_decoder_outputs', tied))


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
        'model_type: it is not whole, or of another network'
    )
  made = {
      pair.ours: stored_lib.Transposed(arrays[pair.theirs])
      if pair.is_transposed
      else arrays[pair.theirs]
      for pair in pairs
  }
  made['state/step'] = stored_lib.InMemory(np.int32(0), key='state/step')
  return made


def write(
    folder: str,
    arrays: Mapping[str, stored_lib.Stored],
    *,
    activation: str | None = None,
    family: str | None = None,
) -> None:
  """Writes a folder that `transformers` loads.

  Args:
    folder: Made if it is not there.
    arrays: Parameters by our keys; layers are plain. Others are left out.
    activation: Of the feed-forward block; None: 'gelu' where it is gated (T5
      1.1), else 'relu'. UL2 has 'silu'.
    family: One of `FAMILIES`; None: by the relative biases.

  Raises:
    ValueError: The folder holds weights, or the network is not T5's.
  """
  if any(os.path.exists(os.path.join(folder, n)) for n in (_WEIGHTS, _INDEX)):
    raise ValueError(
        f'{folder} holds {_WEIGHTS} already, expected none: give another '
        'directory'
    )
  targets = {k: v for k, v in arrays.items() if k.startswith('target/')}
  shape = hf_names.Shape.of_ours(targets)
  pairs = list(hf_names.pairs(shape))
  ours = {pair.ours for pair in pairs}
  if ours != targets.keys():
    raise ValueError(
        f'the checkpoint lacks {sorted(ours - targets.keys())[:5]} and has '
        f'{sorted(targets.keys() - ours)[:5]} more, expected the parameters of '
        'T5 or umT5: other networks are not written yet'
    )
  config = _make_config(targets, shape, activation=activation, family=family)
  os.makedirs(folder, exist_ok=True)
  _write_json(os.path.join(folder, _CONFIG), config)
  _write_json(
      os.path.join(folder, 'generation_config.json'),
      {k: config[k] for k in (
          'decoder_start_token_id', 'eos_token_id', 'pad_token_id'
      )},
  )  # fmt: skip
  _write_weights(
      folder,
      {
          pair.theirs: stored_lib.Transposed(targets[pair.ours])
          if pair.is_transposed
          else targets[pair.ours]
          for pair in pairs
      },
  )


def _make_config(
    targets: Mapping[str, stored_lib.Stored],
    shape: hf_names.Shape,
    *,
    activation: str | None,
    family: str | None,
) -> dict[str, Any]:
  layer = 'layers_0/' if shape.bias_per_layer else ''
  bias = targets[f'target/encoder/{layer}relpos_bias/rel_embedding'].shape
  first = 'target/encoder/layers_0'
  embed, joined = targets[f'{first}/attention/query/kernel'].shape
  mlp = targets[f'{first}/mlp/wo/kernel'].shape[0]
  if family is None:
    family = 'umt5' if shape.bias_per_layer else 't5'
  if family == 'mt5' and not shape.has_logits:
    raise ValueError(
        f'family is {family!r} and the output is scored by the embedding, '
        'expected a layer of its own, as transformers has for mT5: take t5'
    )
  name = activation or ('gelu' if shape.is_gated else 'relu')
  return {
      'architectures': [f'{_CLASSES[family]}ForConditionalGeneration'],
      'model_type': family,
      'is_encoder_decoder': True,
      'vocab_size': targets['target/token_embedder/embedding'].shape[0],
      'd_model': embed,
      'd_kv': joined // bias[0],
      'd_ff': mlp,
      'num_heads': bias[0],
      'num_layers': shape.num_encoder_layers,
      'num_decoder_layers': shape.num_decoder_layers,
      'feed_forward_proj': f'gated-{name}' if shape.is_gated else name,
      'relative_attention_num_buckets': bias[1],
      'relative_attention_max_distance': 128,
      'layer_norm_epsilon': 1e-06,
      # Whether outputs are divided by sqrt(d_model) and scored by the table.
      'tie_word_embeddings': not shape.has_logits,
      'dropout_rate': 0.1,
      'decoder_start_token_id': 0,
      'pad_token_id': 0,
      'eos_token_id': 1,
      'use_cache': True,
      'dtype': str(targets['target/token_embedder/embedding'].dtype),
  }


def _write_json(path: str, content: Any) -> None:
  with open(path, 'w', encoding='utf-8') as file:
    json.dump(content, file, indent=2, sort_keys=True)
    file.write('\n')


def _write_weights(
    folder: str, arrays: Mapping[str, stored_lib.Stored]
) -> None:
  """One file, or several and their index, which is written last."""
  files, size = [{}], 0
  for name, array in arrays.items():
    if files[-1] and size + array.nbytes > _MOST_FILE_BYTES:
      files.append({})
      size = 0
    files[-1][name] = array
    size += array.nbytes
  if len(files) == 1:
    safetensors_files.write_file(os.path.join(folder, _WEIGHTS), files[0])
    return
  places = {}
  for number, part in enumerate(files, 1):
    name = f'model-{number:05d}-of-{len(files):05d}.safetensors'
    safetensors_files.write_file(os.path.join(folder, name), part)
    places |= dict.fromkeys(part, name)
  total = sum(array.nbytes for array in arrays.values())
  _write_json(
      os.path.join(folder, _INDEX),
      {'metadata': {'total_size': total}, 'weight_map': places},
  )
