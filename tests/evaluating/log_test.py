# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What an output directory knows of an evaluation that was begun before."""

import json

import pytest

from t5wild.evaluating import log as log_lib
from tests import small_disk

_IDENTITY = {'task': 'a', 'settings': ['x = 1', 'y = 2']}


def _log(folder, **changes):
  return log_lib.EvaluationLog(str(folder), identity=_IDENTITY | changes)


def test_a_checkpoint_is_done_when_all_its_tasks_have_a_line(tmp_path):
  log = _log(tmp_path)
  log.open()
  log.add(
      step=3, checkpoint='c3', identity='c3',
      metrics={'a': {'em': 1.0}, 'b': {}},
  )  # fmt: skip
  again = _log(tmp_path)
  assert again.is_done('c3', ['a', 'b'])
  assert not again.is_done('c3', ['a', 'c'])
  assert not again.is_done('c4', ['a'])
  again.add(step=4, checkpoint='c4', identity='c4', metrics={'a': {'em': 2.0}})
  lines = (tmp_path / 'evaluation.jsonl').read_text().splitlines()
  found = [json.loads(line) for line in lines]
  assert [(x['step'], x['task'], x['metrics']) for x in found] == [
      (3, 'a', {'em': 1.0}), (3, 'b', {}), (4, 'a', {'em': 2.0})
  ]  # fmt: skip


def test_nothing_is_written_before_it_is_opened(tmp_path):
  _log(tmp_path / 'new')
  assert not list(tmp_path.iterdir())


def test_the_directory_of_another_evaluation_is_refused_with_both_sides(
    tmp_path,
):
  _log(tmp_path).open()
  with pytest.raises(log_lib.AnotherEvaluationError) as raised:
    _log(tmp_path, task='b', settings=['x = 1', 'y = 3'])
  for part in (
      'task there: a', 'task now:   b', "there: ['y = 2']", "now:   ['y = 3']",
      'EVAL_OUTPUT_DIR',
  ):
    assert part in str(raised.value)
  assert 'x = 1' not in str(raised.value)


def test_the_directory_of_a_run_is_refused(tmp_path):
  (tmp_path / 'metrics.jsonl').touch()
  with pytest.raises(log_lib.AnotherEvaluationError, match='training run'):
    _log(tmp_path)


def test_a_checkpoint_is_known_after_it_moved_and_another_of_its_name_is_not(
    tmp_path,
):
  log = _log(tmp_path)
  log.open()
  log.add(
      step=3, checkpoint='/a/c3', identity='c3 saved 1', metrics={'a': {}}
  )
  again = _log(tmp_path)
  assert again.is_done('c3 saved 1', ['a'])
  assert not again.is_done('c3 saved 2', ['a'])


@pytest.mark.parametrize('name', ['evaluation.json', 'evaluation.jsonl'])
@pytest.mark.parametrize('text', ['{"a": ', '[1]', '7'])
def test_a_broken_file_is_told(tmp_path, name, text):
  _log(tmp_path).open()
  (tmp_path / name).write_text(f'{text}\n')
  with pytest.raises(
      log_lib.AnotherEvaluationError, match=rf'{name} holds .*Mend or remove'
  ):
    _log(tmp_path)


def test_a_directory_that_cannot_be_is_told_at_once(tmp_path):
  (tmp_path / 'file').touch()
  for folder in ('file', 'file/folder'):
    with pytest.raises(log_lib.UnwritableError, match='file is no folder'):
      _log(tmp_path / folder)


def test_a_full_disk_leaves_the_lines_that_were_there(tmp_path):
  with small_disk.mounted(tmp_path / 'disk', megabytes=1) as disk:
    log = _log(disk)
    log.open()
    log.add(step=3, checkpoint='c3', identity='c3', metrics={'a': {}})
    before = sorted(path.read_text() for path in disk.iterdir())
    with pytest.raises(log_lib.NotWrittenError, match='No space left'):
      log.add(
          step=4, checkpoint='c4', identity='c4',
          metrics={'a': {'x' * 2_000_000: 1.0}},
      )  # fmt: skip
    assert sorted(path.read_text() for path in disk.iterdir()) == before
