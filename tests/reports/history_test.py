# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run's numbers, from records or from TensorBoard's event files."""

import subprocess
import sys

import pytest

from t5wild.reports import contents as contents_lib
from t5wild.reports import event_files
from t5wild.reports import history as history_lib
from t5wild.vitals import records as records_lib
from tests.reports import made_runs


def _write_events(folder, tags, *, steps=5, texts=()):
  """Event files as T5X's clu and MaxText's tensorboardX write them."""
  writer_lib = pytest.importorskip('tensorboardX')
  writer = writer_lib.SummaryWriter(str(folder))
  for step in range(steps):
    for tag in tags:
      writer.add_scalar(tag, 5.0 - step, step, walltime=1e9 + step)
  for tag, text in texts:
    writer.add_text(tag, text, 3, walltime=1e9)
  writer.close()
  (path,) = folder.iterdir()
  return path


def test_of_a_step_passed_twice_the_later_record_counts(tmp_path):
  faults = made_runs.Faults(killed_steps=(500,), resumed_steps=(300,))
  made_runs.make_run(tmp_path, faults=faults)
  history = history_lib.read_history(str(tmp_path))
  series = history.series(made_runs.LOSS)
  expected = records_lib.series(
      records_lib.read_records(tmp_path / 'metrics.jsonl'), made_runs.LOSS
  )
  assert series.steps.tolist() == [record.step for record in expected]
  assert series.values.tolist() == [record.value for record in expected]


def test_a_run_that_resumed_and_goes_on_is_where_its_newest_process_is(
    tmp_path,
):
  faults = made_runs.Faults(
      killed_steps=(500,), resumed_steps=(300,), is_cut=True
  )
  made_runs.make_run(tmp_path, num_steps=400, period=10, faults=faults)
  assert history_lib.read_history(str(tmp_path)).last_step == 400


@pytest.mark.parametrize('cut', range(0, 4000, 397))
def test_a_run_cut_off_anywhere_has_a_report(tmp_path, cut):
  made_runs.make_run(tmp_path, num_steps=100)
  path = tmp_path / 'metrics.jsonl'
  data = path.read_bytes()[: cut + 100]
  path.write_bytes(data)
  for name in ('config.gin', 'operative_config.gin', 'model-info.txt'):
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: cut % len(whole)])
  if b'\n' not in data:
    with pytest.raises(history_lib.NoRunError, match='no records in'):
      contents_lib.read_contents(str(tmp_path))
    return
  contents = contents_lib.read_contents(str(tmp_path))
  assert 'broken off' in contents.state
  assert contents.missing


def test_records_just_written_are_of_a_run_that_goes_on(tmp_path):
  made_runs.make_run(tmp_path, faults=made_runs.Faults(is_cut=True))
  operative = tmp_path / 'operative_config.gin'
  operative.write_text('TRAIN_STEPS = 5000\n')
  last = history_lib.read_history(str(tmp_path)).last_seconds
  contents = contents_lib.read_contents(str(tmp_path), now=last + 5)
  assert contents.is_running
  assert contents.state == 'running: step 1,000 of 5,000, last record 5 s ago'
  later = contents_lib.read_contents(str(tmp_path), now=last + 3600)
  assert not later.is_running
  assert 'broken off or hanging' in later.state


def test_t5x_event_files_make_a_report(tmp_path):
  loss = records_lib.LOSS
  _write_events(tmp_path / 'train', [loss, 'learning_rate', 'accuracy'])
  _write_events(tmp_path / 'training_eval' / 'my_task', [loss, 'accuracy'])
  _write_events(
      tmp_path / 'inference_eval' / 'my_task', ['bleu'],
      texts=[('inferences', 'what it **wrote**')],
  )  # fmt: skip
  contents = contents_lib.read_contents(str(tmp_path))
  by_key = {panel.key: panel for panel in contents.panels}
  names = [line.name for line in by_key['loss'].lines]
  assert names == [f'train/{loss}', f'training_eval/my_task/{loss}']
  assert by_key['loss'].lines[0].curve.values.tolist() == [5, 4, 3, 2, 1]
  titles = {panel.title for panel in contents.panels}
  assert {'Held-out accuracy', 'Held-out bleu', 'Learning rate'} <= titles
  (sample,) = contents.texts.samples
  assert sample.step == 3
  assert 'what it **wrote**' in next(iter(sample.texts.values()))


def test_maxtext_event_files_make_a_report(tmp_path):
  tags = [
      'learning/loss', 'learning/grad_norm', 'learning/current_learning_rate',
      'perf/step_time_seconds', 'perf/per_device_tflops_per_sec',
      'perf/per_device_tokens_per_sec',
  ]  # fmt: skip
  _write_events(tmp_path / 'tensorboard' / 'my_run', tags)
  found = {}
  for path in (tmp_path, tmp_path / 'tensorboard' / 'my_run'):
    contents = contents_lib.read_contents(str(path))
    found[path] = {panel.key for panel in contents.panels}
    assert found[path] >= {
        'loss', 'gradient_norm', 'learning_rate', 'step_seconds', 'mfu',
        'throughput',
    }, path  # fmt: skip


def test_a_folder_of_several_runs_is_told_their_names(tmp_path):
  for name in ('one', 'two'):
    _write_events(tmp_path / name / 'train', ['loss'])
  with pytest.raises(history_lib.NoRunError, match='several runs.*one.*two'):
    history_lib.read_history(str(tmp_path))


def test_an_event_file_that_ends_in_an_event_gives_what_stands_before(tmp_path):
  path = _write_events(tmp_path / 'train', ['loss'])
  path.write_bytes(path.read_bytes()[:-7])
  events = event_files.read_events(str(tmp_path))
  assert events.num_torn_files == 1
  assert events.by_name['train/loss'].steps.tolist() == [0, 1, 2, 3]


def test_event_files_are_read_without_tensorflow(tmp_path):
  _write_events(tmp_path / 'train', ['loss'])
  code = (
      'import sys; from t5wild.reports import event_files;'
      f'event_files.read_events({str(tmp_path)!r});'
      'sys.exit("tensorflow" in sys.modules)'
  )
  subprocess.run([sys.executable, '-c', code], check=True)


def test_no_run_is_told_with_the_runs_beside_it(tmp_path):
  made_runs.make_run(tmp_path / 'there', num_steps=100)
  with pytest.raises(history_lib.NoRunError) as error:
    history_lib.read_history(str(tmp_path / 'their'))
  for part in ('no run at', 'expected:', 'do:', str(tmp_path / 'there')):
    assert part in str(error.value)


@pytest.mark.parametrize('name', ['', 'notes.txt'])
def test_a_folder_without_records_is_told_with_what_it_holds(tmp_path, name):
  if name:
    (tmp_path / name).write_text('x')
  with pytest.raises(history_lib.NoRunError, match=name or 'it is empty'):
    history_lib.read_history(str(tmp_path))


def test_a_bucket_is_told_how_to_copy_it():
  with pytest.raises(history_lib.NoRunError, match='in a bucket'):
    history_lib.read_history('gs://bucket/run')
