# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The names under a MODEL_DIR."""

import pytest

from t5wild import run_dir


@pytest.mark.parametrize('path', ['/tmp/run', 'gs://bucket/run', 'rel/run'])
def test_names_lie_under_the_model_dir_with_or_without_a_last_slash(path):
  for given in (path, path + '/'):
    run = run_dir.RunDir(given)
    assert run.metrics_jsonl == path + '/metrics.jsonl'
    assert run.checkpoint(300) == path + '/checkpoint_300'
    assert run.summaries('training_eval/c4') == path + '/training_eval/c4'


def test_checkpoint_step_reads_back_the_step_and_nothing_else():
  run = run_dir.RunDir('/tmp/run')
  assert run_dir.checkpoint_step(run.checkpoint(1234)) == 1234
  assert run_dir.checkpoint_step('/x/checkpoint_7/') == 7
  assert run_dir.checkpoint_step('checkpoint_0') == 0
  for other in (
      'checkpoint_', 'checkpoint_7.tmp', 'my_checkpoint_7', 'x', '_70',
      'checkpoint_070', 'checkpoint_00', 'checkpoint_\uff17\uff10',
  ):  # fmt: skip
    assert run_dir.checkpoint_step(other) is None


def test_local_checkpoint_steps_are_in_order_of_numbers(tmp_path):
  for step in (1000, 20, 300):
    (tmp_path / f'checkpoint_{step}').mkdir()
  (tmp_path / 'checkpoint_400.orbax-checkpoint-tmp').mkdir()
  run = run_dir.RunDir(str(tmp_path))
  assert run.local_checkpoint_steps() == [20, 300, 1000]
  missing = run_dir.RunDir(str(tmp_path / 'missing'))
  assert missing.local_checkpoint_steps() == []


def test_only_process_0_writes_metrics_jsonl():
  run = run_dir.RunDir('/tmp/run')
  names = {run.host_metrics_jsonl(process) for process in range(4)}
  assert len(names) == 4
  assert run.host_metrics_jsonl(0) == run.metrics_jsonl


def test_an_empty_model_dir_is_refused_with_the_mend():
  with pytest.raises(ValueError, match=r"''.*expected.*MODEL_DIR"):
    run_dir.RunDir('')
