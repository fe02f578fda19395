# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's action that says where a parameter lies, and an outsider's hand.

The action is ordinary Python of a recipe: it writes an address down and waits.
What is written there comes from another process, through /proc/PID/mem, as a
cosmic ray would come: no code of the run takes part.
"""

import json
import os
import pathlib
import time

import jax
import numpy as np

from t5wild import trainer

_NAMES = ('address.json', 'address.json.harmed')
_WAIT_SECONDS = 60


class TellAddress(trainer.BaseAction):
  """Tells once where process 0 holds one parameter on its first device."""

  def __init__(self, folder: str, step: int):
    """Takes where to tell it, and after which step."""
    self._file, self._harmed = (pathlib.Path(folder) / n for n in _NAMES)
    self._step = step

  def run(self, train_state, metrics_by_task) -> bool:
    """Waits until it was harmed; never asks for the end."""
    del metrics_by_task
    if self._file.exists() or int(train_state.step) < self._step:
      return False
    leaf = max(jax.tree.leaves(train_state.params), key=lambda x: x.size)
    data = leaf.addressable_shards[0].data
    data.block_until_ready()
    told = {
        'pid': os.getpid(),
        'address': data.unsafe_buffer_pointer(),
        'bytes': data.nbytes,
        'step': int(train_state.step),
    }
    temporary = self._file.with_suffix('.tmp')
    temporary.write_text(json.dumps(told))
    temporary.rename(self._file)
    deadline = time.monotonic() + _WAIT_SECONDS
    while not self._harmed.exists() and time.monotonic() < deadline:
      time.sleep(0.01)
    return False


def flip_bit(folder: pathlib.Path, *, bit: int = 22) -> float:
  """Flips a bit of a float32 in the memory of another process; returns when.

  Args:
    folder: that `TellAddress` was given.
    bit: 22 is the highest of the fraction, 23 the lowest of the exponent.
  """
  file, harmed = (folder / name for name in _NAMES)
  deadline = time.monotonic() + _WAIT_SECONDS * 6
  while not file.exists():
    assert time.monotonic() < deadline, 'the run never came to that step'
    time.sleep(0.01)
  told = json.loads(file.read_text())
  place = told['address'] + told['bytes'] // 2 // 4 * 4
  with open(f'/proc/{told["pid"]}/mem', 'r+b', buffering=0) as memory:
    memory.seek(place)
    word = np.frombuffer(memory.read(4), np.uint32)[0]
    memory.seek(place)
    memory.write(np.uint32(word ^ (1 << bit)).tobytes())
  when = time.time()
  harmed.touch()
  return when
