# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A resumed run tells what of its configuration it changes."""

import json

import pytest

from t5wild import run_dir as run_dir_lib
from t5wild import training_changes


def _operative(place, *, rate='0.4', more=''):
  return (
      f"MODEL_DIR = '{place}'\nTOKEN = 'sekrit-1'\n"
      f'schedules.rate = {rate}\n'
      f"tiers.FastTier.directory = '{place}/fast'\n{more}"
  )


@pytest.fixture
def run(tmp_path):
  run = run_dir_lib.RunDir(str(tmp_path / 'run'))
  (tmp_path / 'run').mkdir()
  _write(run, _operative(run.path))
  return run


def _write(run, operative, *, given='schedules.rate = 0.4\n'):
  for path, text in (
      (run.operative_config_gin, operative), (run.config_gin, given),
  ):  # fmt: skip
    with open(path, 'w') as file:
      file.write(text)


def _events(run):
  with open(run.events_jsonl) as file:
    return [json.loads(line) for line in file]


def _files(run, tmp_path):
  return sorted(path.name for path in (tmp_path / 'run').iterdir())


def test_a_changed_value_is_an_event_and_the_former_files_stay(run, tmp_path):
  with training_changes.told(run, step=60):
    _write(
        run,
        _operative(run.path, rate='0.1').replace('sekrit-1', 'sekrit-2'),
        given='schedules.rate = 0.1\n',
    )
  (event,) = _events(run)
  assert (event['name'], event['step'], event['value']) == (
      'config/changed', 60, 2.0
  )  # fmt: skip
  assert 'schedules.rate = 0.4 -> 0.1' in event['text']
  # What its name makes a secret is told without its value.
  assert 'TOKEN' in event['text']
  assert 'sekrit' not in event['text']
  former = tmp_path / 'run' / 'operative_config_before_step_60.gin'
  assert former.read_text() == _operative(run.path)
  assert (tmp_path / 'run' / 'config_before_step_60.gin').exists()


def test_the_first_former_file_of_a_step_stays(run, tmp_path):
  for rate in ('0.1', '0.2'):
    with training_changes.told(run, step=60):
      _write(run, _operative(run.path, rate=rate))
  former = tmp_path / 'run' / 'operative_config_before_step_60.gin'
  assert 'rate = 0.4' in former.read_text()
  first, second = (event['text'] for event in _events(run))
  assert '0.4 -> 0.1' in first
  assert '0.1 -> 0.2' in second


def test_a_moved_run_and_new_defaults_are_no_change(run, tmp_path):
  with training_changes.told(run, step=60):
    _write(run, _operative('/elsewhere', more='schedules.new_default = 1\n'))
  assert _files(run, tmp_path) == ['config.gin', 'operative_config.gin']


def test_what_a_recipe_sets_anew_or_no_longer_is_a_change():
  def texts(given, operative):
    return {'config.gin': given, 'operative_config.gin': operative}

  assert training_changes.differences(
      texts('a.b = 1\n', 'a.b = 1\n'), texts('c.d = 2\n', 'c.d = 2\n')
  ) == {'a.b': ('1', '(not set)'), 'c.d': ('(not set)', '2')}
  assert training_changes.differences({}, texts('a.b = 1\n', 'a.b = 1\n')) == {}


def test_without_the_operative_configuration_what_recipes_set_is_compared(run):
  _write(run, '', given='schedules.rate = 0.4\n')
  with training_changes.told(run, step=60):
    _write(run, _operative(run.path), given='schedules.rate = 0.1\n')
  (event,) = _events(run)
  assert event['name'] == 'config/changed'
  assert 'schedules.rate = 0.4 -> 0.1' in event['text']


def test_of_a_configuration_that_is_gone_it_is_said_that_nobody_knows(run):
  _write(run, '', given='')
  with training_changes.told(run, step=60):
    _write(run, _operative(run.path))
  (event,) = _events(run)
  assert (event['name'], event['step']) == ('config/unknown', 60)
  assert 'gone or empty' in event['text']


def test_a_run_killed_as_it_writes_keeps_what_it_had(run, tmp_path):
  with pytest.raises(KeyboardInterrupt), training_changes.told(run, step=60):
    raise KeyboardInterrupt
  assert 'operative_config_before_step_60.gin' in _files(run, tmp_path)


def _environment(**parts):
  return {
      'python': '3.11.7', 'host': 'a', 'cores': 2, 'processes': 2,
      'devices': {'cpu': 2}, 'packages': {'jax': '0.10.2'}, 'settings': {},
      'variables': {'JAX_COORDINATOR_ADDRESS': 'a:1', 'XLA_FLAGS': '--x=1'},
      **parts,
  }  # fmt: skip


def _written(path, value):
  with open(path, 'w') as file:
    json.dump(value, file)


def test_another_environment_is_an_event_and_the_former_file_stays(run):
  first = _environment(settings={'jax_threefry_partitionable': True})
  _written(run.environment_json, first)
  for _ in range(2):
    with training_changes.environment_told(run, step=60):
      _written(run.environment_json, _environment(
          host='b', cores=8, packages={'jax': '0.12.0'}, processes=1,
          settings={'jax_threefry_partitionable': False},
      ))  # fmt: skip
  (event,) = _events(run)  # the second time nothing changed any more
  assert (event['name'], event['step']) == ('environment/changed', 60)
  for change in (
      'packages.jax = 0.10.2 -> 0.12.0',
      'processes = 2 -> 1',
      'settings.jax_threefry_partitionable = True -> False',
  ):
    assert change in event['text']
  with open(run.environment_before(60)) as file:
    assert json.load(file) == first


def test_another_host_port_or_dump_is_no_other_environment(run, tmp_path):
  _written(run.environment_json, _environment())
  with training_changes.environment_told(run, step=60):
    _written(run.environment_json, _environment(host='b', variables={
        'JAX_COORDINATOR_ADDRESS': 'b:2', 'JAX_COMPILATION_CACHE_DIR': '/x',
        'XLA_FLAGS': '--xla_dump_to=/dumps --x=1',
    }))  # fmt: skip
  assert 'environment_before_step_60.json' not in _files(run, tmp_path)
  assert not (tmp_path / 'run' / 'events.jsonl').exists()


def test_a_former_file_without_a_part_or_in_halves_is_no_difference():
  before = _environment()
  del before['settings']
  after = _environment(settings={'jax_enable_x64': False})
  assert training_changes.environment_differences(before, after) == {}
  assert training_changes.environment_differences({}, after) == {}
