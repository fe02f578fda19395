# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls by gin without an argument that they need."""

import gin
import pytest

from t5wild import gin_utils


def _complaint(make) -> str:
  with pytest.raises(TypeError) as caught:
    make()
  return gin_utils.explain_missing_arguments(str(caught.value))


@pytest.mark.parametrize('scope', ['', 'stage1/'])
def test_a_missing_argument_is_told_with_the_line_to_add(scope, toy):
  gin.parse_config(
      'from __gin__ import dynamic_registration\n'
      'import t5wild_toy as toy\n'
      'toy.train.model = @toy.Model()\n'
      f'toy.train.fn = @{scope}toy.strict()\n'
  )
  said = _complaint(gin.get_configurable(toy.train))
  assert f'@{scope}strict()' in said
  assert "without ['steps']" in said
  assert f'    {scope}strict.steps = ...' in said


def test_other_errors_of_a_call_stay_as_they_are(toy):
  gin.parse_config(
      'from __gin__ import dynamic_registration\n'
      'import t5wild_toy as toy\n'
      'toy.strict.steps = 1\n'
  )
  with pytest.raises(TypeError) as caught:
    gin.get_configurable(toy.strict)(other=1)
  assert 'In call to configurable' in str(caught.value)
  assert gin_utils.explain_missing_arguments(str(caught.value)) is None
