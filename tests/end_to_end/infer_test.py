# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild infer` with a trained run: killed, on several processes, in score."""

import io
import json
import signal
import subprocess
import sys
import time

import pytest
import seqio
import tensorflow as tf

from t5wild import inference
from t5wild.tasks import local_text
from tests import multiprocess
from tests.end_to_end import binaries
from tests.end_to_end import copy_task
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

NUM_INPUTS = 50


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('infer') / 'run'
  assert runs.train(folder) == 0
  lines = [
      {'id': i, 'inputs': 'ab ' * (i * 7 % 20), 'targets': 'b' * (i % 5 + 1)}
      for i in range(NUM_INPUTS)
  ]
  folder.with_name('in.jsonl').write_text(
      '\n'.join(map(json.dumps, lines)), encoding='utf-8'
  )
  return folder


def _arguments(run, output, **changes):
  flags = {
      'run': run, 'input': run.with_name('in.jsonl'), 'output': output,
      'batch_size': 8, 'checkpoint_period': 2, **changes,
  }  # fmt: skip
  given = [f'--{name}={value}' for name, value in flags.items()]
  return ['-m', 't5wild.infer', *given]


def _infer(arguments, *, num_processes=1):
  return multiprocess.run_processes(
      arguments, num_processes, timeout=runs.TIMEOUT_SECONDS
  )


def _lines(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope='module')
def whole(run):
  output = run.with_name('whole.jsonl')
  _infer(_arguments(run, output))
  return output


def test_outputs_are_in_the_order_of_the_inputs(whole):
  assert [line['inputs']['id'] for line in _lines(whole)] == list(
      range(NUM_INPUTS)
  )


def test_killed_and_started_again_it_writes_the_same(run, whole):
  output = run.with_name('killed.jsonl')
  arguments = _arguments(run, output)
  process = subprocess.Popen(
      [sys.executable, *arguments],
      env=multiprocess.process_environment(devices_per_process=1),
      stderr=subprocess.DEVNULL,
  )
  while process.poll() is None and not list(
      run.parent.glob('tmp-killed*/*chunk00000.COMPLETED')
  ):
    time.sleep(0.02)
  process.kill()
  process.wait()
  assert not output.exists()
  (again,) = _infer(arguments)
  assert 'were there already' in again.stderr
  assert output.read_bytes() == whole.read_bytes()


def test_two_processes_write_what_one_does(run, whole):
  output = run.with_name('two.jsonl')
  _infer(_arguments(run, output), num_processes=2)
  assert output.read_bytes() == whole.read_bytes()


# Process 0, which writes, is killed after the second chunk.
_KILLED_WHEN_WRITING = """
import os, runpy, signal, sys
from t5wild.inferring import outputs

write = outputs.Output.write

def write_and_die(self, number, **arguments):
  write(self, number, **arguments)
  if number == 1:
    os.kill(os.getpid(), signal.SIGKILL)

outputs.Output.write = write_and_die
sys.argv = ['infer', *{flags}]
runpy.run_module('t5wild.infer', run_name='__main__')
"""


def test_two_processes_that_were_killed_go_on_where_they_were(run, whole):
  output = run.with_name('killed_two.jsonl')
  arguments = _arguments(run, output)
  killed = multiprocess.run_processes(
      _KILLED_WHEN_WRITING.format(flags=arguments[2:]), 2,
      timeout=runs.TIMEOUT_SECONDS, check=False,
  )  # fmt: skip
  assert killed[0].returncode == -signal.SIGKILL, killed[0].stderr
  assert killed[1].returncode != 0
  assert not output.exists()
  again = _infer(arguments, num_processes=2)
  for process in again:
    assert process.stderr.count('16 examples were there already') == 2
  assert output.read_bytes() == whole.read_bytes()


def test_a_score_is_the_sum_of_those_of_the_tokens(run):
  output = run.with_name('scores.jsonl')
  _infer(_arguments(run, output, mode='score'))
  for index, line in enumerate(_lines(output)):
    scores = line['aux']['token_scores']
    assert len(scores) == index % 5 + 2  # and the end token
    assert line['score'] == pytest.approx(sum(scores), rel=1e-5)


