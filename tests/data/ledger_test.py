# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The ledger gives back each step's examples, in a few bytes a step."""

import json

import numpy as np
import pytest

from t5wild import samples
from t5wild.data import ledger
from t5wild.data import record_search
from tests.data import caches


def _state(rows: int) -> dict:
  return {
      'kind': 'cached', 'of_all_hosts': True, 'window': rows // 100,
      'row': rows % 100, 'rows': rows, 'batches': rows // 8, 'step': rows // 8,
      'ended': [[7, 3]], 'seed': 0, 'caches': '0123456789abcdef',
      'order': '0123456789abcdef', 'making': '0123456789abcdef',
      'changes': '0123456789abcdef',
  }  # fmt: skip


def test_a_ledger_of_every_step_takes_less_than_100_bytes_each(tmp_path):
  written = ledger.SampleLedger(tmp_path, batch_size=8)
  for step in range(1_000_000, 1_000_200):
    written.note(step, _state(step * 8))
  size = (tmp_path / ledger.FILE).stat().st_size
  assert size < 200 * 100
  anchors = ledger.read_anchors(tmp_path)
  assert [anchor.step for anchor in anchors] == [*range(1_000_000, 1_000_200)]
  for anchor in anchors:
    assert anchor.state == _state(anchor.step * 8)
    assert anchor.batch_size == 8


def test_steps_trained_again_after_a_kill_count_once(tmp_path):
  first = ledger.SampleLedger(tmp_path, batch_size=8)
  for step in (0, 4, 8):
    first.note(step, _state(step * 8))
  again = ledger.SampleLedger(tmp_path, batch_size=16)
  again.note(4, _state(32))
  again.note(6, _state(64))
  anchors = ledger.read_anchors(tmp_path)
  assert [(a.step, a.batch_size) for a in anchors] == [(0, 8), (4, 16), (6, 16)]
  assert ledger.anchor_before(anchors, step=6).step == 4
  assert ledger.anchor_before(anchors, step=7).step == 6


def test_a_line_cut_off_by_a_kill_is_passed_over(tmp_path):
  ledger.SampleLedger(tmp_path, batch_size=8).note(0, _state(0))
  with (tmp_path / ledger.FILE).open('a') as file:
    file.write('{"step":4,"wind')
  assert [anchor.step for anchor in ledger.read_anchors(tmp_path)] == [0]
  ledger.SampleLedger(tmp_path, batch_size=16).note(2, _state(16))
  anchors = ledger.read_anchors(tmp_path)
  assert [(anchor.step, anchor.batch_size) for anchor in anchors] == [
      (0, 8), (2, 16)
  ]


def test_live_data_have_no_ledger(tmp_path):
  ledger.SampleLedger(tmp_path, batch_size=8).note(0, {'kind': 'live'})
  ledger.SampleLedger(tmp_path, batch_size=8).note(0, None)
  with pytest.raises(ledger.NoLedgerError, match='from a cache'):
    ledger.read_anchors(tmp_path)


def test_a_step_before_the_ledger_is_refused(tmp_path):
  ledger.SampleLedger(tmp_path, batch_size=8).note(10, _state(80))
  with pytest.raises(ledger.NoLedgerError, match='after 10'):
    ledger.anchor_before(ledger.read_anchors(tmp_path), step=10)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A run of 30 steps, its batch size changed after 12, and its batches."""
  root = tmp_path_factory.mktemp('cache')
  caches.write(root, caches.texts(60))
  folder = tmp_path_factory.mktemp('run')
  cfg = caches.config(root, window_tokens=1024)
  reader = caches.reader(cfg)
  seen = []
  written = ledger.SampleLedger(folder, batch_size=24)
  for step in range(12):
    if step % 5 == 0:
      written.note(step, reader.state_dict())
    seen.append((reader.origins(), next(reader)))
  state = reader.state_dict()
  reader = caches.reader(cfg, batch_size=8)
  reader.load_state_dict(state)
  written = ledger.SampleLedger(folder, batch_size=8)
  for step in range(12, 31):
    if step % 5 == 0 or step == 12:
      written.note(step, reader.state_dict())
    seen.append((reader.origins(), next(reader)))
  found = samples.RunSamples(
      cfg,
      ledger.read_anchors(folder),
      feature_converter_cls=caches.ENCODER_DECODER,
  )
  return found, seen


@pytest.mark.parametrize('step', [1, 7, 12, 13, 28])
def test_the_examples_of_a_step_are_those_it_trained_on(step, run):
  found, seen = run
  origins, batch = seen[step - 1]
  lines = list(found.lines_of_step(step, with_text=True))
  names = [line for line in lines if line.startswith('row')]
  assert len(names) == sum(map(len, origins))
  assert names[0].startswith(f'row 0: letters, epoch {origins[0][0][1]}')
  texts = [line for line in lines if line.startswith('  targets')]
  first = batch['decoder_target_tokens'][0]
  first = first[batch['decoder_segment_ids'][0] == 1]
  text = caches.VOCABULARY.decode([t for t in first.tolist() if t < 259])
  ascii_text = [c for c in text if c.isalnum()]
  assert all(c in texts[0] for c in ascii_text)


def test_a_text_is_found_in_the_steps_that_saw_its_document(tmp_path):
  words = [np.array(caches.VOCABULARY.encode(w), np.int32) for w in (
      'a needle lies here', *(f'nothing but straw {i}' * 3 for i in range(40)),
  )]  # fmt: skip
  caches.write(tmp_path / 'cache', words)
  cfg = caches.config(tmp_path / 'cache', batch_size=8, window_tokens=256)
  reader = caches.reader(cfg)
  written = ledger.SampleLedger(tmp_path, batch_size=8)
  expected = []
  (place,) = record_search.with_text(cfg.open_caches()[0], 'a needle')
  for step in range(1, 41):
    if step % 7 == 1:
      written.note(step - 1, reader.state_dict())
    numbers = np.concatenate(reader.origins())[:, 2]
    if place.number in numbers.tolist():
      expected.append(step)
    next(reader)
  written.note(40, reader.state_dict())
  found = samples.RunSamples(
      cfg,
      ledger.read_anchors(tmp_path),
      feature_converter_cls=caches.ENCODER_DECODER,
  )
  head, *hits = found.lines_of_text('a needle', most=1000)
  assert head.startswith('1 records')
  steps = [
      int(step)
      for hit in hits
      for step in hit.split(':')[0].removeprefix('steps ').split(', ')
  ]
  assert sorted(steps) == expected
  assert len(expected) > 3
  assert json.dumps(hits).count(' letters,') == len(hits)


def test_the_command_wants_a_step_or_a_text(tmp_path, capsys):
  assert samples.main([f'--run={tmp_path}']) == 2
  assert 'expected one of them' in capsys.readouterr().err
  assert samples.main([f'--run={tmp_path}', '--step=3']) == 2
  assert 'samples.jsonl' in capsys.readouterr().err
