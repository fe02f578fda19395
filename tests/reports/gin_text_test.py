# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a configuration's text says was set."""

from t5wild.reports import gin_text
from t5wild.vitals import gin_statements

_OPERATIVE = """
import seqio
# Parameters for a.f:
STEPS = 10
MORE = %STEPS
a.f.x = \\
    'constant * \\\\ warmup'
a.f.y = {'inputs': [1, 2],
    'targets': 3}
train/a.f.z = ')'
a.f.w = None
"""


def test_statements_over_several_lines_are_whole():
  assert dict(gin_statements.statements(_OPERATIVE)) == {
      'STEPS': '10', 'MORE': '%STEPS',
      'a.f.x': "'constant * \\\\ warmup'",
      'a.f.y': "{'inputs': [1, 2], 'targets': 3}",
      'train/a.f.z': "')'", 'a.f.w': 'None',
  }  # fmt: skip


def test_what_the_given_configuration_binds_was_set_in_all_scopes():
  given = "STEPS = 10\na.f.z = ')'\n"
  settings = gin_text.settings(_OPERATIVE, given)
  assert [each.name for each in settings if each.is_set] == [
      'STEPS', 'train/a.f.z',
  ]  # fmt: skip


def test_macros_are_followed_and_a_circle_ends():
  assert gin_statements.resolved(_OPERATIVE, 'MORE') == '10'
  assert gin_statements.resolved('A = %B\nB = %A\n', 'A') in ('%A', '%B')
  assert gin_statements.resolved(_OPERATIVE, 'NOTHING') is None
