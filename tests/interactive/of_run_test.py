# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A run at hand, and T5X's class around the same checkpoint, agree."""

import pathlib
import shutil

import numpy as np
import pytest
import seqio

from t5wild import interactive
from t5wild import optimizers
from t5wild import partitioning
from t5wild.checkpoint_files import steps
from t5wild.evaluating import of_run as evaluated_run
from tests.end_to_end import binaries
from tests.end_to_end import copy_task

pytestmark = pytest.mark.slow

_PAIRS = [('ab' * n, 'ba' * (n % 5)) for n in range(1, 9)]
_EXAMPLES = [{'input': text, 'target': target} for text, target in _PAIRS]
_TEXTS, _TARGETS = (list(texts) for texts in zip(*_PAIRS, strict=True))
_LENGTHS = {'inputs': 64, 'targets': 32}
_RATE = 'optimizers.create_learning_rate_scheduler.base_learning_rate'


@pytest.fixture(scope='module')
def loaded(copy_run):
  return interactive.load(copy_run)


@pytest.fixture
def make_model(loaded, tmp_path):
  """Makes T5X's class around the model of the run."""

  def make(checkpoint, **arguments):
    return interactive.InteractiveModel(
        batch_size=8,
        task_feature_lengths=_LENGTHS,
        output_dir=str(tmp_path / 'interactive'),
        partitioner=partitioning.PjitPartitioner(num_partitions=1),
        model=loaded.model,
        dtype='float32',
        restore_mode='specific',
        checkpoint_path=checkpoint,
        # As T5X's notebooks write shapes.
        input_shapes={
            'encoder_input_tokens': np.array([8, 64]),
            'decoder_target_tokens': np.array([8, 32]),
            'decoder_input_tokens': np.array([8, 32]),
            'decoder_loss_weights': np.array([8, 32]),
        },
        learning_rate_fn=optimizers.create_learning_rate_scheduler(
            factors='constant', base_learning_rate=0.01
        ),
        **arguments,
    )

  return make


def _files(folder) -> set[str]:
  return {str(path) for path in pathlib.Path(folder).rglob('*')}


def test_both_ways_to_a_checkpoint_give_the_same(loaded, copy_run, make_model):
  model = make_model(loaded.checkpoint)
  assert model.step == loaded.step == 4
  scores = [score for _, score in model.score(_EXAMPLES)]
  assert loaded.score(_TEXTS, _TARGETS) == pytest.approx(scores, rel=1e-5)
  assert loaded.predict(_TEXTS) == model.predict(_TEXTS)
  found, _ = model.predict_with_aux(_EXAMPLES)
  assert found[2][0]['inputs_pretokenized'].decode() == _TEXTS[2]
  assert [one.decode() for _, one in found] == model.predict(_TEXTS)
  before = _files(copy_run)
  trained = interactive.load(copy_run)
  metrics = trained.train(_PAIRS)
  model.train_step(_EXAMPLES)
  assert metrics['loss'] == pytest.approx(model.train_summary['loss'], rel=1e-5)
  scores = [score for _, score in model.score(_EXAMPLES)]
  assert trained.score(_TEXTS, _TARGETS) == pytest.approx(scores, rel=1e-4)
  # The run is read, never written.
  assert _files(copy_run) == before
  # T5X's class saves every step; without a path it goes on from there.
  assert steps.all_steps(model.output_dir) == [5]
  model.close()
  again = make_model('')
  assert again.step == 5
  scores_again = [score for _, score in again.score(_EXAMPLES)]
  assert scores_again == pytest.approx(scores, rel=1e-6)


def test_rows_that_are_missing_weigh_nothing(copy_run, tmp_path):
  # Rounded up to 8 and 16: the batch is divided over 8 devices.
  whole = interactive.load(copy_run, batch_size=3)
  part = interactive.load(copy_run, batch_size=9)
  name = 'loss_per_nonpadding_target_token'
  expected = whole.train(_PAIRS)[name]
  assert part.train(_PAIRS)[name] == pytest.approx(expected, rel=1e-5)
  assert part.score(_TEXTS, _TARGETS) == pytest.approx(
      whole.score(_TEXTS, _TARGETS), rel=1e-4
  )
  path = part.save(tmp_path / 'mine')
  assert path == str(tmp_path / 'mine' / 'checkpoint_5')


def test_each_of_two_runs_keeps_its_own_configuration(copy_run):
  one = interactive.load(copy_run, gin_bindings=[f'{_RATE} = 0.5'])
  other = interactive.load(copy_run, step=2, gin_bindings=[f'{_RATE} = 0.25'])
  assert (one.step, other.step) == (4, 2)
  for run, rate in ((one, 0.5), (other, 0.25), (one, 0.5)):
    assert run.train(_PAIRS)['learning_rate'] == pytest.approx(rate)


