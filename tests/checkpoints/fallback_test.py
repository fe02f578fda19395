# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A damaged checkpoint is passed over for the next good one, loudly."""

import contextlib
import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import owners
from t5wild.checkpoints import run_stores
from t5wild.checkpoints import tiers
from tests.checkpoints import two_kernels


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
  """A run with two checkpoints, and what it began with."""
  run = tmp_path_factory.mktemp('saved') / 'run'
  model = two_kernels.Model(width=64)
  state = model.save(run, at=(1, 2), dataset_state={'batches': 7})
  return run, model, state


@pytest.fixture
def run(saved, tmp_path):
  shutil.copytree(saved[0], tmp_path / 'run')
  return tmp_path / 'run'


def _files(checkpoint):
  return [p for p in pathlib.Path(checkpoint).rglob('*') if p.is_file()]


def _largest(checkpoint):
  return max(_files(checkpoint), key=lambda p: p.stat().st_size)


def _flip(file):
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)


def _cut(file):
  file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _events(run):
  path = pathlib.Path(run) / 'events.jsonl'
  lines = path.read_text().splitlines() if path.exists() else []
  return [(e['name'], e['step'], e['text']) for e in map(json.loads, lines)]


def _position(checkpoint):
  return next((checkpoint / 'dataset').glob('*.json'))


def _forget(checkpoint, *names):
  for name in names:
    path = checkpoint / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()


_DAMAGES = {
    'a flipped bit': lambda c: _flip(_largest(c)),
    'a torn file': lambda c: _cut(_largest(c)),
    'an emptied file': lambda c: _largest(c).write_bytes(b''),
    'a deleted file': lambda c: _largest(c).unlink(),
    'no description': lambda c: (c / 'state' / '_METADATA').unlink(),
    'a torn description': lambda c: _cut(c / 'state' / '_METADATA'),
    'a flipped position': lambda c: _position(c).write_text('{"batches": 8}'),
    'a torn position': lambda c: _position(c).write_text('{"bat'),
    'a deleted position': lambda c: shutil.rmtree(c / 'dataset'),
    'a position without its file': lambda c: _position(c).unlink(),
    'no position and no list of files': lambda c: _forget(
        c, 'dataset', 'integrity/files.process_00000-of-00001.json'
    ),
    'no position and no record': lambda c: _forget(
        c, 'dataset', '_CHECKPOINT_METADATA',
        'integrity/files.process_00000-of-00001.json',
    ),
    'the position of one process of two': lambda c: _position(c).rename(
        c / 'dataset' / 'process_00001-of-00002.json'
    ),
}


@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
@pytest.mark.parametrize('damage', _DAMAGES)
def test_the_one_before_is_taken_and_the_damaged_one_put_away(
    run, saved, damage, caplog
):
  _, model, state = saved
  _DAMAGES[damage](run / 'checkpoint_2')
  initial = model.initialize(run, save=configs.SaveCheckpointConfig())
  assert (initial.step, initial.is_own) == (1, True)
  assert initial.dataset_state == {'batches': 7}
  jax.tree.map(
      np.testing.assert_array_equal, initial.train_state.params, state.params
  )
  assert 'DAMAGED CHECKPOINT' in caplog.text
  names = [(name, step) for name, step, _ in _events(run)]
  assert names == [('checkpoint/damaged', 2), ('checkpoint/fell_back', 1)]
  assert health.read(run)[2].state == health.QUARANTINED
  assert steps.all_steps(run) == [1]
  # The run goes on, and saves the step anew in its place.
  model.save(run, at=(2,), dataset_state={'batches': 7})
  assert steps.all_steps(run) == [1, 2]
  assert model.initialize(run).step == 2


def test_a_copy_under_the_name_of_a_later_step_is_not_resumed_from(
    run, saved
):
  shutil.copytree(run / 'checkpoint_1', run / 'checkpoint_700')
  initial = saved[1].initialize(run, save=configs.SaveCheckpointConfig())
  assert initial.step == 2
  (damaged, fell_back) = _events(run)
  assert damaged[:2] == ('checkpoint/damaged', 700)
  assert 'its state is of step 1, and its folder is named' in damaged[2]
  assert fell_back[:2] == ('checkpoint/fell_back', 2)


