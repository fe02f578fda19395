# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs held against one another."""

import json
import pathlib

import numpy as np
import pytest

from t5wild import exit_codes
from t5wild import run_dir as run_dir_lib
from t5wild.reports import alignment
from t5wild.reports import compare
from t5wild.reports import comparison as comparison_lib
from t5wild.reports import history as history_lib
from t5wild.reports import setting_differences
from t5wild.reports import verdict
from t5wild.vitals import environment
from t5wild.vitals import records as records_lib
from tests.reports import chromium
from tests.reports import made_runs


def _runs(*paths, price=None):
  names = comparison_lib.names_of([str(path) for path in paths])
  return [
      comparison_lib.read_run(
          str(path), name=name, price_per_device_hour=price
      )
      for path, name in zip(paths, names, strict=True)
  ]


def _change(path, *, from_step, factor, name=made_runs.LOSS):
  """Multiplies a run's records of a name from a step on."""
  file = pathlib.Path(path) / 'metrics.jsonl'
  lines = []
  for record in records_lib.read_records(file):
    fields = {f: getattr(record, f) for f in record.__dataclass_fields__}
    if record.name == name and record.step >= from_step:
      fields['value'] *= factor
    lines.append(records_lib.to_line(records_lib.Record(**fields)))
  file.write_text(''.join(lines))


def _set(path, **values):
  """Changes values in both configuration files."""
  for name in ('config.gin', 'operative_config.gin'):
    file = pathlib.Path(path) / name
    text = file.read_text()
    for key, value in values.items():
      text += f'{key.replace("__", ".")} = {value}\n'
    file.write_text(text)


def _twins(tmp_path, *, seed=0):
  for name, number in (('a', 0), ('b', seed)):
    made_runs.make_run(tmp_path / name, seed=number)
  return tmp_path / 'a', tmp_path / 'b'


def test_the_same_run_is_the_same_bit_for_bit(tmp_path):
  comparison = comparison_lib.compare(_runs(*_twins(tmp_path)))
  assert all(curve.first_step is None for curve in comparison.curves)
  assert {d.kind for d in comparison.differences} == {'place'}
  told = verdict.verdict(comparison)[0]
  assert 'bit for bit, at all 100 common steps' in told


@pytest.mark.parametrize(
    ('step', 'size'), [(10, 1e-12), (500, 1e-5), (730, 3.0)]
)
def test_the_first_step_that_differs_is_found_with_its_size(
    tmp_path, step, size
):
  a, b = _twins(tmp_path)
  _change(b, from_step=step, factor=1 + size)
  comparison = comparison_lib.compare(_runs(a, b))
  (loss,) = [c for c in comparison.curves if c.metric == made_runs.LOSS]
  assert loss.first_step == step
  assert loss.largest == pytest.approx(size / (1 + size), rel=1e-3)
  for level in comparison_lib.LEVELS:
    is_beyond = size / (1 + size) > level
    assert loss.beyond.get(level) == (step if is_beyond else None)
  told = verdict.verdict(comparison)[0]
  assert f'first at step {step}, in train/loss' in told


def test_nan_against_a_number_is_the_largest_difference(tmp_path):
  a, b = tmp_path / 'a', tmp_path / 'b'
  made_runs.make_run(a)
  made_runs.make_run(b, faults=made_runs.Faults(nan_step=700))
  comparison = comparison_lib.compare(_runs(a, b))
  told = verdict.verdict(comparison)[0]
  assert 'first at step 700' in told
  assert 'not finite' in told


@pytest.mark.parametrize(
    ('kind', 'size', 'is_expected'),
    [
        ('mesh', 1e-7, True), ('mesh', 1e-2, False),
        ('dtype', 1e-3, True), ('model', 1e-7, None),
    ],
)  # fmt: skip
def test_the_verdict_tells_what_arithmetic_explains(
    tmp_path, kind, size, is_expected
):
  a, b = _twins(tmp_path)
  _change(b, from_step=10, factor=1 + size)
  if kind == 'mesh':
    info = b / 'model-info.txt'
    info.write_text(info.read_text().replace('data 4', 'data 2'))
  elif kind == 'dtype':
    _set(a, network__T5Config__dtype="'float32'")
    _set(b, network__T5Config__dtype="'bfloat16'")
  else:
    _set(a, network__T5Config__emb_dim=128)
    _set(b, network__T5Config__emb_dim=256)
  text = ' '.join(verdict.verdict(comparison_lib.compare(_runs(a, b))))
  assert ('expected from arithmetic' in text) == (is_expected is True)
  assert ('more than arithmetic explains' in text) == (is_expected is False)
  # What is explained is not called unknown in the next sentence.
  assert ('is not known without runs' in text) == (is_expected is not True)


