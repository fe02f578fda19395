# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Exits: distinct, and a supervisor knows which to restart."""

import signal

from t5wild import exit_codes


def test_codes_and_names_are_distinct():
  assert len({e.code for e in exit_codes.ALL}) == len(exit_codes.ALL)
  assert len({e.name for e in exit_codes.ALL}) == len(exit_codes.ALL)


def test_codes_stay_clear_of_those_a_shell_gives():
  assert all(0 <= e.code < 126 for e in exit_codes.ALL)


def test_a_wrong_recipe_is_not_restarted_and_a_preempted_run_is():
  assert not exit_codes.explain(2).restart
  assert exit_codes.explain(75).restart


def test_signals_are_named_as_subprocess_and_as_a_shell_report_them():
  assert exit_codes.explain(-signal.SIGKILL).name == 'sigkill'
  assert exit_codes.explain(128 + signal.SIGKILL).name == 'sigkill'
  assert exit_codes.explain(-signal.SIGKILL).restart
  assert not exit_codes.explain(-signal.SIGINT).restart


def test_an_unknown_code_is_a_failure_that_names_its_number():
  assert '99' in exit_codes.explain(99).meaning
