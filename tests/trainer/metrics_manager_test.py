# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The metrics manager: right numbers, and nobody waits for them."""

import logging
import threading
import time

from clu import metrics as clu_metrics
from clu import values as clu_values
import flax
import jax
import jax.numpy as jnp
import pytest

from t5wild.trainer import metric_values
from t5wild.trainer import metrics_manager
from t5wild.trainer import sinks as sinks_lib


@flax.struct.dataclass
class _PerStep(clu_metrics.Metric):
  total: jax.Array
  steps: int = 1

  def merge(self, other):
    return _PerStep(self.total + other.total, self.steps + other.steps)

  def replace_steps(self, steps):
    return self.replace(steps=steps)

  def compute(self):
    return self.total / self.steps


@flax.struct.dataclass
class _Rate(clu_metrics.Metric):
  numerator: jax.Array
  duration: float | None = None

  def merge(self, other):
    return _Rate(self.numerator + other.numerator)

  def replace_duration(self, duration):
    return self.replace(duration=duration)

  def compute(self):
    return self.numerator / self.duration


class _Recorder:
  def __init__(self):
    self.records, self.texts, self.threads = [], [], set()

  def write(self, records):
    self.threads.add(threading.current_thread().name)
    self.records += records

  def write_text(self, step, name, text):
    self.texts.append((step, name, text))

  def flush(self):
    pass

  def close(self):
    pass


def _metrics(loss=6.0, tokens=12):
  return {
      'loss': _PerStep(jnp.float32(loss)),
      'loss_per_nonpadding_target_token': clu_metrics.Average(
          total=jnp.float32(loss), count=jnp.int32(tokens)
      ),
      'timing/seqs_per_second': _Rate(jnp.float32(8)),
  }


@pytest.fixture
def recorder():
  return _Recorder()


@pytest.fixture
def manager(recorder):
  manager = metrics_manager.MetricsManager('train', sinks=[recorder], host=3)
  yield manager
  manager.close()


def test_metrics_of_steps_are_merged_and_finished_with_time_and_steps(
    manager, recorder
):
  values = manager.submit(
      4, [_metrics(6.0), _metrics(10.0)], num_steps=2, duration_seconds=4.0
  ).result()
  assert values['loss'] == 8.0
  assert values['loss_per_nonpadding_target_token'] == pytest.approx(16 / 24)
  assert values['timing/seqs_per_second'] == 4.0
  assert values['timing/nonpadding_target_tokens_per_second'] == 6.0
  names = {r.name: r for r in recorder.records}
  assert names['train/loss'].value == 8.0
  assert names['train/loss'].unit == 'nats'
  assert names['train/loss'].step == 4 and names['train/loss'].host == 3


def test_one_mapping_merged_on_the_device_gives_the_same_as_one_a_step(
    manager
):
  steps = [_metrics(6.0), _metrics(10.0)]
  merged = {k: steps[0][k].merge(steps[1][k]) for k in steps[0]}
  given = {'num_steps': 2, 'duration_seconds': 4.0}
  one = manager.submit(1, steps, **given).result()
  other = manager.submit(1, merged, **given).result()
  for name in steps[0]:
    assert one[name] == other[name]


def test_step_time_is_split_without_rest(recorder):
  cost = metrics_manager.StepCost(
      flops_per_step=1e9, peak_flops_per_second=2e9
  )
  manager = metrics_manager.MetricsManager(
      'train', sinks=[recorder], cost=cost
  )
  values = manager.submit(
      9,
      _metrics(),
      num_steps=5,
      duration_seconds=10.0,
      data_wait_seconds=1.0,
      other_seconds=2.0,
  ).result()
  manager.close()
  assert values['timing/step_seconds'] == 2.0
  assert values['timing/data_wait_seconds'] == pytest.approx(0.2)
  assert values['timing/other_seconds'] == pytest.approx(0.4)
  assert values['timing/device_seconds'] == pytest.approx(1.4)
  assert values['timing/model_flops_per_second'] == 0.5e9
  assert values['timing/mfu'] == 0.25


def test_no_mfu_without_a_known_peak(manager):
  manager.set_cost(metrics_manager.StepCost(flops_per_step=1e9))
  values = manager.submit(
      1,
      _metrics(),
      num_steps=1,
      duration_seconds=1.0,
      data_wait_seconds=0.0,
  ).result()
  assert 'timing/mfu' not in values
  assert values['timing/model_flops_per_second'] == 1e9


def test_duration_runs_from_the_started_timer_to_the_finished_metrics(
    manager
):
  time.sleep(0.05)
  manager.start_duration_timer()
  time.sleep(0.1)
  values = manager.submit(1, _metrics(), num_steps=1).result()
  seconds = 8 / values['timing/seqs_per_second']
  assert 0.1 <= seconds < 0.15 + 0.5  # a loaded machine may take longer


def test_submit_does_not_wait_for_the_device_or_a_sink(recorder):
  held = threading.Event()

  class _Slow(_Recorder):
    def write(self, records):
      held.wait(10)

  manager = metrics_manager.MetricsManager('train', sinks=[_Slow()])
  start = time.perf_counter()
  future = [manager.submit(i, _metrics(), num_steps=1) for i in range(3)][-1]
  assert time.perf_counter() - start < 1.0
  assert not future.done()
  held.set()
  manager.close()
  assert future.done()


