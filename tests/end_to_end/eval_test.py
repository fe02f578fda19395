# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild eval` finds of a run's checkpoints what training found, and once."""

import json
import math
import subprocess
import sys

import pytest

from t5wild.vitals import records
from tests import multiprocess
from tests.end_to_end import binaries
from tests.end_to_end import copy_task
from tests.end_to_end import runs

pytestmark = [pytest.mark.slow, pytest.mark.multiprocess]

_RECIPE = runs.RECIPE.with_name('decoding.gin')
_TASK = 't5wild_copy'


def _evaluate(*arguments) -> subprocess.CompletedProcess:
  return subprocess.run(
      [sys.executable, '-m', 't5wild.eval', *map(str, arguments)],
      env=multiprocess.process_environment(devices_per_process=1),
      capture_output=True,
      text=True,
      timeout=runs.TIMEOUT_SECONDS,
      check=False,
  )


def _lines(folder) -> dict[int, dict[str, float]]:
  lines = (folder / 'evaluation.jsonl').read_text().splitlines()
  found = list(map(json.loads, lines))
  assert {line['task'] for line in found} == {_TASK}
  by_step = {line['step']: line['metrics'] for line in found}
  assert len(by_step) == len(found)
  return by_step


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('evaluated') / 'run'
  assert runs.train(folder, recipe=_RECIPE) == 0
  return folder


@pytest.fixture(scope='module')
def evaluated(run):
  done = _evaluate(f'--run={run}', '--checkpoint=4,12')
  assert done.returncode == 0, done.stderr
  return run / 'eval' / f'{_TASK}_validation'


def test_metrics_are_those_that_training_found(run, evaluated):
  metrics = _lines(evaluated)
  assert sorted(metrics) == [4, 12]
  for name in ('character_accuracy', 'mean_score', 'num_predictions'):
    name = f'inference_eval/{_TASK}/{name}'
    trained = records.series(
        records.read_records(run / 'metrics.jsonl'), name
    )[-1]
    now = records.series(
        records.read_records(evaluated / 'metrics.jsonl'), name
    )[-1]
    assert trained.step == now.step == 12
    assert now.value == pytest.approx(trained.value, rel=1e-5)
  assert list((evaluated / 'inference_eval' / _TASK).iterdir())  # TensorBoard


def test_perplexity_and_bits_per_byte_are_those_of_the_scores(evaluated):
  texts = copy_task.texts('validation')
  num_bytes = sum(map(len, texts))
  for metrics in _lines(evaluated).values():
    nats = -metrics['inference_eval/mean_score'] * len(texts)
    perplexity = math.exp(nats / (num_bytes + len(texts)))
    assert metrics['training_eval/perplexity'] == pytest.approx(
        perplexity, rel=1e-4
    )
    assert metrics['training_eval/bits_per_byte'] == pytest.approx(
        nats / math.log(2) / num_bytes, rel=1e-4
    )


def test_a_checkpoint_is_not_evaluated_twice(run, evaluated):
  before = _lines(evaluated)
  done = _evaluate(f'--run={run}', '--checkpoint=follow')
  assert done.returncode == 0, done.stderr
  assert done.stderr.count('has been evaluated: passed over') == 2
  after = _lines(evaluated)
  assert sorted(after) == [0, 4, 8, 12]
  assert {step: after[step] for step in before} == before


def test_the_gin_binary_finds_the_same(run, evaluated, tmp_path):
  done = _evaluate(
      '--gin_file=models/t5_1_1/tiny.gin',
      '--gin_file=runs/eval.gin',
      '--gin_file=tests/end_to_end/tiny_eval.gin',
      f'--gin.CHECKPOINT_PATH={run}/checkpoint_12',
      f'--gin.EVAL_OUTPUT_DIR={tmp_path}/out',
  )
  assert done.returncode == 0, done.stderr
  found, expected = _lines(tmp_path / 'out')[12], _lines(evaluated)[12]
  for name in ('training_eval/perplexity', 'inference_eval/mean_score'):
    assert found[name] == pytest.approx(expected[name], rel=1e-4)