@pytest.mark.parametrize('place', [0, 1, 2])
def test_a_run_of_another_task_is_left_out_with_a_sentence(
    tmp_path, capsys, place
):
  paths = list(_twins(tmp_path, seed=1))
  other = tmp_path / 'other'
  other.mkdir()
  (other / 'metrics.jsonl').write_text(
      records_lib.to_line(records_lib.Record(1, 2.0, 0, 'x/y', 3.0))
  )
  paths.insert(place, other)
  flags = ['--format=html,md,json', f'--output={tmp_path}/out']
  assert compare.main([*map(str, paths), *flags]) == exit_codes.DONE.code
  out = capsys.readouterr().out
  assert out.startswith('other is left out: it has no metric at a common step')
  assert 'b differs from a first at step 10' in out
  value = json.loads((tmp_path / 'out.json').read_text())
  assert [run['name'] for run in value['runs']] == ['a', 'b']
  assert 'tokens per unit of money' in (tmp_path / 'out.md').read_text()


def test_differences_come_most_telling_first(tmp_path):
  a, b = _twins(tmp_path)
  for path, size, seed in ((a, 128, 0), (b, 256, 1)):
    _set(
        path, network__T5Config__emb_dim=size, RANDOM_SEED=seed,
        train_script__train__stats_period=seed + 5,
    )  # fmt: skip
    environment.write(
        run_dir_lib.RunDir(str(path)),
        devices=['TPU v5e'] if path == a else ['H100'], num_processes=1,
    )  # fmt: skip
  kinds = [d.kind for d in comparison_lib.compare(_runs(a, b)).differences]
  assert kinds[0] == 'model'
  assert kinds == sorted(kinds, key=setting_differences.ORDER.index)
  assert {'seed', 'hardware', 'watching', 'place'} <= set(kinds)


def test_more_of_the_same_devices_is_parallelism_and_no_other_hardware(
    tmp_path,
):
  a, b = _twins(tmp_path)
  for path, number in ((a, 1), (b, 4)):
    environment.write(
        run_dir_lib.RunDir(str(path)), devices=['cpu'] * number,
        num_processes=1,
    )  # fmt: skip
  found = comparison_lib.compare(_runs(a, b)).differences
  assert {d.name: d.kind for d in found}['devices.cpu'] == 'parallelism'


def test_an_argument_that_newer_code_has_is_a_difference_of_code(tmp_path):
  a, b = _twins(tmp_path)
  for name, line in (
      ('operative_config.gin', 'network.T5Config.new_argument = None\n'),
      ('config.gin', ''),
  ):
    file = b / name
    file.write_text(file.read_text() + line)
  found = comparison_lib.compare(_runs(a, b)).differences
  kinds = {d.name: d.kind for d in found}
  assert kinds['network.T5Config.new_argument'] == 'code'


def test_noise_is_judged_by_runs_that_differ_in_their_seed_alone(tmp_path):
  for name, seed in (('a', 0), ('b', 1), ('c', 2), ('other', 3)):
    made_runs.make_run(tmp_path / name, seed=seed)
    _set(tmp_path / name, RANDOM_SEED=seed)
  _set(tmp_path / 'other', adafactor__Adafactor__decay_rate=0.9)
  _change(
      tmp_path / 'other', from_step=0, factor=1.5, name=made_runs.HELD_OUT_LOSS
  )
  paths = [tmp_path / name for name in ('a', 'b', 'c', 'other')]
  comparison = comparison_lib.compare(_runs(*paths))
  noise = verdict.noise_of(comparison)
  assert noise.runs == ['a', 'b', 'c']
  text = ' '.join(verdict.verdict(comparison))
  assert 'more than noise' in text
  assert 'standard deviations of 3 seeds' in text
  alone = comparison_lib.compare(_runs(paths[0], paths[3]))
  assert 'not known without runs' in ' '.join(verdict.verdict(alone))


def test_speed_is_told_by_device_and_by_money(tmp_path):
  a, b = _twins(tmp_path)
  rate = 'train/timing/nonpadding_tokens_per_second'
  _change(b, from_step=0, factor=2.0, name=rate)
  info = b / 'model-info.txt'
  info.write_text(info.read_text().replace('data 4', 'data 16'))
  first, second = comparison_lib.compare(_runs(a, b, price=2.0)).speeds
  assert second.tokens_per_second == pytest.approx(2 * first.tokens_per_second)
  assert second.tokens_per_second_per_device == pytest.approx(
      first.tokens_per_second_per_device / 2
  )
  assert second.tokens_per_money == pytest.approx(first.tokens_per_money / 2)