def test_sinks_are_called_from_one_background_thread(manager, recorder):
  for step in range(3):
    manager.submit(step, _metrics(), num_steps=1, duration_seconds=1.0)
  manager.write_scalars(3, {'timing/compilation_seconds': 1.5})
  manager.flush()
  assert len(recorder.threads) == 1
  assert threading.current_thread().name not in recorder.threads
  assert [r.step for r in recorder.records if r.name == 'train/loss'] == [
      0, 1, 2,
  ]


def test_it_speaks_the_summary_writer_protocol(manager, recorder):
  writer = manager.summary_writer
  writer.write_texts(0, {'config': 'x = 1'})
  writer.write_scalars(5, {'a': jnp.float32(2), 'timing/init_seconds': 1})
  manager.write_scalar('b', 3.0, 6)
  manager.flush()
  assert recorder.texts == [(0, 'config', 'x = 1')]
  by_name = {r.name: (r.step, r.value, r.unit) for r in recorder.records}
  assert by_name['train/a'] == (5, 2.0, '')
  assert by_name['train/b'] == (6, 3.0, '')
  assert by_name['train/timing/init_seconds'] == (5, 1.0, 'seconds')


def test_extra_values_keep_their_unit(manager, recorder):
  manager.submit(
      1,
      _metrics(),
      num_steps=1,
      duration_seconds=1.0,
      extra={'queue': (3.0, 'batches')},
  ).result()
  record = next(r for r in recorder.records if r.name == 'train/queue')
  assert (record.value, record.unit) == (3.0, 'batches')


def test_a_sink_whose_disk_is_full_stops_nothing_and_is_told_once(
    recorder, caplog
):
  class _Full(_Recorder):
    def write(self, records):
      raise OSError(28, 'No space left on device')

  caplog.set_level(logging.ERROR)
  manager = metrics_manager.MetricsManager('train', sinks=[_Full(), recorder])
  for step in range(3):
    manager.submit(step, _metrics(), num_steps=1, duration_seconds=1.0)
  manager.flush()
  manager.close()
  assert len([r for r in recorder.records if r.name == 'train/loss']) == 3
  assert caplog.text.count('No space left') == 1


def test_an_error_in_a_report_comes_out_of_its_future_and_of_flush(manager):
  class _Broken(_PerStep):
    def compute(self):
      raise ZeroDivisionError

  broken = {'loss': _Broken(jnp.float32(1))}
  future = manager.submit(1, broken, num_steps=1)
  with pytest.raises(ZeroDivisionError):
    future.result()
  with pytest.raises(ZeroDivisionError):
    manager.flush()
  manager.flush()  # told once


def test_metrics_that_were_donated_since_are_not_waited_for():
  donated = jnp.ones(3)
  jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
  metrics_manager._wait({'x': donated})


def test_packed_examples_are_counted_inside_rows(manager):
  metrics = _metrics() | {
      'effective_batch_size/targets': _PerStep(jnp.float32(40)),
      'non_padding_fraction/overall': clu_metrics.Average(
          total=jnp.float32(90), count=jnp.float32(100)
      ),
  }
  values = manager.submit(
      1, metrics, num_steps=1, duration_seconds=2.0
  ).result()
  assert values['timing/examples_per_second'] == 20.0
  assert values['timing/nonpadding_tokens_per_second'] == 45.0


@pytest.mark.parametrize(
    ('name', 'unit'),
    [
        ('loss', 'nats'),
        ('z_loss', 'nats'),
        (sinks_lib.LOSS, 'nats/token'),
        ('timing/seconds', 'seconds'),
        ('timing/target_tokens_per_second_per_core', 'tokens/second'),
        ('timing/steps_per_second', 'steps/second'),
        ('memory/device_peak_bytes', 'bytes'),
        ('timing/model_flops_per_second', 'FLOP/second'),
        ('accuracy', ''),
        ('timing/mfu', ''),
    ],
)
def test_units_follow_from_names(name, unit):
  assert metric_values.unit_of(name) == unit


def test_a_summary_dir_holds_events_of_the_collection_once_closed(tmp_path):
  manager = metrics_manager.MetricsManager('eval', str(tmp_path))
  assert manager.summary_dir == str(tmp_path / 'eval')
  manager.write_scalar('loss', 1.0, 3)
  manager.flush()
  manager.close()
  assert len(list((tmp_path / 'eval').iterdir())) == 1


def test_t5x_summary_has_the_values_of_the_metrics_handed_in(manager):
  summary = manager.write_metrics_summary(
      {'loss': _PerStep(jnp.asarray(40.0))}, step=4, num_steps=2
  ).result()
  assert {name: value.value for name, value in summary.items()} == {
      'loss': 20.0
  }


@flax.struct.dataclass
class _Text(clu_metrics.Metric):
  def compute_value(self):
    return clu_values.Text('words')


def test_a_metric_may_be_a_text(manager, recorder):
  report = manager.submit(
      4, {'loss': _PerStep(jnp.asarray(4.0)), 'sample': _Text()}, num_steps=2
  ).result()
  assert report['loss'] == 2.0
  assert 'sample' not in report
  assert recorder.texts == [(4, 'sample', 'words')]
