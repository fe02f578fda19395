# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A copy that is said to be there is one: whole, and of the same checkpoint."""

import contextlib
import json
import pathlib
import shutil
import time

import pytest

from t5wild import exit_codes
from t5wild.checkpoint_files import command
from t5wild.checkpoint_files import copying
from t5wild.checkpoint_files import health
from t5wild.checkpoint_files import pins
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import mirroring
from t5wild.checkpoints import owners
from t5wild.checkpoints import tiers
from tests.checkpoints import checkpoint_states as states


def _save(run, *, seed):
  run_ids.establish(str(run), source=None)
  manager = manager_lib.CheckpointManager(
      run, config=configs.SaveCheckpointConfig()
  )
  with contextlib.closing(manager):
    for step in (1, 2):
      numbers = states.make_numbers(step + seed)
      manager.save(step, states.place(numbers, states.make_mesh((4, 2))))


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
  """Two runs, whose checkpoints have the same names and other numbers."""
  folder = tmp_path_factory.mktemp('saved')
  _save(folder / 'run', seed=0)
  _save(folder / 'other', seed=10)
  return folder


@pytest.fixture
def folder(saved, tmp_path):
  shutil.copytree(saved, tmp_path / 'saved')
  return tmp_path / 'saved'


@pytest.fixture
def mirror(folder, capsys):
  """Mirrors the run; returns the exit code and all that was printed."""

  def call(target, *arguments):
    arguments = ['mirror', folder / 'run', folder / target, *arguments]
    code = command.main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out + told.err

  return call


def _bytes(checkpoint):
  return {p.relative_to(checkpoint): p.read_bytes()
          for p in sorted(checkpoint.rglob('*')) if p.is_file()}  # fmt: skip


def _largest(checkpoint):
  files = (p for p in pathlib.Path(checkpoint).rglob('*') if p.is_file())
  return max(files, key=lambda p: p.stat().st_size)


def test_where_another_run_lies_nothing_is_called_a_copy(folder, mirror):
  before = _bytes(folder / 'other')
  code, told = mirror('other')
  assert code == exit_codes.BAD_CONFIG.code
  assert 'belongs to another run (id ' in told
  # Nor where the folder does not say so, and its checkpoints do.
  (folder / 'other' / run_ids.FILE).unlink()
  code, told = mirror('other')
  assert code == exit_codes.FAILED.code
  assert told.count('was saved by another run') == 2
  # Nor where only the numbers do.
  for checkpoint in (folder / 'other').glob('checkpoint_*'):
    (checkpoint / 'integrity' / run_ids.IN_CHECKPOINT).unlink()
    (checkpoint / 'integrity' / 'files.process_00000-of-00001.json').unlink()
  code, told = mirror('other')
  assert (code, told.count('has other numbers')) == (1, 2)
  after = _bytes(folder / 'other')
  assert all(before[name] == content for name, content in after.items())


@pytest.mark.parametrize('harm', ['flipped', 'emptied', 'unnamed'])
def test_a_copy_that_is_none_any_more_is_made_again(folder, mirror, harm):
  assert mirror('copy')[0] == exit_codes.DONE.code
  copy = folder / 'copy' / 'checkpoint_1'
  if harm == 'flipped':
    file = _largest(copy)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
  elif harm == 'emptied':
    shutil.rmtree(copy)
    copy.mkdir()
  else:
    (copy / 'integrity' / run_ids.IN_CHECKPOINT).write_text('{')
  code, told = mirror('copy')
  assert code == exit_codes.DONE.code
  assert f'copied to {copy}' in told
  assert 'checkpoint_2 is a whole copy already' in told
  assert _bytes(copy) == _bytes(folder / 'run' / 'checkpoint_1')
  assert steps.all_steps(folder / 'copy') == [1, 2]


def test_what_a_run_has_made_anew_replaces_its_own_copy_alone(folder):
  run, other = folder / 'run', folder / 'other'
  stale = folder / 'copy' / 'checkpoint_2'
  copying.copy(run / 'checkpoint_1', str(stale).replace('_2', '_1'))
  shutil.copytree(other / 'checkpoint_2', stale)
  with pytest.raises(copying.OtherCheckpointError, match='another run'):
    copying.copy(run / 'checkpoint_2', str(stale), replace=True)
  ours = (run / 'checkpoint_2' / 'integrity' / 'run.json').read_text()
  (stale / 'integrity' / 'run.json').write_text(ours)
  (stale / 'integrity' / 'files.process_00000-of-00001.json').unlink()
  with pytest.raises(copying.OtherCheckpointError, match='other numbers'):
    copying.copy(run / 'checkpoint_2', str(stale))
  assert copying.copy(run / 'checkpoint_2', str(stale), replace=True) > 0
  assert _bytes(stale) == _bytes(run / 'checkpoint_2')


