# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Each phase has its own bound."""

import pytest

from t5wild.vitals import goodput
from t5wild.vitals import patience as patience_lib


def _patience(**changes):
  arguments = {'multiple': 10.0, 'min_seconds': 5.0, **changes}
  return patience_lib.Patience(**arguments)


def test_a_step_is_bounded_by_the_median_but_never_below_the_least():
  patience = _patience()
  step = patience_lib.STEP
  assert patience.bound(step, median=2.0, num_steps=9) == 20
  assert patience.bound(step, median=0.1, num_steps=9) == 5


def test_before_there_is_a_median_the_first_steps_have_a_bound_of_their_own():
  patience = _patience(phase_seconds={'first_steps': 77.0})
  assert patience.bound('step', median=0.1, num_steps=2) == 77
  assert patience.bound('step', median=None, num_steps=0) == 77


@pytest.mark.parametrize('kind', [*goodput.KINDS, goodput.OTHER])
@pytest.mark.parametrize('has_stepped', [True, False])
def test_whatever_the_ledger_books_has_a_bound(kind, has_stepped):
  patience = _patience()
  group = patience.group(kind, has_stepped=has_stepped)
  assert patience.bound(group, median=1.0, num_steps=9) > 0


def test_a_phase_may_be_given_more_less_or_any_time():
  patience = _patience(phase_seconds={'evaluate': 9.0, 'save': None})
  assert patience.bound('evaluate', median=1.0, num_steps=9) == 9
  assert patience.bound('save', median=1.0, num_steps=9) is None


def test_no_multiple_is_no_bound_at_all():
  patience = _patience(multiple=None)
  for group in ('step', 'save', 'startup'):
    assert patience.bound(group, median=1.0, num_steps=9) is None


@pytest.mark.parametrize(
    ('argument', 'value', 'told'),
    [
        ('multiple', 1.0, 'multiple is 1.0, expected above 1'),
        ('min_seconds', 0.0, 'min_seconds is 0.0, expected above 0'),
        ('phase_seconds', {'evalaute': 1.0}, "mean 'evaluate'.*expected"),
        ('phase_seconds', {'save': 0.0}, "'save' is 0.0, expected above 0"),
    ],
)
def test_what_no_bound_can_be_is_refused(argument, value, told):
  with pytest.raises(ValueError, match=told):
    _patience(**{argument: value})