def test_places_by_tokens_hours_and_money_agree_with_the_made_run(tmp_path):
  made_runs.make_run(tmp_path)
  history = history_lib.read_history(str(tmp_path))
  steps = np.array([100, 1000])
  tokens = alignment.places(history, steps, axis='tokens')
  np.testing.assert_allclose(tokens, 65536 * steps)
  hours = alignment.places(history, steps, axis='hours')
  np.testing.assert_allclose(hours, 0.53 * steps / 3600, rtol=0.05)
  money = alignment.places(history, steps, axis='money', money_an_hour=7.0)
  np.testing.assert_allclose(money, 7 * hours)
  with pytest.raises(alignment.NoAxisError, match='tells no price'):
    alignment.places(history, steps, axis='money')


def test_names_tell_runs_apart():
  assert comparison_lib.names_of(['x/a', 'x/b']) == ['a', 'b']
  assert comparison_lib.names_of(['/x/run', '/y/run']) == ['x/run', 'y/run']
  assert comparison_lib.names_of(['/r', '/r']) == ['/r (1)', '/r (2)']


def test_all_formats_are_written_and_say_the_same(tmp_path, capsys):
  a, b = _twins(tmp_path, seed=1)
  flags = ['--format=html,md,json', f'--output={tmp_path}/out/both']
  assert compare.main([str(a), str(b), *flags]) == exit_codes.DONE.code
  out = capsys.readouterr().out
  value = json.loads((tmp_path / 'out' / 'both.json').read_text())
  text = (tmp_path / 'out' / 'both.md').read_text()
  page = (tmp_path / 'out' / 'both.html').read_text()
  for line in value['verdict']:
    assert line in out and line in text
  assert value['curves'][0]['first_step'] == 10
  assert 'abcdefghijk' not in page + text + json.dumps(value)


@pytest.mark.parametrize('by', alignment.AXES)
def test_a_browser_draws_the_page_without_a_complaint(tmp_path, by):
  pytest.importorskip('plotly')
  if chromium.program() is None:
    pytest.skip('there is no Chromium on this machine')
  a, b = _twins(tmp_path, seed=1)
  output = str(tmp_path / 'page')
  flags = [f'--by={by}', f'--output={output}', '--price_per_device_hour=1,2']
  assert compare.main([str(a), str(b), *flags]) == exit_codes.DONE.code
  with chromium.started() as browser:
    for width, is_phone in ((1280, False), (390, True)):
      browser.open(
          f'{output}.html', width=width, height=844, is_dark=is_phone,
          is_phone=is_phone,
      )  # fmt: skip
      names = browser.value_of(
          "document.getElementById('plot-loss').data.map(t => t.name)"
      )
      assert {'a', 'b'} <= set(names)
      wide = browser.value_of('document.documentElement.scrollWidth')
      assert wide <= width
    assert not browser.complaints


@pytest.mark.parametrize(
    ('flags', 'told'),
    [
        (['RUN', '/no/such/run'], 'There is no run at'),
        (['RUN', 'OTHER'], 'have no metric at a common step'),
        (['RUN', 'RUN', '--by=money'], 'tells no price'),
        (['RUN', 'RUN', '--format=png'], "no format 'png'"),
        (['RUN', 'RUN', '--price_per_device_hour=1,2,3'], '3 prices for 2'),
    ],
)
def test_bad_input_is_answered_in_three_parts(tmp_path, capsys, flags, told):
  made_runs.make_run(tmp_path / 'run', num_steps=100)
  other = tmp_path / 'other'
  other.mkdir()
  (other / 'metrics.jsonl').write_text(
      records_lib.to_line(records_lib.Record(1, 2.0, 0, 'x/y', 3.0))
  )
  paths = {'RUN': str(tmp_path / 'run'), 'OTHER': str(other)}
  flags = [paths.get(flag, flag) for flag in flags]
  flags.append(f'--output={tmp_path}/out')
  assert compare.main(flags) == exit_codes.BAD_CONFIG.code
  error = capsys.readouterr().err
  assert told in error
  assert 'expected:' in error and 'do:' in error


def test_one_run_alone_is_refused_and_told_of_the_report(tmp_path, capsys):
  with pytest.raises(SystemExit) as end:
    compare.main([str(tmp_path)])
  assert end.value.code == exit_codes.BAD_CONFIG.code
  assert 't5wild report' in capsys.readouterr().err
