# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Text tasks: what they read, how they corrupt it, what they refuse."""

import functools
import json

import numpy as np
import pytest

from t5wild.data import datasets
from t5wild.data import objectives
from t5wild.data import spans

seqio = pytest.importorskip('seqio')
local_text = pytest.importorskip('t5wild.tasks.local_text')

LENGTHS = {'inputs': 32, 'targets': 16}
FIRST_SENTINEL = 259


@pytest.fixture
def folder(tmp_path):
  for index in range(6):
    text = ''.join(f'{index}:{number} ' for number in range(30 + index))
    (tmp_path / f'{index}.txt').write_text(text)
  return tmp_path


def examples(task, split='train', *, lengths=None, seed=3):
  dataset = task.get_dataset(
      lengths or LENGTHS, split, shuffle=False, seed=seed
  )
  return list(dataset.as_numpy_iterator())


def text_of(example):
  """The corrupted text put together again, end of sequence left out."""
  assert example['inputs'][-1] == example['targets'][-1] == 1
  return spans.fill_spans(
      example['inputs'][:-1],
      example['targets'][:-1],
      vocab_size=384,
      extra_ids=125,
  )


def test_every_byte_of_every_document_is_in_exactly_one_chunk(folder):
  task = local_text.text_task(str(folder), held_out_fraction=0.0)
  count = sum(text_of(example).size for example in examples(task))
  assert count == sum(path.stat().st_size for path in folder.iterdir())


def test_chunks_hold_one_document_each_unless_merging_is_asked_for(folder):
  def mixed(objective):
    task = local_text.text_task(
        str(folder), objective=objective, held_out_fraction=0.0
    )
    texts = [
        (text_of(example) - 3).astype(np.uint8).tobytes()
        for example in examples(task)
    ]
    files = [path.read_bytes() for path in folder.iterdir()]
    return [text for text in texts if not any(text in file for file in files)]

  assert not mixed('span_corruption')
  merging = functools.partial(objectives.span_corruption, merge_documents=True)
  assert mixed(merging)


def test_full_chunks_have_exactly_the_planned_lengths(folder):
  plan = spans.plan_for_inputs(LENGTHS['inputs'])
  task = local_text.text_task(str(folder), held_out_fraction=0.0)
  sizes = [
      (example['inputs'].size, example['targets'].size)
      for example in examples(task)
      if text_of(example).size == plan.tokens_length
  ]
  assert set(sizes) == {(plan.inputs_length, plan.targets_length)}
  assert len(sizes) > 10


def test_seed_decides_the_corruption(folder):
  task = local_text.text_task(str(folder), held_out_fraction=0.0)
  first, again, other = (
      [example['inputs'].tolist() for example in examples(task, seed=seed)]
      for seed in (3, 3, 4)
  )
  assert first == again != other


def test_validation_is_of_other_files(folder):
  task = local_text.text_task(str(folder), held_out_fraction=0.4)
  files = {
      split: {name.split('[')[0] for name in task.source.list_shards(split)}
      for split in task.splits
  }
  assert files['train'].isdisjoint(files['validation'])
  assert len(files['train'] | files['validation']) == 6


def test_all_kinds_of_files_are_read(tmp_path):
  pyarrow = pytest.importorskip('pyarrow')
  import gzip

  from pyarrow import parquet

  (tmp_path / 'a.txt').write_text('plain text')
  (tmp_path / 'b.py').write_text('x = 1  # code')
  (tmp_path / 'c.jsonl').write_text(json.dumps({'text': 'json text'}))
  (tmp_path / 'd.txt.gz').write_bytes(gzip.compress(b'compressed text'))
  parquet.write_table(
      pyarrow.table({'text': ['parquet text']}), tmp_path / 'e.parquet'
  )
  task = local_text.text_task(str(tmp_path), held_out_fraction=0.0)
  texts = sorted(
      bytes((text_of(example) - 3).astype(np.uint8)).decode()
      for example in examples(task)
  )
  assert texts == [
      'compressed text',
      'json text',
      'parquet text',
      'plain text',
      'x = 1  # code',
  ]


def test_no_paths_means_the_standard_library():
  task = local_text.text_task()
  assert task.name == 'python_stdlib'
  names = task.source.list_shards('train')
  assert len(names) > 300
  assert all('.py[' in name for name in names)
  assert not any('site-packages' in name for name in names)
  assert len(task.source.list_shards('validation')) > 5


def test_a_corrupt_line_fails_with_its_file_and_line(tmp_path):
  (tmp_path / 'a.jsonl').write_text('{"text": "good"}\nbad\n')
  cfg = datasets.DatasetConfig(
      local_text.text_task(str(tmp_path), held_out_fraction=0.0),
      LENGTHS,
      'train',
      2,
      False,
      0,
  )
  layout = type('Layout', (), {'batch_size': 2, 'shard_id': 0, 'num_shards': 1})
  reader = datasets.make_train_reader(
      cfg,
      data_layout=layout,
      feature_converter_cls=seqio.EncDecFeatureConverter,
  )
  with pytest.raises(ValueError, match=r'a\.jsonl, line 2 is corrupt.*skip'):
    next(reader)


def test_corrupt_lines_are_counted_where_they_are_skipped(tmp_path):
  (tmp_path / 'a.jsonl').write_text('{"text": "good text"}\nbad\n{}\n')
  task = local_text.text_task(
      str(tmp_path), held_out_fraction=0.0, on_corrupt='skip'
  )
  assert len(examples(task)) == 1
  assert task.source.skipped_lines == 2


def test_a_registered_task_is_found_by_name(folder):
  local_text.add_local_text_task('registered_text', str(folder))
  try:
    cfg = datasets.DatasetConfig(
        'registered_text', LENGTHS, 'train', 2, True, 0
    )
    vocabulary, _ = datasets.get_vocabulary(cfg)
    assert vocabulary.vocab_size == 384
    with pytest.raises(ValueError, match='registered_text'):
      local_text.add_local_text_task('registered_text', str(folder))
  finally:
    seqio.TaskRegistry.remove('registered_text')


def test_bad_arguments_are_refused_when_the_task_is_made(folder):
  with pytest.raises(FileNotFoundError, match='Correct the path'):
    local_text.text_task(str(folder / 'absent'))
  with pytest.raises(FileNotFoundError, match='(?s)/absent.*train-vocab'):
    local_text.text_task(str(folder), vocabulary='/absent.model')
  with pytest.raises(ValueError, match="objective is 'spam'.*span_corruption"):
    local_text.text_task(str(folder), objective='spam')


def test_too_few_sentinels_are_refused_with_the_number(folder):
  task = local_text.text_task(
      str(folder), vocabulary=seqio.ByteVocabulary(1), held_out_fraction=0.0
  )
  with pytest.raises(ValueError, match='1 sentinels.*at least 2.*extra_ids'):
    task.get_dataset(LENGTHS, 'train', seed=0)
