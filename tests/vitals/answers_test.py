# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Answers that make no sense are refused with the argument's name."""

import pytest

from t5wild.vitals import answers


def test_by_default_a_run_goes_on():
  default = answers.Answers()
  assert not default.may_rewind
  for kind in (answers.LOSS_SPIKE, answers.GRADIENT_SPIKE, answers.NOT_FINITE,
               answers.PLATEAU):  # fmt: skip
    assert default.to(kind) == answers.GO_ON


@pytest.mark.parametrize(
    ('changes', 'told'),
    [
        ({'loss_spike': 'rewnd'}, "did you mean 'rewind'"),
        ({'gradient_spike': 'skip'}, 'trainer.Trainer.update_guard'),
        ({'not_finite': None}, 'answers.Answers.not_finite'),
        ({'plateau': 'rewind'}, "'go_on', 'stop'"),
        ({'loss': 8.0}, 'loss/spikes.Sensitivity'),
        ({'max_rewinds': 0}, 'answers.Answers.max_rewinds'),
        ({'max_rewinds': True}, 'answers.Answers.max_rewinds'),
        ({'rewind_budget_steps': 1.5}, 'answers.Answers.rewind_budget_steps'),
        ({'healthy_after_steps': 0}, 'answers.Answers.healthy_after_steps'),
        ({'pass_over_before': -1}, 'answers.Answers.pass_over_before'),
        ({'plateau_steps': 1}, 'answers.Answers.plateau_steps'),
        ({'plateau_improvement': 1.0}, 'plateau_improvement'),
        ({'passed_over_batches': [(3, 2)]}, r'\[\(17, 18\)\]'),
        ({'passed_over_batches': [(0, 2)]}, 'counted from 1'),
        ({'passed_over_batches': [17]}, 'two batches'),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(changes, told):
  with pytest.raises(ValueError, match=rf'(?s)of Answers.*expected.*{told}'
                     if 'mean' not in told else told):  # fmt: skip
    answers.Answers(**changes)
