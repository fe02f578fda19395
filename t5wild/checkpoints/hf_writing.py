# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders that `transformers` loads, written whole or not at all.

All is written to a hidden folder beside the target, which gets its name at the
end. One array is in memory at a time.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any

from t5wild import run_dir as run_dir_lib
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import hf
from t5wild.checkpoints import hf_decoders
from t5wild.checkpoints import hf_names
from t5wild.checkpoints import hf_t5
from t5wild.checkpoints import safetensors_files
from t5wild.checkpoints import stored as stored_lib

Network = Mapping[str, Any]

TOKENS = {
    'decoder_start_token_id': 0, 'pad_token_id': 0, 'eos_token_id': 1,
}  # fmt: skip
_GENERATION = 'generation_config.json'
_MOST_FILE_BYTES = 5 * 1000**3  # Hugging Face's own size of a shard.
_MOST_NAMED = 8
_OF_GENERATION = (
    'decoder_start_token_id', 'bos_token_id', 'eos_token_id', 'pad_token_id'
)  # fmt: skip
# Names code of others, which a config.json of ours needs not.
_DROPPED = ('auto_map', '_name_or_path', 'transformers_version', 'torch_dtype')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Written:
  """What was written.

  Attributes:
    config: Its config.json.
    not_finite: Names of arrays that hold infinite numbers or none at all.
  """

  config: Mapping[str, Any]
  not_finite: list[str]


def check_target(folder: str) -> None:
  """Refuses a folder that is not ours to fill, before anything is read.

  Raises:
    ValueError: It is a bucket, a file, a run directory or not empty.
    steps.UnwritableError: It cannot be made.
  """
  want = 'expected a folder that is not there yet, or is empty'
  if steps.is_bucket(folder):
    raise ValueError(
        f'{folder} is in an object store, {want}, on a disk: write it to one, '
        'and copy it'
    )
  if os.path.exists(folder) and not os.path.isdir(folder):
    raise ValueError(f'{folder} is a file, {want}: give another directory')
  names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
  if steps.all_steps(folder) or os.path.exists(
      run_dir_lib.RunDir(folder).config_gin
  ):
    raise ValueError(
        f'{folder} is a run directory (it holds {names[:4]}), {want}: give '
        'another directory, such as a new one in it'
    )
  if names:
    raise ValueError(
        f'{folder} holds {names[:4]} already, {want}: give another directory'
    )
  os.rmdir(_make_staging(folder))


def leftovers(folder: str) -> list[str]:
  """What killed writers of this folder left beside it, a sentence for each.

  None is removed here: another process may be writing it at this moment.
  """
  parent, name = os.path.split(steps.absolute_path(folder))
  start = _partial_prefix(name)
  try:
    found = sorted(p for p in os.listdir(parent) if p.startswith(start))
  except OSError:
    return []
  return [
      f'{os.path.join(parent, each)} ({_num_bytes(parent, each):,} bytes) is '
      f'an unfinished {name}: if no other process is writing it now, it may be '
      'removed.'
      for each in found
  ]


def _num_bytes(*parts: str) -> int:
  total = 0
  for path in pathlib.Path(*parts).rglob('*'):
    # It may be finished, or removed, by now.
    with contextlib.suppress(OSError):
      total += path.lstat().st_size
  return total


def _partial_prefix(name: str) -> str:
  return f'.{name}.partial-'


def _make_staging(folder: str) -> str:
  folder = steps.absolute_path(folder)
  parent, name = os.path.split(folder)
  try:
    os.makedirs(parent, exist_ok=True)
    return tempfile.mkdtemp(prefix=_partial_prefix(name), dir=parent)
  except OSError as error:
    raise steps.UnwritableError(
        f'{folder} cannot be written ({error}), expected a directory that this '
        'user may make: give another by --to'
    ) from error