def test_a_run_on_more_devices_is_used_on_those_there_are(
    loaded, copy_run, tmp_path, caplog, capsys
):
  run = shutil.copytree(copy_run, tmp_path / 'run')
  config = run / 'config.gin'
  given = config.read_text()
  of_mesh = 'partitioning.PjitPartitioner.num_partitions = '
  config.write_text(
      ''.join(
          f'{of_mesh}16\n' if line.startswith(of_mesh) else line
          for line in given.splitlines(keepends=True)
      )
  )
  assert config.read_text() != given
  told = 'All 8 device(s) are data parallel'
  assert interactive.load(run).predict(_TEXTS) == loaded.predict(_TEXTS)
  assert caplog.text.count(told) == 1
  prompts = tmp_path / 'in.txt'
  prompts.write_text('abab\n')
  infer = ('infer', f'--run={run}', f'--input={prompts}')
  assert binaries.run(*infer) == 0
  request = evaluated_run.RunRequest(run=str(run))
  arguments = evaluated_run.arguments_of(request)
  assert arguments['partitioner'].data_mesh_size == 8
  assert caplog.text.count(told) == 3
  # What is asked for now is not given up.
  assert binaries.run(*infer, f'--gin.{of_mesh.replace(" ", "")}3') == 2
  assert '.num_partitions=1" would do' in capsys.readouterr().err


def test_metrics_compare_texts_with_texts(make_model, loaded):
  model = make_model(loaded.checkpoint)

  def kinds(targets, predictions):
    assert targets == _TARGETS
    return {'all_text': all(isinstance(one, str) for one in predictions)}

  def mean(targets, scores):
    return {'mean': float(np.mean(scores))}

  scores = loaded.score(_TEXTS, _TARGETS)
  assert model.evaluate(_EXAMPLES, [kinds, mean]) == {
      'all_text': True, 'mean': pytest.approx(np.mean(scores), rel=1e-5)
  }  # fmt: skip


def test_what_cannot_work_is_refused_with_what_can(
    loaded, copy_run, make_model, tmp_path
):
  with pytest.raises(ValueError, match=r'of step 3: .*\[0, 2, 4\]'):
    interactive.load(copy_run, step=3)
  with pytest.raises(ValueError, match='expected the MODEL_DIR of a run'):
    interactive.load(tmp_path)
  with pytest.raises(ValueError, match='8 texts and 1 targets'):
    loaded.score(_TEXTS, ['a'])
  with pytest.raises(ValueError, match="'abc': expected a list"):
    loaded.predict('abc')
  with pytest.raises(ValueError, match=r"'a': expected a pair"):
    loaded.train(['a'])
  with pytest.raises(ValueError, match='expected something new to save'):
    loaded.save(tmp_path)
  model = make_model(loaded.checkpoint)
  with pytest.raises(ValueError, match='1 examples .* a batch of 8'):
    model.train_step(['a'])
  with pytest.raises(ValueError, match='call of train_step before'):
    assert model.train_summary
  with pytest.raises(ValueError, match="'predict': expected one of"):
    model.infer_with_preprocessors('predict', ['a'], ())


def test_a_model_at_hand_becomes_a_task_and_a_recipe(make_model, loaded):
  model = make_model(loaded.checkpoint)
  task = interactive.get_seqio_task_from_examples(
      't5wild_at_hand',
      model,
      _EXAMPLES,
      preprocessors=(
          seqio.preprocessors.tokenize, seqio.preprocessors.append_eos
      ),
      metric_fns=[copy_task.character_accuracy],
  )
  try:
    dataset = task.get_dataset(_LENGTHS, 'validation', shuffle=False)
    found = [one['inputs_pretokenized'] for one in dataset.as_numpy_iterator()]
    assert [text.decode() for text in found] == _TEXTS
  finally:
    seqio.TaskRegistry.remove(task.name)
  recipe = interactive.get_gin_config_from_interactive_model(
      model, interactive.T5XScriptType.FINETUNING, task.name, '', '', 3
  )
  assert f'INITIAL_CHECKPOINT_PATH = {loaded.checkpoint!r}' in recipe
  assert 'TRAIN_STEPS_RELATIVE = 3' in recipe
  scratch = make_model('')
  with pytest.raises(ValueError, match='expected a checkpoint'):
    interactive.get_gin_config_from_interactive_model(
        scratch, interactive.T5XScriptType.INFERENCE, task.name, '', ''
    )
