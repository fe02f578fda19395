# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags of a recipe: set in time, tried first, and the user's own kept."""

import importlib.util

import pytest

from t5wild.partitioning import startup_flags

_VARIABLES = (
    'XLA_FLAGS', 'LIBTPU_INIT_ARGS', 'XLA_PYTHON_CLIENT_MEM_FRACTION'
)
_KNOWN = 'xla_gpu_all_gather_combine_threshold_bytes'


@pytest.fixture
def before_jax(monkeypatch):
  """As in a process that has not started a device yet."""
  monkeypatch.setattr(
      startup_flags.xla_bridge, 'backends_are_initialized', lambda: False
  )
  for name in _VARIABLES:
    monkeypatch.setenv(name, '')  # so that what a test sets is undone
    monkeypatch.delenv(name)
  return monkeypatch


def test_flags_and_variables_are_set_and_the_users_own_stay(before_jax):
  before_jax.setenv('XLA_FLAGS', '--xla_dump_to=/d')
  before_jax.setenv('NCCL_DEBUG', 'INFO')
  before_jax.setattr(startup_flags, '_check_flags', lambda *_: None)
  startup_flags.use(
      {
          'xla_dump_to': '/other',
          'xla_gpu_enable_latency_hiding_scheduler': True,
          'NCCL_DEBUG': 'WARN',
          'XLA_PYTHON_CLIENT_MEM_FRACTION': 0.92,
      },
      platform='gpu',
  )
  get = startup_flags.os.environ.get
  assert get('XLA_FLAGS') == (
      '--xla_dump_to=/d --xla_gpu_enable_latency_hiding_scheduler=true'
  )
  assert get('NCCL_DEBUG') == 'INFO'
  assert get('XLA_PYTHON_CLIENT_MEM_FRACTION') == '0.92'


def test_flags_of_tpus_go_to_libtpu(before_jax):
  before_jax.setattr(startup_flags, '_check_flags', lambda *_: None)
  startup_flags.use({'xla_tpu_x': 1}, platform='tpu')
  assert startup_flags.os.environ['LIBTPU_INIT_ARGS'] == '--xla_tpu_x=1'
  assert 'XLA_FLAGS' not in startup_flags.os.environ


def test_a_flag_after_jax_has_started_is_a_warning(monkeypatch, caplog):
  monkeypatch.delenv('XLA_FLAGS', raising=False)
  monkeypatch.setattr(
      startup_flags.xla_bridge, 'backends_are_initialized', lambda: True
  )
  with caplog.at_level('WARNING'):
    startup_flags.use({_KNOWN: 1}, platform='gpu')
  assert 'started its devices already' in caplog.text
  assert 'XLA_FLAGS' not in startup_flags.os.environ


def test_a_variable_that_nobody_reads_is_refused(before_jax):
  with pytest.raises(startup_flags.FlagError, match='NCCL_'):
    startup_flags.use({'NCLL_DEBUG': 'INFO'}, platform='gpu')


@pytest.mark.slow
def test_an_unknown_flag_is_an_error_with_the_nearest_name(before_jax):
  with pytest.raises(startup_flags.FlagError) as error:
    startup_flags.use(
        {'xla_gpu_all_gather_combine_treshold_bytes': 1}, platform='gpu'
    )
  assert f'near: {_KNOWN!r}' in str(error.value)
  assert 'XLA_FLAGS' not in startup_flags.os.environ
  startup_flags.use({_KNOWN: 1}, platform='gpu')
  assert startup_flags.os.environ['XLA_FLAGS'] == f'--{_KNOWN}=1'


@pytest.mark.slow
def test_an_unknown_flag_of_libtpu_is_an_error_with_the_nearest_name(
    before_jax,
):
  if importlib.util.find_spec('libtpu') is None:
    pytest.skip('needs libtpu, of the extra aot-tpu')
  with pytest.raises(startup_flags.FlagError, match='async_collective_fusion'):
    startup_flags.use(
        {'xla_tpu_enable_asynch_collective_fusion': True}, platform='tpu'
    )