def write(
    folder: str,
    arrays: Mapping[str, stored_lib.Stored],
    *,
    network: Network | None = None,
    template: Mapping[str, Any] | None = None,
    activation: str | None = None,
    family: str | None = None,
    tokens: Mapping[str, int] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> 'Written':
  """Writes a folder that `transformers` loads.

  Args:
    folder: Not there yet, or empty.
    arrays: Parameters by our keys; layers are plain. Others are left out.
    network: Values of our network's configuration; None: a T5's, as far as
      shapes tell.
    template: A config.json of the same network, to be kept; see `hf`.
    activation: Of a T5's feed-forward block, where neither says so; None:
      'gelu' where it is gated (T5 1.1), else 'relu'. UL2 has 'silu'.
    family: One of `hf.FAMILIES`; None: the first that has the network.
    tokens: Ids such as eos_token_id; None: those of T5's vocabularies.
    files: More files by name: a tokenizer's.

  Raises:
    ValueError: The folder is not ours to fill, or no family has the network.
    steps.UnwritableError: It cannot be written.
  """
  check_target(folder)
  targets = {k: v for k, v in arrays.items() if k.startswith('target/')}
  is_decoder = not any(k.startswith('target/encoder/') for k in targets)
  if network is None and template is None:
    network = _network_of_shapes(targets, is_decoder, activation)
  has_own_bias = any('/layers_0/relpos_bias/' in key for key in targets)
  if network is not None and has_own_bias:
    # Scanned layers have each its own, whatever their network says.
    network = {**network, 'positions': 'relative_bias_per_layer'}
  config = _make_config(network, template, is_decoder, family)
  if template is None:
    config |= tokens or TOKENS
    if is_decoder:
      config.pop('decoder_start_token_id', None)
      config.setdefault('bos_token_id', 0)  # What decoding begins with.
  kind = hf_decoders if is_decoder else hf_t5
  written = kind.read_config(config, where='the network')
  pairs = (
      list(hf_names.decoder_pairs(written))
      if is_decoder
      else hf.t5_pairs(written)
  )
  _check_parameters(targets, pairs)
  first = targets[pairs[0].ours]
  config['dtype'] = str(first.dtype)
  made = {
      pair.theirs: stored_lib.Transposed(targets[pair.ours])
      if pair.is_transposed
      else targets[pair.ours]
      for pair in pairs
  }
  not_finite = _write_staged(folder, made, config, files or {})
  return Written(config=config, not_finite=not_finite)


def _make_config(
    network: Network | None,
    template: Mapping[str, Any] | None,
    is_decoder: bool,
    family: str | None,
) -> dict[str, Any]:
  kind = hf_decoders if is_decoder else hf_t5
  if family is not None and family not in kind.FAMILIES:
    raise ValueError(
        f'family is {family!r}, expected one of {list(kind.FAMILIES)} for this '
        'checkpoint: leave --family out'
    )
  if template is None:
    return kind.make_config(network, family=family)
  if template['model_type'] != (family or template['model_type']):
    raise ValueError(
        f'family is {family!r} and the config.json given is of '
        f'{template["model_type"]!r}, expected one of the two: leave --family '
        'out'
    )
  if hf.is_decoder(template) != is_decoder:
    raise ValueError(
        f'the config.json given is of {template["model_type"]!r}, expected one '
        f'of {list(kind.FAMILIES)} for this checkpoint: give another by --like'
    )
  if network is not None:
    _check_same(network, template, kind)
  config = {k: v for k, v in template.items() if k not in _DROPPED}
  # It may be of another head, or none: an encoder's alone, a classifier's.
  config['architectures'] = [kind.architecture(config['model_type'])]
  if not is_decoder:
    # New files say it twice, and old ones of transformers read the first alone.
    config['tie_word_embeddings'] = hf_t5.scales_outputs(config)
    config.pop('scale_decoder_outputs', None)
  return config


def _check_same(network: Network, template: Mapping[str, Any], kind) -> None:
  """Refuses a config.json of another network than the run's."""
  theirs = kind.read_config(template, where='the config.json given')
  made = kind.make_config(network)
  ours = kind.read_config(made, where='the network')
  wrong = [
      f'  {k} = {ours[k]!r} in the run, {theirs[k]!r} by config.json'
      for k in theirs
      if ours[k] != theirs[k]
  ]
  if wrong:
    lines = '\n'.join(wrong)
    raise ValueError(
        f'the config.json given is of another network than the run:\n{lines}\n'
        'expected the same: leave one of --like and --run out'
    )


def _network_of_shapes(
    targets: Mapping[str, stored_lib.Stored],
    is_decoder: bool,
    activation: str | None,
) -> dict[str, Any]:
  """What the shapes of a T5 tell, and T5's for the rest."""
  shape = hf_names.Shape.of_ours(targets)
  layer = 'layers_0/' if shape.bias_per_layer else ''
  bias = targets.get(f'target/encoder/{layer}relpos_bias/rel_embedding')
  query = targets.get('target/encoder/layers_0/attention/query/kernel')
  mlp = targets.get('target/encoder/layers_0/mlp/wo/kernel')
  table = targets.get('target/token_embedder/embedding')
  if is_decoder or None in (bias, query, mlp, table):
    raise ValueError(
        f'the checkpoint holds {sorted(targets)[:3]} and {len(targets)} arrays '
        'in all, expected those of a T5 where nothing tells the network: give '
        'the run by --run, or a folder with config.json of the same model by '
        '--like'
    )
  name = activation or ('gelu' if shape.is_gated else 'relu')
  return {
      'vocab_size': table.shape[0],
      'emb_dim': query.shape[0],
      'head_dim': query.shape[1] // bias.shape[0],
      'mlp_dim': mlp.shape[0],
      'num_heads': bias.shape[0],
      'num_encoder_layers': shape.num_encoder_layers,
      'num_decoder_layers': shape.num_decoder_layers,
      'mlp_activations': (name, 'linear') if shape.is_gated else (name,),
      'logits_via_embedding': not shape.has_logits,
      'positions': 'relative_bias_per_layer'
      if shape.bias_per_layer
      else 'relative_bias',
      'norm_epsilon': 1e-6,
  }


def _check_parameters(
    targets: Mapping[str, stored_lib.Stored], pairs: list[hf_names.Pair]
) -> None:
  ours = {pair.ours for pair in pairs}
  if ours != targets.keys():
    raise ValueError(
        f'the checkpoint lacks {sorted(ours - targets.keys())[:5]} and has '
        f'{sorted(targets.keys() - ours)[:5]} more, expected the parameters of '
        'the network that it is written as: give the run that it is of by '
        '--run, or config.json of the same model by --like; other networks are '
        'not written'
    )
  wrong = []
  for pair in pairs:
    shape = pair.shape[::-1] if pair.is_transposed else pair.shape
    if targets[pair.ours].shape != shape:
      wrong.append(
          f'  {pair.ours}: {list(targets[pair.ours].shape)} in the checkpoint, '
          f'{list(shape)} by the network'
      )
  if wrong:
    lines = '\n'.join(wrong[:_MOST_NAMED])
    raise ValueError(
        f'{len(wrong)} parameters have another shape than expected:\n{lines}\n'
        'give the run that the checkpoint is of by --run, or config.json of '
        'the same model by --like'
    )


def _write_staged(
    folder: str,
    arrays: Mapping[str, stored_lib.Stored],
    config: Mapping[str, Any],
    files: Mapping[str, bytes],
) -> list[str]:
  folder = steps.absolute_path(folder)
  staging = _make_staging(folder)
  try:
    not_finite = _write_weights(staging, arrays)
    for name, content in files.items():
      _write_file(os.path.join(staging, name), content)
    if _GENERATION not in files:
      generation = {k: config[k] for k in _OF_GENERATION if k in config}
      _write_json(os.path.join(staging, _GENERATION), generation)
    # Last: a folder without it is no model.
    _write_json(os.path.join(staging, hf.CONFIG), config)
    os.chmod(staging, 0o777 & ~_umask())
    os.rename(staging, folder)  # Takes the place of an empty folder too.
    return not_finite
  except OSError as error:
    raise steps.UnwritableError(
        f'{folder} could not be written to its end ({error}), expected space '
        f'for {sum(a.nbytes for a in arrays.values()):,} bytes: free some, and '
        'convert again'
    ) from error
  finally:
    shutil.rmtree(staging, ignore_errors=True)


def _umask() -> int:
  mask = os.umask(0)
  os.umask(mask)
  return mask


def _write_file(path: str, content: bytes) -> None:
  with open(path, 'wb') as file:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _write_json(path: str, content: Any) -> None:
  text = json.dumps(content, indent=2, sort_keys=True) + '\n'
  _write_file(path, text.encode())


def _write_weights(
    folder: str, arrays: Mapping[str, stored_lib.Stored]
) -> list[str]:
  """One file, or several and their index, which is written last."""
  files, size = [{}], 0
  for name, array in arrays.items():
    if files[-1] and size + array.nbytes > _MOST_FILE_BYTES:
      files.append({})
      size = 0
    files[-1][name] = array
    size += array.nbytes
  if len(files) == 1:
    path = os.path.join(folder, hf.WEIGHTS)
    return safetensors_files.write_file(path, files[0])
  places, not_finite = {}, []
  for number, part in enumerate(files, 1):
    name = f'model-{number:05d}-of-{len(files):05d}.safetensors'
    path = os.path.join(folder, name)
    not_finite += safetensors_files.write_file(path, part)
    places |= dict.fromkeys(part, name)
  total = sum(array.nbytes for array in arrays.values())
  _write_json(
      os.path.join(folder, hf.INDEX),
      {'metadata': {'total_size': total}, 'weight_map': places},
  )
  return not_finite
