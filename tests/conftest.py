# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What every test shares: eight CPU devices, one cache, checked shapes."""

import os
import pathlib
import tempfile

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
if '--xla_force_host_platform_device_count' not in os.environ.get(
    'XLA_FLAGS', ''
):
  os.environ['XLA_FLAGS'] = (
      os.environ.get('XLA_FLAGS', '')
      + ' --xla_force_host_platform_device_count=8'
  ).strip()
os.environ.setdefault(
    'JAX_COMPILATION_CACHE_DIR',
    os.path.join(tempfile.gettempdir(), 't5wild_test_compilation_cache'),
)
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0.5')

from absl import flags
import hypothesis
import jaxtyping
import pytest

from tests import shape_checks

# A busy machine is no fault of what is tested.
hypothesis.settings.register_profile('untimed', deadline=None)
hypothesis.settings.load_profile('untimed')

# Shape annotations are checked while tests run, and only then; the hook must be
# there before these modules are first imported. Not in beam, greedy, sampling:
# gin configures their functions, and is asked about the very functions.
_WITH_SHAPES = (
    'networks', 'losses', 'optimizers', 'decoding.arguments', 'decoding.choice',
    'decoding.gathering', 'decoding.logits', 'decoding.state',
)  # fmt: skip
jaxtyping.install_import_hook(
    [f't5wild.{name}' for name in _WITH_SHAPES],
    f'{shape_checks.__name__}.check',
)

_SHARED = pathlib.Path(__file__).resolve().parents[2] / 'shared'


@pytest.fixture(scope='session')
def t5x_fixtures():
  """Folder of numbers written by T5X itself; skips where it is absent."""
  folder = _SHARED / 'fixtures' / 't5x'
  if not folder.is_dir():
    pytest.skip(
        f'no T5X fixtures at {folder}: they are not part of the project; '
        'put them beside the checkout to run this test'
    )
  return folder


@pytest.fixture(autouse=True)
def _flags_end_with_the_test():
  """Flags are the process's, and commands are meant for one process each."""
  yield
  ours = {
      flag.name
      for module, defined in flags.FLAGS.flags_by_module_dict().items()
      if module.startswith('t5wild')
      for flag in defined
  }
  for name in list(flags.FLAGS):
    if name in ours:
      delattr(flags.FLAGS, name)
    elif not flags.FLAGS[name].using_default_value:
      flags.FLAGS[name].unparse()
