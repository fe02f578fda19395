# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Rotary positions in a config.json of Hugging Face, and in our network.

They have been said in three ways: `rope_theta` with `rope_scaling`, one dict
`rope_parameters`, and one such dict for each kind of layers.
"""

from collections.abc import Mapping
from typing import Any

from t5wild.checkpoint_files import steps

Config = Mapping[str, Any]

_WAVELENGTH = 10_000.0
_GLOBAL_WAVELENGTH = 1_000_000.0  # Gemma 3's.
_KINDS = ('default', 'linear', 'llama3')
_PLAIN = {
    'rotary_factor': 1.0, 'rotary_original_length': None,
    'rotary_turns': (1.0, 4.0),
}  # fmt: skip


def read_config(config: Config, *, where: str) -> dict[str, Any]:
  """Returns what our network has for them.

  Raises:
    steps.NotACheckpointError: They are of a kind that it has not.
  """
  rope = config.get('rope_parameters') or {}
  if config['model_type'] == 'gemma3_text':
    return _read_both(config, rope, where)
  rope = {**rope, **(config.get('rope_scaling') or {})}
  wavelength = rope.get('rope_theta', config.get('rope_theta', _WAVELENGTH))
  return {
      'rotary_wavelength': _number('rope_theta', wavelength, where),
      'local_rotary_wavelength': None,
      **_slowing(rope, where),
  }


def _read_both(config: Config, rope: Config, where: str) -> dict[str, Any]:
  far = {
      **(rope.get('full_attention') or {}),
      **(config.get('rope_scaling') or {}),
  }
  near = rope.get('sliding_attention') or {}
  if _slowing(near, where) != _PLAIN:
    raise steps.NotACheckpointError(
        f'{where} has slowed rotary positions {dict(near)} in its local '
        "layers, expected the 'default' ones: our networks slow those of "
        'global layers alone; take another model'
    )
  wavelengths = {
      'rotary_wavelength': far.get(
          'rope_theta', config.get('rope_theta', _GLOBAL_WAVELENGTH)
      ),
      'local_rotary_wavelength': near.get(
          'rope_theta', config.get('rope_local_base_freq', _WAVELENGTH)
      ),
  }
  return {
      name: _number('rope_theta', value, where)
      for name, value in wavelengths.items()
  } | _slowing(far, where)


def _slowing(rope: Config, where: str) -> dict[str, Any]:
  kind = rope.get('rope_type', rope.get('type', 'default'))
  if kind not in _KINDS or rope.get('partial_rotary_factor', 1.0) != 1.0:
    raise steps.NotACheckpointError(
        f'{where} has rotary positions {dict(rope)}, expected all features '
        f'turned and rope_type one of {_KINDS}, which our networks have: take '
        'a model with those'
    )
  if kind == 'default':
    return dict(_PLAIN)
  factor = _number('factor', rope.get('factor'), where)
  if kind == 'linear':
    return _PLAIN | {'rotary_factor': factor}
  original = rope.get('original_max_position_embeddings')
  turns = (
      _number(name, rope.get(name), where)
      for name in ('low_freq_factor', 'high_freq_factor')
  )
  return {
      'rotary_factor': factor,
      'rotary_original_length': int(
          _number('original_max_position_embeddings', original, where)
      ),
      'rotary_turns': tuple(turns),
  }


def _number(name: str, value: Any, where: str) -> float:
  if isinstance(value, int | float) and value > 0:
    return float(value)
  raise steps.NotACheckpointError(
      f'{where}: {name} of its rotary positions is {value!r} in config.json, '
      'expected a number above 0: copy config.json of the same model again'
  )


def canonical(network: Mapping[str, Any]) -> dict[str, Any]:
  """The same positions in one way of saying it."""
  made = {name: network[name] for name in (*_PLAIN, 'rotary_wavelength')}
  made['rotary_turns'] = tuple(map(float, made['rotary_turns']))
  if made['rotary_factor'] == 1.0:
    made |= _PLAIN
  if made['rotary_original_length'] is None:
    made['rotary_turns'] = _PLAIN['rotary_turns']
  local = network['local_rotary_wavelength']
  if 'local' in network['layer_pattern'] and local is None:
    # Local layers have the same, where these are not slowed.
    if made['rotary_factor'] == 1.0:
      local = made['rotary_wavelength']
  elif 'local' not in network['layer_pattern']:
    local = None
  return made | {'local_rotary_wavelength': local}


def make_config(
    network: Mapping[str, Any], *, has_local: bool
) -> dict[str, Any]:
  """Returns it as config.json says it, to old and new `transformers`.

  Args:
    network: Values of our network.
    has_local: The family has other positions in local layers.
  """
  wavelength, local = (
      network['rotary_wavelength'], network['local_rotary_wavelength']
  )
  scaling = _scaling(network)
  far = {'rope_theta': wavelength, 'rope_type': 'default', **(scaling or {})}
  config = {
      'rope_theta': wavelength,
      'rope_scaling': scaling,
      'rope_parameters': far,
  }
  if has_local:
    local = wavelength if local is None else local
    near = {'rope_theta': local, 'rope_type': 'default'}
    config['rope_local_base_freq'] = local
    config['rope_parameters'] = {
        'full_attention': far, 'sliding_attention': near,
    }  # fmt: skip
  return config


def _scaling(network: Mapping[str, Any]) -> dict[str, Any] | None:
  factor = network['rotary_factor']
  if factor == 1.0:
    return None
  if network['rotary_original_length'] is None:
    return {'rope_type': 'linear', 'factor': factor}
  low, high = network['rotary_turns']
  return {
      'rope_type': 'llama3',
      'factor': factor,
      'low_freq_factor': low,
      'high_freq_factor': high,
      'original_max_position_embeddings': network['rotary_original_length'],
  }
