# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The picture's numbers are read without sums, and its words stay inside."""

import pytest

from t5wild.reports import money_table
from t5wild.reports import picture

pyplot = pytest.importorskip('matplotlib.pyplot')


@pytest.fixture
def axes():
  figure, made = pyplot.subplots(figsize=(6, 2.7))
  yield made
  pyplot.close(figure)


def _labels(axis, which='major'):
  axis.figure.canvas.draw()
  ticks = axis.get_majorticklabels if which == 'major' else (
      axis.get_minorticklabels
  )
  return [label.get_text() for label in ticks() if label.get_text()]


@pytest.mark.parametrize(
    ('hours', 'unit'), [(0.01, 'seconds'), (0.5, 'minutes'), (30.0, 'hours')]
)
def test_the_bar_of_times_has_a_unit_that_suits_and_its_words_inside(
    axes, hours, unit
):
  rows = [
      money_table.Row(
          label=label, hours=hours / 12, share=1 / 12, money=None,
          colour='red',
      )
      for label in ['waiting for data'] * 11
      + ['restoring, or looking for what to restore']
  ]  # fmt: skip
  picture._draw_time(axes, rows)
  assert axes.get_xlabel() == unit
  axes.figure.canvas.draw()
  outside = axes.get_window_extent()
  legend = axes.get_legend().get_window_extent()
  assert legend.x1 <= outside.x1 and legend.y0 >= outside.y0
  bar = max(patch.get_window_extent().y1 for patch in axes.patches)
  assert legend.y0 > bar - 1


@pytest.mark.parametrize(
    ('values', 'told'),
    [((1.33118e9, 1.33184e9), 'G'), ((542e6, 552e6), 'M'), ((0.01, 0.02), '0')],
)
def test_numbers_stand_alone_on_their_axis(axes, values, told):
  axes.plot([0, 1], values)
  picture._number(axes)
  labels = _labels(axes.yaxis)
  assert all(told in label for label in labels[1:-1])
  assert not axes.yaxis.get_offset_text().get_text()


def test_a_short_logarithmic_axis_has_plain_numbers_too(axes):
  axes.plot([0, 1], (420, 650))
  axes.set_yscale('log')
  picture._number(axes)
  assert {'500', '600'} <= set(_labels(axes.yaxis, 'minor'))