@pytest.mark.parametrize(
    'name', [steps.COMMIT_MARKER, '_CHECKPOINT_METADATA']
)
def test_a_missing_file_without_numbers_is_told_and_the_state_taken(
    run, saved, name
):
  (run / 'checkpoint_2' / name).unlink()
  assert saved[1].initialize(run).step == 2
  ((event, step, text),) = _events(run)
  assert (event, step) == ('checkpoint/incomplete', 2)
  assert name in text


def test_a_checkpoint_whose_position_was_never_saved_or_was_removed_is_taken(
    run, saved, tmp_path
):
  model = saved[1]
  steps.delete_dataset_state(run / 'checkpoint_2')
  initial = model.initialize(run)
  assert (initial.step, initial.dataset_state) == (2, None)
  model.save(tmp_path / 'none', at=(1,))
  # Not by the word of the other checkpoints, where it has its own.
  model.save(tmp_path / 'none', at=(2,), dataset_state={'batches': 7},
             save_dataset=False)  # fmt: skip
  initial = model.initialize(tmp_path / 'none')
  assert (initial.step, initial.dataset_state) == (2, None)
  assert _events(run) == _events(tmp_path / 'none') == []


def _empty(checkpoint):
  shutil.rmtree(checkpoint)
  checkpoint.mkdir()


_LOSSES = {
    'emptied': _empty,
    'no state': lambda c: _forget(
        c, 'state', steps.COMMIT_MARKER, '_CHECKPOINT_METADATA'
    ),
}


@pytest.mark.parametrize('loss', _LOSSES)
def test_an_emptied_checkpoint_is_told_and_saved_anew(run, saved, loss):
  model = saved[1]
  _LOSSES[loss](run / 'checkpoint_2')
  assert model.initialize(run).step == 1
  ((event, step, text),) = _events(run)
  assert (event, step) == ('checkpoint/damaged', 2)
  assert f'{run}/checkpoint_2 is not taken: it has lost its state/' in text
  # Later starts tell which was passed over, why, and what is taken instead.
  assert model.initialize(run).step == 1
  ((event, step, text),) = _events(run)[1:]
  assert (event, step) == ('checkpoint/passed_over', 1)
  assert f'{run}/checkpoint_1 is the newest to go on from' in text
  assert f'{run}/checkpoint_2 (damaged: it has lost its state/' in text
  model.save(run, at=(2,), dataset_state={'batches': 7})
  assert model.initialize(run).step == 2


@pytest.mark.parametrize(
    'harm', [lambda c: _flip(_largest(c)), *_LOSSES.values()]
)
def test_a_run_whose_checkpoints_are_all_damaged_does_not_begin_anew(
    run, saved, harm
):
  for step in (1, 2):
    harm(run / f'checkpoint_{step}')
  for _ in range(2):  # nor at the next try
    with pytest.raises(steps.NotACheckpointError, match='all 2 checkpoints'):
      saved[1].initialize(run)


def test_a_checkpoint_that_a_recipe_names_is_refused_and_left(run, saved):
  path = run / 'checkpoint_2'
  _flip(_largest(path))
  restore = configs.RestoreCheckpointConfig(path=str(path), mode='specific')
  with pytest.raises(steps.NotACheckpointError, match='wrong numbers in'):
    saved[1].initialize(run.parent / 'new', restore=restore)
  assert not health.read(run)


def _config(folder, **config):
  return configs.SaveCheckpointConfig(
      period=10,
      tiers=[
          tiers.FastTier(directory=str(folder / 'fast'), period=4),
          tiers.Mirror(directory=str(folder / 'mirror'), keep=2),
      ],
      **config,
  )


@contextlib.contextmanager
def _stores(folder, model, **config):
  """Stores, and a state of any step."""
  stores = run_stores.RunStores(
      str(folder / 'run'), _config(folder, **config), on_event=lambda e: None
  )
  base = model.init(jax.random.PRNGKey(5))
  with contextlib.closing(stores):
    yield stores, lambda step: base.replace_step(jnp.int32(step))


def _train(folder, model, *, until, **config):
  """Saves as a run would that makes a step at a time."""
  with _stores(folder, model, **config) as (stores, state):
    for step in range(until + 1):
      if stores.fast_is_due(step):
        stores.save_fast(step, state(step), {'batches': step})
      if step % 10 == 0:
        stores.main.save(step, state(step), {'batches': step})
        stores.main.wait()