def test_other_settings_do_not_touch_an_output(run, whole):
  before = whole.read_bytes()
  with pytest.raises(AssertionError, match='there: predict'):
    _infer(_arguments(run, whole, mode='score'))
  assert whole.read_bytes() == before


_DECODE_FN = '--gin.models.EncoderDecoderModel.decode_fn=@decoding.'
_BEAM = f'{_DECODE_FN}beam_search'
_NUM = '--gin.models.EncoderDecoderModel.predict_batch_with_aux.num_decodes='


@pytest.mark.parametrize(
    ('content', 'flags', 'message'),
    [
        (b'', [], 'is empty: expected a line for each input'),
        (b'{"inputs": "a"}\n{"inputs": \n', [], 'line 2 is no JSON'),
        (b'{"inputs": "a"}\n[1]\n', [], 'line 2 is'),
        (b'{"input": "a"}\n', [], "line 1 has 'inputs' = None"),
        (b'{"inputs": "caf\xe9"}\n', [], 'is not UTF-8 (byte 0xe9'),
        (None, ['--input=no_such_file'], "no input file 'no_such_file'"),
        (None, ['--input_type=tfrecord'], 'record 1 is broken'),
        (None, ['--step=5'], 'step 5: expected one of [0, 4, 8, 12]'),
        (None, ['--run=no_such_run'], 'expected the MODEL_DIR of a run'),
        (None, ['--decode_length=0'], '--decode_length is 0'),
        (None, ['--input_length=0'], '--input_length is 0'),
        (None, ['--input_length=0', '--mode=score'], 'trained with inputs'),
        (None, ['--batch_size=0'], '--batch_size is 0'),
        (None, ['--checkpoint_period=0'], '--checkpoint_period is 0'),
        (None, ['--mode=chat'], 'mode=chat'),
        (None, ['--mode=score', '--input_type=text'], 'has no field'),
        (None, [_BEAM, f'{_NUM}500'], 'has tokens, 384'),
        (None, [_BEAM, f'{_NUM}0'], 'num_decodes is 0'),
        (None, [_BEAM, '--gin.decoding.beam_search.num_decodes=4'],
         'EncoderDecoderModel.predict_batch_with_aux.num_decodes = 4'),
        (None, ['--gin.decoding.temperature_sample.topk=4'],
         'does not decode by @decoding.temperature_sample'),
        (None, ['--gin.network.T5Config.emb_dim=16'], 'of another shape'),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_written(
    run, tmp_path, capsys, monkeypatch, content, flags, message
):
  monkeypatch.setattr(inference.InferFunction, '__call__', None)
  path = run.with_name('in.jsonl')
  if content is not None:
    path = tmp_path / 'in.jsonl'
    path.write_bytes(content)
  before = sorted(tmp_path.iterdir())
  given = [f'--run={run}', f'--input={path}', f'--output={tmp_path}/out.jsonl']
  assert binaries.run('infer', *given, *flags) == 2
  said = capsys.readouterr().err
  assert message in said
  assert 'Traceback' not in said
  assert sorted(tmp_path.iterdir()) == before


def test_flags_beside_a_run_need_one(capsys):
  given = ['--gin_file=runs/infer.gin', '--mode=score']
  assert binaries.run('infer', *given) == 2
  assert "--run is missing (given: ['--mode']" in capsys.readouterr().err


@pytest.mark.parametrize(
    'flag',
    [
        '--gin.decoding.temperature_sample.temperature=0.5',
        f'{_NUM}2',
        '--decode_length=8',
        '--batch_size=16',
    ],
)
def test_a_resumed_inference_of_other_settings_is_refused(
    run, tmp_path, capsys, flag
):
  given = [
      f'--run={run}', f'--input={run.with_name("in.jsonl")}',
      f'--output={tmp_path}/out.jsonl', f'{_DECODE_FN}temperature_sample',
      '--gin.decoding.temperature_sample.temperature=1.0', '--batch_size=8',
  ]  # fmt: skip
  assert binaries.run('infer', *given) == 0
  before = (tmp_path / 'out.jsonl').read_bytes()
  capsys.readouterr()
  assert binaries.run('infer', *given, flag) == 2
  value = flag.rpartition('=')[2]
  assert value in capsys.readouterr().err.split('asked:')[1]
  assert binaries.run('infer', *given) == 0  # complete
  assert (tmp_path / 'out.jsonl').read_bytes() == before


def test_lines_of_text_of_a_pipe_go_to_standard_output(
    run, whole, monkeypatch, capsys
):
  texts = [line['inputs']['inputs_pretokenized'] for line in _lines(whole)]
  pipe = io.TextIOWrapper(io.BytesIO('\n'.join(texts).encode() + b'\n'))
  monkeypatch.setattr(sys, 'stdin', pipe)
  assert binaries.run('infer', f'--run={run}', '--input=-') == 0
  found = map(json.loads, capsys.readouterr().out.splitlines())
  assert [line['prediction'] for line in found] == [
      line['prediction'] for line in _lines(whole)
  ]


def test_a_conversation_answers_as_a_file_of_its_lines_is(
    run, whole, monkeypatch, capsys
):
  lines = _lines(whole)[:9]
  prompts = [line['inputs']['inputs_pretokenized'] for line in lines]
  monkeypatch.setattr(sys, 'stdin', io.StringIO('\n'.join(prompts) + '\n'))
  assert binaries.run('infer', f'--run={run}', '--interactive') == 0
  answers = ''.join(line['prediction'] + '\n' for line in lines)
  assert capsys.readouterr().out == answers


def test_a_tfrecord_gives_what_its_lines_give(run, whole, tmp_path, capsys):
  path = tmp_path / 'in.tfrecord'
  with tf.io.TFRecordWriter(str(path)) as writer:
    for line in _lines(run.with_name('in.jsonl')):
      value = tf.train.BytesList(value=[line['inputs'].encode()])
      feature = {'prompt': tf.train.Feature(bytes_list=value)}
      example = tf.train.Example(features=tf.train.Features(feature=feature))
      writer.write(example.SerializeToString())
  given = [f'--run={run}', f'--input={path}', '--inputs_key=prompt']
  assert binaries.run('infer', *given) == 0
  found = map(json.loads, capsys.readouterr().out.splitlines())
  assert [line['prediction'] for line in found] == [
      line['prediction'] for line in _lines(whole)
  ]


def _infer_by_gin(run, folder, *flags) -> int:
  return binaries.run(
      'infer', '--gin_file=models/t5_1_1/tiny.gin',
      '--gin_file=runs/infer.gin',
      f'--gin_file={runs.RECIPE.with_name("tiny_eval.gin")}',
      "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 16}",
      f'--gin.CHECKPOINT_PATH={run}/checkpoint_12',
      f'--gin.INFER_OUTPUT_DIR={folder}', '--gin.DROPOUT_RATE=0.0',
      '--gin.data.DatasetConfig.batch_size=8', *flags,
  )  # fmt: skip


def _gin_outputs(folder) -> dict[str, list]:
  return {path.name: _lines(path) for path in folder.glob('*.jsonl-*-of-?????')}


def test_each_task_of_a_mixture_has_its_file_as_t5x_names_it(run, tmp_path):
  for name in ('t5wild_first', 't5wild_second'):
    seqio.TaskRegistry.add_provider(name, copy_task.make_task(name))
  seqio.MixtureRegistry.add(
      't5wild_both', ['t5wild_first', 't5wild_second'], default_rate=1.0
  )
  for mode in ('score', 'predict_with_aux'):
    flags = ['--gin.MIXTURE_OR_TASK_NAME=t5wild_both',
             f'--gin.infer_script.infer.mode={mode}']  # fmt: skip
    assert _infer_by_gin(run, tmp_path, *flags) == 0
  found = _gin_outputs(tmp_path)
  assert sorted(found) == [
      f't5wild_{task}-{mode}.jsonl-00000-of-00001'
      for task in ('first', 'second')
      for mode in ('predict_with_aux', 'score')
  ]
  for name, lines in found.items():
    texts = [line['inputs']['inputs_pretokenized'] for line in lines]
    assert texts == copy_task.texts('validation')
    assert (tmp_path / f'{name}.COMPLETED').exists()
    key = 'score' if 'score' in name else 'prediction'
    assert all(key in line and 'aux' in line for line in lines)
  assert (tmp_path / 'operative_config.gin').exists()


def test_shards_of_a_task_are_together_the_task(run, tmp_path):
  whole, parts = tmp_path / 'whole', tmp_path / 'parts'
  assert _infer_by_gin(run, whole) == 0
  for shard in range(3):
    flags = ['--gin.infer.num_shards=3', f'--gin.infer.shard_id={shard}',
             '--gin.infer.checkpoint_period=1']  # fmt: skip
    if shard == 2:
      flags.append('--gin.infer.merge_chunked_results=False')
    assert _infer_by_gin(run, parts, *flags) == 0
  folder = parts / 'tmp-t5wild_copy-00002-of-00003'
  name = 't5wild_copy-predict.jsonl-00002-of-00003'
  chunks = sorted(folder.glob(f'{name}-chunk?????'))
  assert not (parts / name).exists()
  assert (parts / f'{name}.COMPLETED').exists()
  found = _gin_outputs(parts)
  shards = [found[key] for key in sorted(found)]
  shards.append([line for chunk in chunks for line in _lines(chunk)])
  (expected,) = _gin_outputs(whole).values()
  for index, shard in enumerate(shards):
    assert shard == expected[index::3]
  assert _infer_by_gin(run, parts, *flags) == 0  # complete


def test_shards_of_a_file_are_together_the_file(run, tmp_path):
  recipe = tmp_path / 'files.gin'
  recipe.write_text(f"""
from __gin__ import dynamic_registration
from t5wild import infer as infer_script
from t5wild import inferring
infer_script.infer.dataset_cfg = @inferring.FileConfig()
inferring.FileConfig:
  paths = '{run.with_name("in.jsonl")}'
  task_feature_lengths = %TASK_FEATURE_LENGTHS
  batch_size = 8
""")
  gin_file = f'--gin_file={recipe}'
  for shard in range(2):
    flags = ['--gin.infer.num_shards=2', f'--gin.infer.shard_id={shard}']
    assert _infer_by_gin(run, tmp_path / 'parts', gin_file, *flags) == 0
  assert _infer_by_gin(run, tmp_path / 'whole', gin_file) == 0
  ((_, whole),) = _gin_outputs(tmp_path / 'whole').items()
  assert [line['inputs']['id'] for line in whole] == list(range(NUM_INPUTS))
  parts = _gin_outputs(tmp_path / 'parts')
  shards = [parts[name] for name in sorted(parts)]
  assert shards == [whole[::2], whole[1::2]]


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        (['--gin.infer.shard_id=3', '--gin.infer.num_shards=3'], 'shard_id'),
        (['--gin.infer.mode=chat'], "mode is 'chat'"),
        (['--gin.infer.num_buckets=0'], 'num_buckets is 0'),
        (["--gin.TASK_FEATURE_LENGTHS={'targets': 16}"],
         "task_feature_lengths has ['targets']"),
        (["--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 0}"],
         'expected a length of at least 1'),
        (['--gin.TASK_FEATURE_LENGTHS=None'],
         'task_feature_lengths is None'),
        (['--gin.data.DatasetConfig.split=test'], "'test'"),
        (['--gin.data.DatasetConfig.batch_size=0'], 'batch_size'),
        (['--gin.CHECKPOINT_PATH=/no_such_run'], '/no_such_run'),
        (['--gin.checkpoints.RestoreCheckpointConfig.mode=all',
          '--gin.CHECKPOINT_PATH={run}'], 'expected one to infer with'),
        (['--gin.MIXTURE_OR_TASK_NAME=t5wild_span_task',
          '--gin.seqio.ByteVocabulary.extra_ids=0'], 'sentinel'),
    ],
)  # fmt: skip
def test_what_gin_asks_for_is_refused_before_anything_is_written(
    run, tmp_path, capsys, flags, message
):
  _register_task_without_sentinels()
  folder = tmp_path / 'out'
  flags = [flag.replace('{run}', str(run)) for flag in flags]
  assert _infer_by_gin(run, folder, *flags) == 2
  assert message in capsys.readouterr().err
  assert not folder.exists()


def _register_task_without_sentinels() -> None:
  if 't5wild_span_task' in seqio.TaskRegistry.names():
    return
  task = local_text.text_task(
      __file__, name='t5wild_span_task', vocabulary=seqio.ByteVocabulary(0),
      objective='span_corruption',
  )  # fmt: skip
  seqio.TaskRegistry.add_provider('t5wild_span_task', task)
