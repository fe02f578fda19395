# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run of so many steps more has one end, however often it is begun again."""

import dataclasses
import types

import pytest

from t5wild import training_end
from t5wild import training_plan


def _last_step(tmp_path, first_step, *, relative=50, is_resumed=True) -> int:
  nothing = {
      field.name: None
      for field in dataclasses.fields(training_plan.TrainingPlan)
  }
  plan = training_plan.TrainingPlan(
      **nothing
      | {'use_orbax': True, 'model_dir': str(tmp_path), 'total_steps': 10**6}
      | {'relative_steps': relative}
  )
  initial = types.SimpleNamespace(step=first_step, is_own=is_resumed)
  return training_end.last_step(plan, initial)


def test_begun_again_before_its_end_it_goes_on_to_that(tmp_path):
  assert _last_step(tmp_path, 1000, is_resumed=False) == 1050
  for step in (1000, 1010, 1049):
    assert _last_step(tmp_path, step) == 1050


def test_begun_again_at_its_end_it_makes_as_many_more(tmp_path):
  assert _last_step(tmp_path, 0, is_resumed=False) == 50
  training_end.note_done(str(tmp_path))
  assert _last_step(tmp_path, 50) == 100
  assert _last_step(tmp_path, 90) == 100


def test_killed_at_its_end_it_has_none_to_make(tmp_path):
  assert _last_step(tmp_path, 0, is_resumed=False) == 50
  assert _last_step(tmp_path, 50) == 50  # killed in its last evaluation
  training_end.note_done(str(tmp_path))
  assert _last_step(tmp_path, 50) == 100


def test_the_file_of_a_run_that_did_not_tell_is_of_one_that_was_done(tmp_path):
  file = tmp_path / training_end.FILE
  file.write_text('{"first_step": 0, "last_step": 50}')
  assert _last_step(tmp_path, 40, relative=50) == 50
  training_end.note_done(str(tmp_path))
  assert _last_step(tmp_path, 50) == 100


def test_another_number_or_another_beginning_counts_anew(tmp_path):
  assert _last_step(tmp_path, 0, is_resumed=False) == 50
  assert _last_step(tmp_path, 20, relative=60) == 80
  assert _last_step(tmp_path, 30, relative=60, is_resumed=False) == 90


@pytest.mark.parametrize('text', ['', '[]', '{"first_step": 0}', '\0'])
def test_a_torn_file_is_told_and_counts_anew(text, tmp_path, caplog):
  (tmp_path / training_end.FILE).write_text(text)
  assert _last_step(tmp_path, 20) == 70
  assert training_end.FILE in caplog.text


def test_steps_in_total_leave_no_file(tmp_path):
  assert _last_step(tmp_path, 20, relative=None) == 10**6
  training_end.note_done(str(tmp_path))
  assert not list(tmp_path.iterdir())
