# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's tasks by name: their data is found, read, counted and mixed as T5's."""

import json
import pathlib

import pyarrow
from pyarrow import parquet
import pytest
import seqio
import tensorflow as tf

from t5wild.tasks.t5 import defaults
from t5wild.tasks.t5 import glue
from t5wild.tasks.t5 import mixtures
from t5wild.tasks.t5 import records
from t5wild.tasks.t5 import sources
from tests.tasks.t5 import tfds_files

_ROWS = [
    {'sentence': f'Text {i}', 'label': i % 2, 'idx': i} for i in range(5)
]


def _write_lines(path, rows):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
  """A folder in which TFDS's data sets are looked for."""
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path))
  for cached in (sources._find, sources._count, sources._reader_of):
    cached.cache_clear()
  yield tmp_path
  for cached in (sources._find, sources._count, sources._reader_of):
    cached.cache_clear()


def test_t5s_names_are_registered():
  tasks = set(seqio.TaskRegistry.names())
  assert {
      'c4_v220_span_corruption', 'c4_v220_full_lm', 'wmt_t2t_ende_v003',
      'wmt19_ende_v003', 'squad_v010_allanswers', 'cnn_dailymail_v002',
      'trivia_qa_v010', 'super_glue_record_v102',
      'super_glue_wsc_v102_simple_1_sentinel_train',
      *glue.GLUE_WEIGHT_MAPPING, *glue.SUPER_GLUE_WEIGHT_MAPPING,
      *glue.SUPER_GLUE_WEIGHT_MAPPING_SENTINEL,
  } <= tasks  # fmt: skip
  assert {
      'en_mix', 'all_mix', 'all_proportional', 'glue_v002_proportional',
      'leave_one_out_wmt16_enro_v003', 'super_glue_v102_proportional',
  } <= set(seqio.MixtureRegistry.names())  # fmt: skip


def test_a_benchmark_is_mixed_by_its_size_and_rte_halved_among_all():
  rates = seqio.MixtureRegistry.get('glue_v002_proportional')._task_to_rate
  assert rates['glue_mnli_v002'] == 392_702
  assert rates['glue_ax_v002'] == 0
  rates = seqio.MixtureRegistry.get('all_mix')._task_to_rate
  assert rates['glue_rte_v002'] == 1245
  assert rates['c4_v020_unsupervised'] is defaults.rate_unsupervised
  assert mixtures.assign_weight_or_rate_num_examples('x') is (
      defaults.rate_num_examples
  )


@pytest.mark.parametrize(
    ('arguments', 'rate'),
    [({}, 5), ({'maximum': 3}, 3), ({'scale': 5, 'temperature': 2}, 5)],
)
def test_a_rate_goes_by_the_number_of_training_examples(
    arguments, rate, data_dir
):
  _write_lines(data_dir / 'glue/cola/train.jsonl', _ROWS)
  task = seqio.TaskRegistry.get('glue_cola_v002')
  assert defaults.rate_num_examples(task, **arguments) == rate


def _texts(path, rows):
  if path.suffix == '.parquet':
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
  elif path.suffix == '.arrow':
    table = pyarrow.Table.from_pylist(rows)
    with pyarrow.ipc.new_stream(str(path), table.schema) as stream:
      stream.write_table(table)
  else:
    _write_lines(path, rows)
  return [
      (x['sentence'].decode(), int(x['label']), int(x['idx']))
      for x in records.make_dataset(
          [str(path)], shuffle=False, seed=None
      ).as_numpy_iterator()
  ]


@pytest.mark.parametrize('suffix', ['jsonl', 'parquet', 'arrow'])
def test_plain_files_have_tfdss_types(suffix, tmp_path):
  path = tmp_path / f'train.{suffix}'
  assert _texts(path, _ROWS) == [
      (row['sentence'], row['label'], row['idx']) for row in _ROWS
  ]
  spec = records.make_dataset(
      [str(path)], shuffle=False, seed=None
  ).element_spec
  assert (spec['label'].dtype, spec['idx'].dtype) == (tf.int64, tf.int32)


def test_nested_fields_and_lists_are_read(tmp_path):
  rows = [
      {'answers': {'text': []}, 'idx': {'query': 1}, 'label': None},
      {'answers': {'text': ['a', 'b']}, 'idx': {'query': 2}, 'label': 1},
  ]
  _write_lines(tmp_path / 'train.jsonl', rows)
  found = list(
      records.make_dataset(
          [str(tmp_path / 'train.jsonl')], shuffle=False, seed=None
      ).as_numpy_iterator()
  )
  assert [x['answers']['text'].tolist() for x in found] == [[], [b'a', b'b']]
  assert [int(x['label']) for x in found] == [-1, 1]
  assert [int(x['idx']['query']) for x in found] == [1, 2]


def test_a_line_that_is_no_record_is_told_with_its_number(tmp_path):
  path = tmp_path / 'train.jsonl'
  path.write_text('{"a": 1}\nnonsense\n')
  with pytest.raises(ValueError, match=r'train\.jsonl:2 is .*nonsense'):
    list(records.read([str(path)]))


def test_translations_of_the_hugging_face_hub_are_read_as_tfdss(data_dir):
  _write_lines(
      data_dir / 'wmt_t2t_translate/de-en/validation.jsonl',
      [{'translation': {'en': 'Good', 'de': 'Gut'}}],
  )
  source = seqio.TaskRegistry.get('wmt_t2t_ende_v003').source
  assert list(source.splits) == ['validation']
  (example,) = source.get_dataset('validation').as_numpy_iterator()
  assert example == {'en': b'Good', 'de': b'Gut'}


def test_hosts_share_the_files(data_dir):
  for i in range(2):
    _write_lines(
        data_dir / f'c4/en/c4-train.0000{i}-of-00002.json',
        [{'text': f'text {i}'}],
    )
  source = sources.T5Source('c4/en:2.2.0')
  assert len(source.list_shards('train')) == 2
  shares = [
      [
          example['text']
          for example in source.get_dataset(
              'train', shard_info=seqio.ShardInfo(i, 2)
          ).as_numpy_iterator()
      ]
      for i in range(2)
  ]
  assert shares == [[b'text 0'], [b'text 1']]


@pytest.mark.parametrize('version', ['1.0.0', '2.0.0'])
def test_tfdss_own_files_are_read_of_another_version_too(data_dir, version):
  tfds_files.write_rte(
      data_dir, {'train': tfds_files.rte_records(3)}, version=version
  )
  source = sources.T5Source('glue/rte:1.0.0')
  assert list(source.splits) == ['train']
  assert source.num_input_examples('train') == 3
  found = list(source.get_dataset('train', shuffle=False).as_numpy_iterator())
  assert [int(example['idx']) for example in found] == [0, 1, 2]


def test_a_split_without_files_is_refused_with_those_there_are(data_dir):
  _write_lines(pathlib.Path(data_dir) / 'glue/cola/train.jsonl', _ROWS)
  with pytest.raises(ValueError, match=r"expected one of \['train'\]"):
    sources.T5Source('glue/cola:1.0.0').get_dataset('test')
