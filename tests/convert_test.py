# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild convert` refuses what it cannot do, and writes nothing then."""

import numpy as np
import pytest

from t5wild import convert
from t5wild import exit_codes
from t5wild.checkpoint_files import run_ids
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import load
from tests.checkpoints import checkpoint_states as states
from tests.checkpoints import t5x_checkpoints


@pytest.fixture
def theirs(tmp_path):
  """A run directory of T5X with steps 3 and 5."""
  for step in (3, 5):
    t5x_checkpoints.write_native(
        tmp_path / 'theirs' / f'checkpoint_{step}', states.make_numbers(step)
    )
  return tmp_path / 'theirs'


def _convert(*arguments):
  return convert.main([str(argument) for argument in arguments])


def test_newest_is_converted_or_the_step_asked_for(theirs, tmp_path):
  to = tmp_path / 'ours'
  assert _convert('--from', theirs, '--to', to) == exit_codes.DONE.code
  assert _convert('--from', theirs, '--to', to, '--step=3') == 0
  assert steps.all_steps(to) == [3, 5]
  for step in (3, 5):
    assert steps.find(to / f'checkpoint_{step}')[0] == steps.ORBAX
    states.assert_same_bits(
        load.load_t5x_checkpoint(to, step), states.make_numbers(step)
    )


def test_checkpoint_that_is_there_is_not_overwritten(theirs, tmp_path, capsys):
  assert _convert('--from', theirs, '--to', theirs) == (
      exit_codes.BAD_CONFIG.code
  )
  assert 'has a checkpoint of step 5' in capsys.readouterr().err
  assert steps.find(theirs / 'checkpoint_5')[0] == steps.T5X_NATIVE


def test_nothing_is_written_into_the_folder_of_a_run(theirs, tmp_path, capsys):
  run_ids.establish(str(tmp_path), source=None)
  assert _convert('--from', theirs, '--to', tmp_path) == (
      exit_codes.BAD_CONFIG.code
  )
  told = capsys.readouterr().err
  assert 'is the MODEL_DIR of a run' in told and 'Give another' in told
  assert not list(tmp_path.glob('checkpoint_*'))


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['--step=4'], 'expected one of [3, 5]'),
        (['--scan'], "expected 'plain' ones"),
        (['--unscan'], "expected 'stacked' ones"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_written(
    theirs, tmp_path, capsys, arguments, words
):
  to = tmp_path / 'ours'
  code = _convert('--from', theirs, '--to', to, *arguments)
  assert code == exit_codes.BAD_CONFIG.code
  assert words in capsys.readouterr().err
  assert not to.exists()


def test_strangers_checkpoint_is_confined_unless_told_otherwise(
    theirs, tmp_path, capsys
):
  outside = tmp_path / 'outside'
  (theirs / 'checkpoint_5' / 'target.encoder.kernel').rename(outside)
  (theirs / 'checkpoint_5' / 'target.encoder.kernel').symlink_to(outside)
  to = tmp_path / 'ours'
  assert _convert('--from', theirs, '--to', to) == exit_codes.BAD_CONFIG.code
  assert '--trust_paths' in capsys.readouterr().err
  assert not to.exists()
  assert _convert('--from', theirs, '--to', to, '--trust_paths') == 0
  np.testing.assert_array_equal(
      load.load_t5x_checkpoint(to)['target']['encoder']['kernel'],
      states.make_numbers(5)['target']['encoder']['kernel'],
  )


def test_two_layouts_at_once_are_refused(capsys):
  with pytest.raises(SystemExit):
    _convert('--from', 'a', '--to', 'b', '--scan', '--unscan')
  assert 'not allowed with' in capsys.readouterr().err
