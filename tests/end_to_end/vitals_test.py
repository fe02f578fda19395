# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Bad data in a file: found, answered as asked, and exactly that left out.

Real processes; the losses of each are those of a run that never saw the bad
batches, bit for bit.
"""

import json
import pathlib

import numpy as np
import pytest

from t5wild import exit_codes
from t5wild.checkpoint_files import health
from t5wild.data import ledger
from t5wild.vitals import records
from tests import multiprocess
from tests.data import caches
from tests.end_to_end import batches_of_file
from tests.end_to_end import runs

pytestmark = pytest.mark.slow
_RECIPE = pathlib.Path(__file__).with_name('vitals.gin')
_BAD = 17  # batch, counted from 1
_WINDOW = [(16, 17)]  # what a rewind passes over: it and the one before
_GUARD = {'trainer__Trainer__update_guard': '@update_guard.UpdateGuard()'}
_CACHED = {
    'train_script__train__train_dataset_cfg': '@data.CachedDatasetConfig()'
}


@pytest.fixture(scope='module')
def data(tmp_path_factory):
  """Files of batches: good ones, and each kind of bad one."""
  folder = tmp_path_factory.mktemp('data')
  batches_of_file.write(folder / 'good.npz')
  batches_of_file.write(folder / 'nan.npz', nan_at=_BAD)
  batches_of_file.write(folder / 'spike.npz', spike_at=_BAD)
  _write_cache(folder / 'cache')
  return folder


def _write_cache(root):
  """Examples of few tokens, a row each; but for those of one batch."""
  numbers = np.random.default_rng(0)
  pairs = []
  for batch in range(1, 41):
    shift = 200 if batch == _BAD else 0
    pairs += [
        {
            'inputs': numbers.integers(3, 20, 31).astype(np.int32) + shift,
            'targets': numbers.integers(3, 20, 15).astype(np.int32) + shift,
        }
        for _ in range(8)
    ]
  caches.write(root, pairs, num_shards=1)


def _train(folder, data, **bindings) -> int:
  """Trains on one device; in names of bindings `__` stands for a dot."""
  return runs.train(folder, recipe=_RECIPE, TEXT=data, **bindings)


def _said(folder) -> str:
  return pathlib.Path(folder).with_suffix('.log').read_text()


def _events(folder) -> dict[str, list[records.Record]]:
  path = pathlib.Path(folder) / 'events.jsonl'
  found: dict[str, list[records.Record]] = {}
  for record in records.read_records(path) if path.exists() else ():
    found.setdefault(record.name, []).append(record)
  return found


def _record(folder):
  return json.loads((pathlib.Path(folder) / 'passed_over.json').read_text())


@pytest.fixture(scope='module', params=['nan', 'spike', 'cache'])
def rewound(data, tmp_path_factory, request):
  """(name, data, bindings, folder) of a run that was sent back once."""
  name = request.param
  source = data / ('cache' if name == 'cache' else f'{name}.npz')
  bindings = dict(_CACHED) if name == 'cache' else {}
  answer = 'not_finite' if name == 'nan' else 'loss_spike'
  folder = tmp_path_factory.mktemp(name) / 'run'
  bindings[f'answers__Answers__{answer}'] = 'rewind'
  assert _train(folder, source, **bindings) == exit_codes.DONE.code
  return name, source, bindings, folder


def test_a_rewound_run_is_one_that_left_those_batches_out_from_the_start(
    rewound, tmp_path
):
  name, source, bindings, folder = rewound
  bindings = {n: v for n, v in bindings.items() if 'answers' not in n}
  code = _train(
      tmp_path / 'run', source, **bindings,
      answers__Answers__passed_over_batches=_WINDOW,
  )  # fmt: skip
  assert code == exit_codes.DONE.code
  assert runs.losses(folder) == runs.losses(tmp_path / 'run')
  assert len(runs.losses(folder)) == 24
  assert not (tmp_path / 'run' / 'passed_over.json').exists()
  if name == 'cache':
    # The ledger of samples says of each step what it was trained on.
    by_step = {a.step: a.state for a in ledger.read_anchors(folder)}
    assert by_step[15]['batches'] == _BAD
    assert by_step[16]['batches'] == _BAD + 1


def test_exactly_the_window_is_on_record(rewound):
  _, _, _, folder = rewound
  (made,) = _record(folder)
  assert [(made['first_batch'], made['last_batch'])] == _WINDOW
  assert made['fault_step'] == _BAD
  assert made['rewound_to'] == 12
  events = _events(folder)
  (passed,) = events['vitals/passed_over']
  assert passed.value == 2
  assert 'batches 16 to 17' in passed.text
  (rewind,) = events['vitals/rewind']
  assert rewind.value == made['found_after'] - 12
  (found,) = events.get('vitals/not_finite') or events['vitals/loss_spike']
  assert f'batch {_BAD}' in found.text


def test_checkpoints_of_the_fault_were_replaced_and_old_ones_are_healthy(
    rewound,
):
  _, _, _, folder = rewound
  found = health.read(folder)
  assert [s for s, h in found.items() if h.state == health.HEALTHY] == [
      0, 4, 8, 12, 16,
  ]  # fmt: skip
  assert health.quarantined_steps(folder) == frozenset()


def test_resumed_after_a_rewind_it_still_passes_over_the_same(
    rewound, tmp_path
):
  name, source, bindings, folder = rewound
  if name != 'cache':
    pytest.skip('one kind of data is enough')
  for steps in (13, 24):
    assert _train(tmp_path / 'run', source, **bindings, TRAIN_STEPS=steps) == 0
  assert runs.losses(tmp_path / 'run') == runs.losses(folder)
  assert _record(tmp_path / 'run') == _record(folder)


def test_a_skipped_update_is_one_left_out_from_the_start(data, tmp_path):
  assert _train(tmp_path / 'bad', data / 'nan.npz', **_GUARD) == 0
  assert (
      _train(
          tmp_path / 'listed', data / 'good.npz', **_GUARD,
          update_guard__UpdateGuard__skip_steps=[_BAD],
      )
      == 0
  )  # fmt: skip
  bad, listed = (runs.losses(tmp_path / name) for name in ('bad', 'listed'))
  assert [step for step in bad if bad[step] != listed[step]] == [_BAD]
  for name in ('bad', 'listed'):
    (skipped,) = _events(tmp_path / name)['vitals/skipped_update']
    assert skipped.step == _BAD
    assert f'batch {_BAD}' in skipped.text


def test_without_an_answer_bad_data_are_told_and_trained_on(data, tmp_path):
  assert _train(tmp_path / 'run', data / 'spike.npz') == 0
  told = set(_events(tmp_path / 'run'))
  assert told - {'vitals/slow_steps'} == {'vitals/loss_spike'}  # a busy host
  losses = runs.losses(tmp_path / 'run')
  assert losses[_BAD] > 1.3 * losses[_BAD - 1]


def test_with_the_detector_off_nothing_is_sent_back(data, tmp_path):
  code = _train(
      tmp_path / 'run', data / 'spike.npz', TRAIN_STEPS=22,
      answers__Answers__loss_spike='rewind',
      spikes__Sensitivity__deviations=1e6,
  )  # fmt: skip
  assert code == 0
  # A busy machine makes slow steps, which is no fault of the loss.
  assert not _events(tmp_path / 'run').keys() - {'vitals/slow_steps'}


def test_a_run_with_nothing_healthy_to_go_back_to_says_so(data, tmp_path):
  code = _train(
      tmp_path / 'run', data / 'spike.npz', TRAIN_STEPS=22,
      answers__Answers__loss_spike='rewind',
      answers__Answers__healthy_after_steps=50,
  )  # fmt: skip
  assert code == exit_codes.UNSTABLE.code
  said = _said(tmp_path / 'run')
  assert 'VERDICT: unstable. the loss leapt up at step 17' in said
  assert 'no checkpoint before step 16 is healthy' in said
  assert 'vitals/stop' in _events(tmp_path / 'run')


def test_a_run_that_needs_too_many_rewinds_stops(data, tmp_path):
  # Every batch from here on is bad, so no window helps.
  path = tmp_path / 'bad.npz'
  found = dict(np.load(data / 'good.npz'))
  found['decoder_loss_weights'][_BAD - 1 :] = np.nan
  np.savez(path, **found)
  code = _train(
      tmp_path / 'run', path, answers__Answers__not_finite='rewind',
      answers__Answers__max_rewinds=2,
  )  # fmt: skip
  assert code == exit_codes.UNSTABLE.code
  assert 'it was rewound 2 times already' in _said(tmp_path / 'run')
  assert len(_record(tmp_path / 'run')) == 2


@pytest.mark.multiprocess
def test_two_processes_go_back_together(rewound, tmp_path):
  name, source, bindings, folder = rewound
  if name != 'spike':
    pytest.skip('one kind of data is enough for two processes')
  multiprocess.run_processes(
      runs.arguments(tmp_path / 'run', recipe=_RECIPE, TEXT=source, **bindings),
      num_processes=2,
      devices_per_process=1,
      timeout=runs.TIMEOUT_SECONDS,
  )
  assert runs.losses(tmp_path / 'run') == pytest.approx(
      runs.losses(folder), rel=1e-5  # sums of two devices
  )
  assert _record(tmp_path / 'run') == _record(folder)
