# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever a checkpoint says of itself, it is read right or refused."""

import gc
import json

import pytest

from t5wild.checkpoint_files import steps
from t5wild.checkpoints import configs
from t5wild.checkpoints import formats
from t5wild.checkpoints import manager as manager_lib
from tests.checkpoints import checkpoint_states as states
from tests.checkpoints import hf_recorded
from tests.checkpoints import t5x_checkpoints

VALUES = (None, -1, 2**40, 1.5, True, 'x', [], ['x'], {}, {'x': 1})


def _places(content, at=()):
  """Where the content has values."""
  inner = content
  for key in at:
    inner = inner[key]
  if at:
    yield at
  keys = []
  if isinstance(inner, dict):
    keys = list(inner)
  elif isinstance(inner, list):
    keys = range(min(len(inner), 2))
  for key in keys:
    yield from _places(content, (*at, key))


def _with(content, at, value):
  made = json.loads(json.dumps(content))
  inner = made
  for key in at[:-1]:
    inner = inner[key]
  inner[at[-1]] = value
  return made


def _assert_read_or_refused(folder, file, *, places=slice(None)):
  text = file.read_text()
  content = json.loads(text)
  refused = 0
  for number, at in enumerate(list(_places(content))[places]):
    for value in (VALUES[number % len(VALUES)], VALUES[number // 3 % 10]):
      file.write_text(json.dumps(_with(content, at, value)))
      try:
        arrays = formats.read_structure(folder)
        formats.check_complete(arrays.values(), str(folder))
      except steps.NotACheckpointError as error:
        assert 'expected' in str(error)
        refused += 1
  file.write_text(text)
  formats.read_structure(folder)
  assert refused > 3


@pytest.mark.parametrize('name', ['gemma_3', 'llama_3_1', 'qwen3', 'umt5'])
def test_config_of_hugging_face(tmp_path, name):
  folder = tmp_path / 'model'
  hf_recorded.write_folder(folder, hf_recorded.read()[name])
  _assert_read_or_refused(folder, folder / 'config.json')


def test_arrays_of_t5x(tmp_path):
  folder = tmp_path / 'checkpoint_7'
  t5x_checkpoints.write_native(folder, states.make_numbers(7))
  file = next(folder.rglob('.zarray'))
  _assert_read_or_refused(folder, file)


# Orbax leaves coroutines behind that fail too.
@pytest.mark.filterwarnings(
    'ignore::pytest.PytestUnraisableExceptionWarning'
)
def test_description_of_orbax(tmp_path):
  manager = manager_lib.CheckpointManager(
      tmp_path, config=configs.SaveCheckpointConfig()
  )
  manager.save(7, states.make_numbers(7))
  manager.close()
  folder = tmp_path / 'checkpoint_7'
  file = folder / 'state' / '_METADATA'
  _assert_read_or_refused(folder, file, places=slice(0, None, 5))
  gc.collect()
