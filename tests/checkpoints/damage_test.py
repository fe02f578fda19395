# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A damaged checkpoint is refused, or read right in spite of it.

Numbers that T5X keeps uncompressed, or in its index, have no checksum: one bit
of those is beyond this.
"""

import gc
import pathlib

import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import manager as manager_lib
from t5wild.checkpoints import restoring
from tests.checkpoints import checkpoint_states as states
from tests.checkpoints import t5x_checkpoints


def _flipped(content):
  middle = len(content) // 2
  changed = bytes([content[middle] ^ 255]) if content else b''
  return content[:middle] + changed + content[middle + 1 :]


DAMAGES = {
    'cut': lambda content: content[: len(content) // 2],
    'emptied': lambda content: b'',
    'flipped': _flipped,
    'removed': None,
}


def _write_ours(path):
  manager = manager_lib.CheckpointManager(
      path.parent, config=configs.SaveCheckpointConfig()
  )
  manager.save(1, states.place(states.make_numbers(7), _mesh()))
  manager.close()


def _write_theirs(path):
  t5x_checkpoints.write_native(path, states.make_numbers(7))


def _mesh():
  return states.make_mesh((4, 2))


# Orbax leaves a coroutine behind that fails too.
@pytest.mark.filterwarnings(
    'ignore::pytest.PytestUnraisableExceptionWarning'
)
@pytest.mark.parametrize('damage', DAMAGES)
@pytest.mark.parametrize('write', [_write_ours, _write_theirs])
def test_damaged_files_are_refused_or_read_right(tmp_path, write, damage):
  path = tmp_path / 'checkpoint_1'
  write(path)
  numbers = states.make_numbers(7)
  request = restoring.Request(
      abstract_state=states.abstract(numbers),
      shardings=states.shardings_of(numbers, _mesh()),
  )
  refused = 0
  for file in sorted(p for p in pathlib.Path(path).rglob('*') if p.is_file()):
    whole = file.read_bytes()
    if DAMAGES[damage] is None:
      file.unlink()
    else:
      file.write_bytes(DAMAGES[damage](whole))
    try:
      read = restoring.restore_state(str(path), request)
    except steps.NotACheckpointError:
      refused += 1
    else:
      states.assert_same_bits(read, numbers)
    file.write_bytes(whole)
  assert refused > 2
  states.assert_same_bits(restoring.restore_state(str(path), request), numbers)
  gc.collect()  # So that this is told, and ignored, here.