def test_each_store_has_its_own_period_and_keeps_its_own(tmp_path, saved):
  _train(tmp_path, saved[1], until=30, keep=1)
  assert steps.all_steps(tmp_path / 'run') == [30]
  assert steps.all_steps(tmp_path / 'fast') == [24, 28]
  assert steps.all_steps(tmp_path / 'mirror')[-1] == 30
  assert len(steps.all_steps(tmp_path / 'mirror')) <= 2
  run_id = run_ids.of_directory(str(tmp_path / 'run'))
  for store in ('run', 'fast', 'mirror'):
    newest = steps.latest_step(tmp_path / store)
    path = tmp_path / store / f'checkpoint_{newest}'
    assert run_ids.of_checkpoint(path) == run_id != ''
    assert run_ids.of_store(str(tmp_path / store)) in (run_id, '')
  assert run_ids.of_store(str(tmp_path / 'fast')) == run_id


def test_the_newest_good_one_of_all_stores_is_taken(tmp_path, saved):
  model = saved[1]
  _train(tmp_path, model, until=28)
  save = _config(tmp_path)

  def begin():
    initial = model.initialize(tmp_path / 'run', save=save)
    assert initial.dataset_state == {'batches': initial.step}
    return initial.source.removeprefix(f'{tmp_path}/')

  assert begin() == 'fast/checkpoint_28'
  _flip(_largest(tmp_path / 'fast' / 'checkpoint_28'))
  assert begin() == 'fast/checkpoint_24'
  shutil.rmtree(tmp_path / 'fast')  # as after a restart of the machine
  assert begin() == 'run/checkpoint_20'
  _flip(_largest(tmp_path / 'run' / 'checkpoint_20'))
  assert begin() == 'mirror/checkpoint_20'
  shutil.rmtree(tmp_path / 'run')
  assert begin() == 'mirror/checkpoint_20'


def test_what_a_fault_followed_is_out_of_use_in_all_stores(tmp_path, saved):
  model = saved[1]
  _train(tmp_path, model, until=28)
  with _stores(tmp_path, model) as (stores, _):
    assert stores.quarantine_after(10, reason='a spike') == [20]
  initial = model.initialize(tmp_path / 'run', save=_config(tmp_path))
  assert initial.source == str(tmp_path / 'run' / 'checkpoint_10')


def test_a_pinned_checkpoint_stays_though_a_fault_followed_it(tmp_path, saved):
  with _stores(tmp_path, saved[1], keep=1) as (stores, state):
    shelf = stores.main.shelf
    for step in (10, 20):
      stores.main.save(step, state(step), None)
      stores.main.wait()
      if step == 10:
        pins.pin(shelf.path(10))
        shelf.quarantine([10], reason='a spike')
    shelf.promote([20])
    shelf.remove_old()
  assert steps.complete_steps(tmp_path / 'run') == [10, 20]
  pins.unpin(tmp_path / 'run' / 'checkpoint_10')
  with _stores(tmp_path, saved[1], keep=1) as (stores, _):
    stores.main.shelf.remove_old()
  assert steps.complete_steps(tmp_path / 'run') == [20]


def test_a_damaged_checkpoint_is_not_copied_over(run, saved):
  _flip(_largest(run / 'checkpoint_2'))
  save = configs.SaveCheckpointConfig(
      tiers=[tiers.Mirror(directory=str(run.parent / 'mirror'))]
  )
  stores = run_stores.RunStores(str(run), save, on_event=lambda e: None)
  for mirror in stores._mirrors:
    mirror.offer(2)
  stores.close()
  assert steps.all_steps(run.parent / 'mirror') == []
  ((name, step, text),) = _events(run)
  assert (name, step) == ('checkpoint/damaged', 2)
  assert 'has other bytes' in text


def test_the_tier_of_another_run_is_refused(tmp_path, saved):
  model = saved[1]
  _train(tmp_path, model, until=8)
  with pytest.raises(steps.NotACheckpointError, match='holds checkpoints of'):
    model.initialize(tmp_path / 'other', save=_config(tmp_path))
  with pytest.raises(owners.NotOursError):
    owners.claim(str(tmp_path / 'run'), model_dir=str(tmp_path / 'other'))
