# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a resumed run reads of its rewinds, where files were damaged."""

import json
import types

import pytest

from t5wild import training_rewinds
from t5wild.trainer import step_watch
from t5wild.vitals import answers as answers_lib

_REWIND = {
    'first_batch': 3, 'last_batch': 4, 'fault': 'loss_spike', 'fault_step': 4,
    'found_after': 6, 'rewound_to': 2,
}  # fmt: skip


def _make_watch(run):
  reader = types.SimpleNamespace(
      state_dict=lambda: {'batches': 0}, add_window=lambda first, last: None
  )
  rewinds = training_rewinds.Rewinds(
      types.SimpleNamespace(answers=answers_lib.Answers(), model_dir=str(run)),
      types.SimpleNamespace(reader=reader),
      saves=None,
      reader=reader,
  )
  watch = rewinds.make_watch(types.SimpleNamespace(), step=60)
  rewinds.close()
  return watch


def _keep(run, text):
  (run / 'vitals').mkdir()
  (run / 'vitals' / 'step_60.json').write_text(text)


_STATE = step_watch.StepWatch(
    answers_lib.Answers(), guard=None, on_finding=print
).state()


@pytest.mark.parametrize(
    'text',
    [
        '', '{', '[]', '{}', '7', 'null', '"x"', '\x00\x01',
        json.dumps({**_STATE, 'detectors': []}),
        json.dumps({**_STATE, 'detectors': {'loss_spike': {}}}),
        json.dumps({**_STATE, 'unseen': [[1, 'x']]}),
        json.dumps({**_STATE, 'last_fault': 'x'}),
    ],
)  # fmt: skip
def test_damaged_knowledge_of_what_is_usual_is_named_and_learnt_anew(
    tmp_path, text
):
  _keep(tmp_path, text)
  watch = _make_watch(tmp_path)
  assert watch.state() == _STATE
  (event,) = map(json.loads, (tmp_path / 'events.jsonl').open())
  assert event['name'] == 'vitals/state_damaged'
  assert f'{tmp_path}/vitals/step_60.json is damaged (' in event['text']


def test_whole_knowledge_of_what_is_usual_is_taken_and_absent_is_no_damage(
    tmp_path,
):
  assert _make_watch(tmp_path).last_fault == 0
  _keep(tmp_path, json.dumps({**_STATE, 'last_fault': 5}))
  assert _make_watch(tmp_path).last_fault == 5
  assert not (tmp_path / 'events.jsonl').exists()


@pytest.mark.parametrize(
    'text',
    ['', '[{', '{}x', '[7]', '[{"fault": "x"}]', '7', '\x00',
     json.dumps([{**_REWIND, 'last_batch': '4'}])],
)  # fmt: skip
def test_a_damaged_record_of_rewinds_is_refused_by_name(tmp_path, text):
  (tmp_path / training_rewinds.FILE).write_text(text)
  with pytest.raises(ValueError, match='passed_over.json is damaged .*expect'):
    training_rewinds.read(str(tmp_path))


def test_a_whole_record_of_rewinds_is_read(tmp_path):
  assert training_rewinds.read(str(tmp_path)) == []
  (tmp_path / training_rewinds.FILE).write_text(json.dumps([_REWIND]))
  assert training_rewinds.read(str(tmp_path)) == [
      training_rewinds.Rewind(**_REWIND)
  ]


@pytest.mark.parametrize(
    ('position', 'words'),
    [
        ({'batches': 287}, ''),
        ({'batches': 287, 'row': 4}, ', which ends at row 4'),
    ],
)
def test_where_a_batch_ends_is_not_its_number_once_more(position, words):
  assert training_rewinds._end_of(position) == words
