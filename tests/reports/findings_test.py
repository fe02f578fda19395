# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Known faults are found, where they are, and a sound run has none."""

import numpy as np
import pytest

from t5wild.reports import episodes
from t5wild.reports import findings
from t5wild.reports import history as history_lib
from t5wild.vitals import records as records_lib
from tests.reports import made_runs


def _found(path, faults=None, **kwargs):
  made_runs.make_run(path, faults=faults, **kwargs)
  return findings.find(history_lib.read_history(str(path)))


def _texts(found):
  return '\n'.join(finding.text for finding in found)


@pytest.mark.parametrize('seed', range(8))
def test_a_sound_run_has_no_findings(tmp_path, seed):
  assert not _found(tmp_path, num_steps=3000, seed=seed)


@pytest.mark.parametrize('step', [120, 500, 990])
def test_a_spike_is_found_where_it_is(tmp_path, step):
  found = _found(tmp_path, made_runs.Faults(spike_step=step))
  assert {finding.step for finding in found} == {step}
  assert 'training loss jumps' in _texts(found)


def test_a_spike_says_which_number_is_of_one_step_and_which_a_mean():
  steps = np.arange(5, 205, 5)
  values = np.full(40, 3.0)
  values[20] = 5.9
  column = history_lib.Column(
      name=made_runs.LOSS, unit='', steps=steps, seconds=steps * 1.0,
      values=values,
  )  # fmt: skip
  seen = records_lib.Record(103, 102.5, 0, 'vitals/loss_spike', 7.4)

  def found(*events):
    history = history_lib.History(
        'x', {column.name: column}, 'records', events=events
    )
    return findings.find(history)[0]

  mean = found()
  assert mean.step == 105
  assert 'jumps to 5.9 in the mean of steps 101-105 (before' in mean.text
  exact = found(seen)
  assert (exact.step, exact.seconds) == (103, 102.5)
  assert 'jumps to 7.4 at step 103 (the curve shows means: 5.9 for steps '\
      '101-105; before' in exact.text
  # The timeline has the run's own event, and not the same once more.
  assert not exact.events and mean.events


def test_nan_is_found_at_its_first_step_and_comes_first(tmp_path):
  found = _found(tmp_path, made_runs.Faults(nan_step=700, spike_step=300))
  assert found[0].level == 'bad'
  assert found[0].step == 700
  assert 'NaN from step 691-700 on, and stay so to the end' in found[0].text


def test_restarts_are_counted_with_what_was_done_twice(tmp_path):
  faults = made_runs.Faults(killed_steps=(440, 700), resumed_steps=(400, 600))
  found = _found(tmp_path, faults)
  assert 'again 2 times, from step 400, 600; 140 updates' in _texts(found)
  history = history_lib.read_history(str(tmp_path))
  assert [start.num_steps_again for start in history.starts] == [0, 40, 100]


def test_a_slow_part_is_found_with_its_cause(tmp_path):
  found = _found(tmp_path, made_runs.Faults(slow_steps=(500, 700)))
  (slow,) = [each for each in found if 'Throughput' in each.text]
  assert slow.step == 500
  assert 'from step 500 to 700' in slow.text
  assert 'waiting for data' in slow.text


def test_divergence_is_told_with_its_turning_point(tmp_path, monkeypatch):
  def turning(step):
    return 3.0 - 0.002 * step if step <= 600 else 1.8 + 0.004 * (step - 600)

  monkeypatch.setattr(made_runs, 'loss_at', turning)
  found = _found(tmp_path)
  (diverged,) = [each for each in found if 'diverges' in each.text]
  # Of a median of 21 records, to half of them, 10 steps each.
  assert abs(diverged.step - 600) <= 105
  held_out = [each for each in found if 'held-out loss of my_task' in each.text]
  assert held_out[0].step == 600


def test_a_silence_is_told_with_its_length():
  steps = np.arange(100)
  seconds = np.arange(100) * 5.0 + 7200.0 * (steps >= 60)
  column = history_lib.Column(
      name='train/loss', unit='', steps=steps, seconds=seconds,
      values=np.ones(100),
  )  # fmt: skip
  history = history_lib.History('x', {'train/loss': column}, 'records')
  (finding,) = findings.find(history)
  assert '2 h 0 min after step 59' in finding.text


def test_a_long_evaluation_is_no_silence():
  steps = np.arange(100)
  seconds = np.arange(100) * 5.0 + 7200.0 * (steps >= 60)
  loss = history_lib.Column(
      name='train/loss', unit='', steps=steps, seconds=seconds,
      values=np.ones(100),
  )  # fmt: skip
  took = history_lib.Column(
      name='eval/x/timing/evaluate_seconds', unit='', steps=np.array([59]),
      seconds=np.array([7499.0]), values=np.array([7200.0]),
  )  # fmt: skip
  columns = {column.name: column for column in (loss, took)}
  assert not findings.find(history_lib.History('x', columns, 'records'))


def test_growing_memory_is_told():
  steps = np.arange(100)
  column = history_lib.Column(
      name='train/memory/host_peak_bytes', unit='bytes', steps=steps,
      seconds=steps * 1.0, values=2e9 + 1e8 * steps,
  )  # fmt: skip
  history = history_lib.History('x', {column.name: column}, 'records')
  assert 'Memory of the host grows' in _texts(findings.find(history))


def test_spikes_of_noise_alone_are_rare():
  draw = np.random.default_rng(0)
  values = 2.0 + 0.05 * draw.normal(size=100_000)
  # 8 deviations as the median absolute deviation of 31 values tells them: at
  # most one in 10,000 of Gaussian noise.
  assert len(episodes.spikes(np.arange(100_000), values)) < 10


@pytest.mark.parametrize(
    ('seconds', 'text'),
    [(3.2, '3.2 s'), (60, '1 min'), (250, '4 min 10 s'), (18720, '5 h 12 min'),
     (200000, '2 d 7 h')],
)  # fmt: skip
def test_durations_read_as_people_say_them(seconds, text):
  assert findings.duration(seconds) == text
