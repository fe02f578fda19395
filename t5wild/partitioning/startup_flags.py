# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags of XLA, libtpu and NCCL that a recipe sets, before JAX starts a device.

XLA ends the process on a flag that it does not know, without a word of which
would be near. So flags are tried in a process of their own first. What the user
has set in the environment stays.
"""

from collections.abc import Iterable, Mapping, Sequence
import difflib
import importlib.util
import mmap
import os
import pathlib
import re
import shlex
import subprocess
import sys

from absl import logging
import jax._src.xla_bridge as xla_bridge  # nothing public tells

_XLA = 'XLA_FLAGS'
_LIBTPU = 'LIBTPU_INIT_ARGS'
_TRY_SECONDS = 120
# Reads the flags as JAX would, and starts no device.
_TRY = {
    _XLA: 'from jax._src.lib import xla_client; xla_client.make_cpu_client()',
    _LIBTPU: (
        'from jax.experimental import topologies as t; '
        "t.get_topology_desc(platform='tpu', topology_name='v5e:2x2')"
    ),
}
_TRY_VARIABLES = {
    'JAX_PLATFORMS': 'cpu',
    'TPU_WORKER_HOSTNAMES': 'localhost',
    'TPU_SKIP_MDS_QUERY': '1',
    'ALLOW_MULTIPLE_LIBTPU_LOAD': '1',
}
# Package -> its library, whose strings hold the names of all flags.
_LIBRARIES = {
    _XLA: ('jaxlib', 'libjax_common.so'),
    _LIBTPU: ('libtpu', 'libtpu.so'),
}
_UNKNOWN = re.compile(r'nknown (?:command line )?flags?.*')
_FLAG = re.compile(r"(?:--|')(\w+)")
_PREFIXES = ('NCCL_', 'XLA_PYTHON_CLIENT_', 'CUDA_', 'JAX_', 'TPU_', 'LIBTPU_')


class FlagError(ValueError):
  """A flag that cannot be set."""


def use(flags: Mapping[str, object], *, platform: str | None) -> None:
  """Sets flags in the environment; those that the user set there stay.

  Args:
    flags: name -> value; 'xla_...' are flags, names in capitals variables.
    platform: 'tpu' sends flags to libtpu, anything else to XLA itself.

  Raises:
    FlagError: a name is unknown to what is installed. Where JAX has started
      devices already and would not read it, a warning is logged.
  """
  variable = _LIBTPU if platform == 'tpu' else _XLA
  words = shlex.split(os.environ.get(variable, ''))
  given = {word.lstrip('-').partition('=')[0] for word in words}
  new = [
      f'--{name}={_text(value)}'
      for name, value in flags.items()
      if not name.isupper() and name not in given
  ]
  environment = {
      name: _text(value)
      for name, value in flags.items()
      if name.isupper() and name not in os.environ
  }
  _check_variables(environment)
  if not new and not environment:
    return
  if xla_bridge.backends_are_initialized():
    # In a notebook, say, which trains nothing: no reason to refuse.
    logging.warning(
        'startup_flags are not set: %s. Expected them before the first use of '
        'a device, and JAX has started its devices already. Set them in the '
        'environment of the process: %s="%s".',
        [*new, *environment], variable, ' '.join(new),
    )
    return
  if new:
    _check_flags(new, variable)
    os.environ[variable] = ' '.join([*words, *new])
  os.environ.update(environment)
  logging.info(
      'Set before JAX starts: %s, %s', os.environ.get(variable), environment
  )


def _text(value: object) -> str:
  return str(value).lower() if isinstance(value, bool) else str(value)


def _check_variables(names: Iterable[str]) -> None:
  for name in names:
    if not name.startswith(_PREFIXES):
      close = difflib.get_close_matches(name, _PREFIXES, n=1, cutoff=0.3)
      raise FlagError(
          f'startup_flags name the variable {name!r}.\n'
          f'Expected one that begins with one of {_PREFIXES}'
          f'{f" (did you mean {close[0]}...?)" if close else ""}, or a flag in '
          'small letters.\n'
          'Correct the name, or set it in the environment of the process.'
      )


def _check_flags(new: Sequence[str], variable: str) -> None:
  """Raises FlagError where what is installed does not know one of them."""
  if variable == _LIBTPU and importlib.util.find_spec('libtpu') is None:
    return  # then there is no TPU either, and selecting devices says so
  try:
    done = subprocess.run(
        [sys.executable, '-P', '-c', _TRY[variable]],
        env={**os.environ, **_TRY_VARIABLES, variable: ' '.join(new)},
        capture_output=True, text=True, timeout=_TRY_SECONDS, check=False,
    )  # fmt: skip
  except subprocess.TimeoutExpired:
    logging.warning('%s could not be tried in time: %s', variable, new)
    return
  told = _UNKNOWN.findall(done.stderr)
  unknown = {name for line in told for name in _FLAG.findall(line)}
  unknown &= {flag.lstrip('-').partition('=')[0] for flag in new}
  if unknown:
    raise FlagError(_unknown_message(sorted(unknown), variable))
  if done.returncode:
    raise FlagError(
        f'startup_flags {list(new)} end the process that tries them: '
        f'{done.stderr[-500:]}\n'
        f'Expected flags that {_LIBRARIES[variable][0]} takes.\n'
        'Correct their values.'
    )


def _unknown_message(unknown: Sequence[str], variable: str) -> str:
  package, library = _LIBRARIES[variable]
  known = _known_flags(package, library)
  hints = []
  for name in unknown:
    close = difflib.get_close_matches(name, known, n=1)
    hints.append(f'{name!r}' + (f' (near: {close[0]!r})' if close else ''))
  return (
      f'startup_flags name {", ".join(hints)}, which the installed {package} '
      'does not know.\n'
      'Expected flags of this version: with an unknown one JAX would end the '
      'process.\n'
      'Correct or drop them in PjitPartitioner.startup_flags.'
  )


def _known_flags(package: str, library: str) -> list[str]:
  """Every name in a library that may be a flag; takes seconds."""
  spec = importlib.util.find_spec(package)
  path = pathlib.Path(spec.origin).parent / library if spec else None
  if path is None or not path.exists():
    return []
  with path.open('rb') as file:
    text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    names = re.findall(rb'(?<=\0)xla_[a-z0-9_]+(?=\0)', text)
  return sorted({name.decode() for name in names})