def test_what_a_fault_followed_is_not_copied_and_its_copies_are_put_away(
    folder, mirror
):
  run, copy = folder / 'run', folder / 'copy'
  assert mirror('copy', '--step', '2')[0] == exit_codes.DONE.code
  book = health.Book(run, is_writer=True)
  book.promote([1])
  book.quarantine([2], reason='a spike at step 3')
  code, told = mirror('copy')
  assert code == exit_codes.DONE.code
  assert f'{run}/checkpoint_2: left out, as it is in quarantine (a sp' in told
  assert f'{copy}: step 2 is in quarantine there, too' in told
  assert health.read(copy)[1].state == health.HEALTHY
  assert steps.all_steps(copy) == [1]
  # Asked for by its name it is copied, and in quarantine from the start.
  assert mirror('new', '--step', '2')[0] == exit_codes.DONE.code
  assert steps.complete_steps(folder / 'new') == [2]
  assert steps.all_steps(folder / 'new') == []


def test_damage_of_one_copy_puts_no_other_away(folder, mirror):
  mirror('copy')
  health.Book(folder / 'run', is_writer=True).quarantine(
      [2], reason=f'{health.DAMAGED}a flipped bit'
  )
  assert mirror('copy')[0] == exit_codes.DONE.code
  assert steps.all_steps(folder / 'copy') == [1, 2]


def test_a_runs_mirror_learns_late_what_a_fault_followed(folder, mirror):
  mirror('copy', '--step', '1')
  book = health.Book(folder / 'run', is_writer=True)
  book.quarantine([1, 2], reason='a spike')
  told = []
  opened = mirroring.Mirroring(
      str(folder / 'run'),
      tiers.Mirror(directory=str(folder / 'copy')),
      tell=lambda *event: told.append(event),
  )
  opened.offer(2)  # it waited, and the fault was found meanwhile
  opened.close()
  assert told == []
  assert steps.complete_steps(folder / 'copy') == [1]
  assert steps.all_steps(folder / 'copy') == []


def _mirroring(folder, told, **config):
  return mirroring.Mirroring(
      str(folder / 'run'),
      tiers.Mirror(directory=str(folder / 'copy'), **config),
      tell=lambda *event: told.append(event),
  )


@pytest.mark.parametrize('is_pinned', [False, True])
def test_a_runs_mirror_drops_what_is_in_quarantine_once_the_run_is_beyond(
    folder, mirror, is_pinned
):
  mirror('copy', '--step', '1')
  if is_pinned:
    pins.pin(folder / 'copy' / 'checkpoint_1')
  book = health.Book(folder / 'run', is_writer=True)
  book.quarantine([1], reason='a spike')
  book.promote([2])
  opened = _mirroring(folder, [], keep=1)
  opened.offer(2)
  opened.close()
  assert steps.all_steps(folder / 'copy') == [2]
  left = [1, 2] if is_pinned else [2]
  assert steps.complete_steps(folder / 'copy') == left


def test_a_copy_in_quarantine_does_not_put_off_the_next(folder):
  told = []
  opened = _mirroring(folder, told, period=100)
  opened.offer(2)
  for _ in range(1000):
    if told:
      break
    time.sleep(0.01)
  opened.quarantine(2, reason='a spike')
  assert steps.all_steps(folder / 'copy') == []
  opened.offer(2)  # saved anew by a run that went back
  opened.close()
  assert [event[:2] for event in told] == [('mirrored', 2)] * 2
  assert steps.all_steps(folder / 'copy') == [2]


def test_without_a_list_of_files_the_arrays_tell_a_damage(folder, mirror):
  checkpoint = folder / 'run' / 'checkpoint_1'
  (checkpoint / 'integrity' / 'files.process_00000-of-00001.json').unlink()
  assert mirror('copy')[0] == exit_codes.DONE.code
  # Other numbers than these hashes are of.
  (hashes,) = (checkpoint / 'integrity').glob('arrays.*')
  found = json.loads(hashes.read_text())
  found['arrays']['target/encoder/kernel']['hash'] = '00000000'
  hashes.write_text(json.dumps(found))
  code, told = mirror('copy2')
  assert (code, 'array target/encoder/kernel has the hash' in told) == (1, True)
  assert steps.all_steps(folder / 'copy2') == [2]


def test_a_failure_of_one_does_not_keep_the_others(folder, mirror):
  (folder / 'copy').mkdir()
  (folder / 'copy' / 'checkpoint_1.orbax-checkpoint-tmp-copy').write_text('')
  _largest(folder / 'run' / 'checkpoint_1').unlink()
  code, told = mirror('copy')
  assert (code, 'checkpoint_1: NOT copied' in told) == (1, True)
  assert steps.all_steps(folder / 'copy') == [2]


def test_a_run_is_no_place_for_its_own_copies(folder, mirror):
  (folder / 'link').symlink_to(folder / 'run')
  for target in ('run', 'link', 'other/../run'):
    code, told = mirror(target)
    assert code == exit_codes.BAD_CONFIG.code
    assert 'itself, expected another place' in told
    for attempt in (owners.check, owners.claim):
      with pytest.raises(owners.NotOursError, match='which is MODEL_DIR'):
        attempt(str(folder / target), model_dir=str(folder / 'run'))
