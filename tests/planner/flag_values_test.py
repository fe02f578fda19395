# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What only minutes later would be found wrong is refused at the start."""

import math

import pytest

from t5wild import exit_codes
from t5wild.planner import flag_values
from t5wild.planner import plan


@pytest.mark.parametrize('value', [-3.0, 0.0, math.nan, math.inf])
def test_only_numbers_above_zero_are_prices_and_times(value):
  with pytest.raises(ValueError, match='--price=.*\nExpected a number above 0'):
    flag_values.check_above_zero('price', value, example='2.5')


def test_a_flag_that_is_not_given_is_no_mistake():
  flag_values.check_above_zero('price', None, example='2.5')
  flag_values.check_folder('output_dir', None)
  flag_values.check_file('plan_gin', None)


def test_a_place_is_tried_and_nothing_is_left_there(tmp_path):
  flag_values.check_folder('output_dir', str(tmp_path / 'a/b'))
  flag_values.check_file('plan_gin', str(tmp_path / 'a/plan.gin'))
  assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_made_is_refused(tmp_path):
  file = tmp_path / 'file'
  file.touch()
  for place in (file / 'a', '/dev/null/a', 'gs://bucket/a'):
    with pytest.raises(ValueError, match=f'--output_dir={place} cannot be'):
      flag_values.check_folder('output_dir', str(place))
  with pytest.raises(ValueError, match='cannot be written'):
    flag_values.check_file('plan_gin', str(file / 'plan.gin'))
  with pytest.raises(ValueError, match='is a folder'):
    flag_values.check_file('plan_gin', str(tmp_path))


@pytest.mark.parametrize(
    ('flag', 'told'),
    [
        ('--price_per_device_hour=-3', '--price_per_device_hour=-3.'),
        ('--confirm_timeout_seconds=0', '--confirm_timeout_seconds=0.'),
        ('--plan_gin=/dev/null/plan.gin', 'cannot be written'),
    ],
)
def test_plan_refuses_them_before_it_reads_the_recipe(flag, told, capsys):
  code = plan.run([
      't5wild plan', '--devices=h100:8', '--gin_file=no_such.gin', flag
  ])  # fmt: skip
  assert code == exit_codes.BAD_CONFIG.code
  assert told in capsys.readouterr().err