def test_two_processes_find_what_one_does_and_write_it_once(
    run, evaluated, tmp_path
):
  flags = [f'--run={run}', '--checkpoint=4,12', f'--output_dir={tmp_path}/out']
  multiprocess.run_processes(
      ['-m', 't5wild.eval', *flags], 2, timeout=runs.TIMEOUT_SECONDS
  )
  found, expected = _lines(tmp_path / 'out'), _lines(evaluated)
  assert sorted(found) == [4, 12]
  for step, metrics in found.items():
    assert metrics == pytest.approx(expected[step], rel=1e-5)
  predictions = f'inference_eval/{_TASK}-000012.jsonl'
  twice, once = tmp_path / 'out' / predictions, evaluated / predictions
  assert twice.read_text() == once.read_text()
  settings = [
      json.loads((folder / 'evaluation.json').read_text())
      for folder in (tmp_path / 'out', evaluated)
  ]
  for one in settings:
    del one['run']  # told from where the file lies
  assert settings[0] == settings[1]
  written = [
      (record.name, record.step)
      for record in records.read_records(tmp_path / 'out' / 'metrics.jsonl')
      if record.name.startswith('inference_eval/')
  ]
  assert len(set(written)) == len(written)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--checkpoint=7'], 'expected one of [0, 4, 8, 12]'),
        (['--checkpoint=first'], 'The run has the steps [0, 4, 8, 12]'),
        (['--split=test'], "no split 'test'"),
        (['--task=no_such_task'], '(--task where that was given)'),
        (['--output_dir={run}'], 'the files of a training run'),
        (['--run={run}/eval'], 'expected the MODEL_DIR of a run'),
        (['--run={empty}'], 'holds no complete checkpoint'),
        (['--wait_seconds=-1', '--checkpoint=follow'], 'wait_seconds is -1'),
        (['--gin.network.T5Config.emb_dim=16', '--output_dir={empty}/out'],
         'of another shape'),
        (['--gin.BATCH_SIZE=9'], 'cannot be split'),
        (['--gin.decoding.temperature_sample.topk=4'],
         'does not decode by @decoding.temperature_sample'),
        (['--gin.models.EncoderDecoderModel.decode_fn=@decoding.beam_search',
          '--gin.models.EncoderDecoderModel.predict_batch_with_aux.num_decodes'
          '=500', '--output_dir={empty}/out'], 'has tokens, 384'),
        (['--nonsense'], 'Try --help'),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    run, tmp_path, capsys, arguments, message
):
  (tmp_path / 'config.gin').write_text((run / 'config.gin').read_text())
  before = sorted(run.rglob('*'))
  given = [one.format(run=run, empty=tmp_path) for one in arguments]
  assert binaries.run('eval', f'--run={run}', *given) == 2
  said = capsys.readouterr().err
  assert message in said
  assert 'Traceback' not in said
  assert sorted(run.rglob('*')) == before
  assert [path.name for path in tmp_path.iterdir()] == ['config.gin']


def _evaluate_by_gin(run, *flags) -> int:
  return binaries.run(
      'eval', '--gin_file=models/t5_1_1/tiny.gin', '--gin_file=runs/eval.gin',
      f'--gin_file={runs.RECIPE.with_name("tiny_eval.gin")}',
      f'--gin.CHECKPOINT_PATH={run}/checkpoint_12', *flags,
  )  # fmt: skip


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        (['--gin.eval_script.evaluate.inference_evaluator_cls=None',
          '--gin.eval_script.evaluate.training_evaluator_cls=None'],
         'are both None'),
        (['--gin.copy_task.copy_task.metric_fns=[]'], 'no metric_fns'),
        (['--gin.copy_task.copy_task.metric_fns=[@copy_task.no_such]'],
         'no_such'),
        (['--gin.CHECKPOINT_PATH=/no_such_run'], '/no_such_run'),
        (['--gin.WAIT_SECONDS=5'], "expected mode 'all'"),
        (["--gin.TASK_FEATURE_LENGTHS={'targets': 8}"], "['inputs']"),
        (['--checkpoint=12'], "given: ['--checkpoint']"),
    ],
)  # fmt: skip
def test_what_gin_asks_for_and_cannot_be_is_refused(
    run, tmp_path, capsys, flags, message
):
  folder = tmp_path / 'out'
  assert _evaluate_by_gin(run, f'--gin.EVAL_OUTPUT_DIR={folder}', *flags) == 2
  assert message in capsys.readouterr().err
  assert not folder.exists()


def test_figures_of_other_settings_are_not_mixed(run, evaluated, capsys):
  before = _lines(evaluated)
  flag = '--gin.models.EncoderDecoderModel.label_smoothing=0.1'
  assert binaries.run('eval', f'--run={run}', '--checkpoint=0', flag) == 2
  assert 'label_smoothing = 0.1' in capsys.readouterr().err
  assert _lines(evaluated) == before
