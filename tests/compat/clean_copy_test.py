# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe written anew gives gin the operative configuration it gave before.

The configuration is gin's own, of the files as they were and as written.
"""

import sys
import textwrap

import gin
import pytest

from t5wild import eval as evaluation
from t5wild import gin_utils
from t5wild import infer
from t5wild import train
from t5wild.compat import clean_copy
from t5wild.compat import clean_gin
from t5wild.compat import gin_files
from t5wild.compat import migrate
from t5wild.gin_config import operative
from t5wild.gin_config import reader
from tests import gin_registry

_HEAD = 'from __gin__ import dynamic_registration\n'
_TASK = """
    DROPOUT_RATE = 0.0
    MIXTURE_OR_TASK_NAME = 'my_task'
    TASK_FEATURE_LENGTHS = {'inputs': 16, 'targets': 8}
"""
_RECIPES = {
    'pretrain': """
        import __main__ as train_script
        from t5x import models  # what is trained
        from t5x import utils
        import t5x.trainer
        from t5x.examples.t5 import network
        include 't5x/examples/t5/t5_1_1/small.gin'
        include 't5x/configs/runs/pretrain.gin'
        include 'parts/size.gin'
        TRAIN_STEPS = 10  # utils.DatasetConfig stays in comments
        MODEL_DIR = 'utils.DatasetConfig'
        train_script.train.eval_period = 3
        utils.SaveCheckpointConfig.keep = 2
        train/utils.DatasetConfig.pack = False
        t5x.trainer.Trainer.num_microbatches = 2
        models.EncoderDecoderModel.predict_batch_with_aux.num_decodes = 4
        network.T5Config:
          num_heads = 4
    """,
    'finetune': """
        from t5x import optimizers
        from t5x import trainer
        from t5x import utils
        include 't5x/examples/scalable_t5/t5_1_1/base.gin'
        include 't5x/configs/runs/finetune.gin'
        INITIAL_CHECKPOINT_PATH = '/there/checkpoint_1'
        MODEL_DIR = '/there/run'
        TRAIN_STEPS = 20
        OPTIMIZER = @optimizers.adamw()
        optimizers.adamw.learning_rate = 1e-3
        trainer.Trainer:
          learning_rate_fn = @slow/utils.create_learning_rate_scheduler()
        slow/utils.create_learning_rate_scheduler.warmup_steps = 3
    """,
    'decoder': """
        from t5x.examples.decoder_only import network as net
        import t5x.models as m
        include 't5x/examples/decoder_only/models/base.gin'
        include 't5x/configs/runs/pretrain.gin'
        MODEL_DIR = '/there/run'
        TRAIN_STEPS = 10
        net.TransformerConfig.num_layers = 2
        m.DecoderOnlyModel.z_loss = 0.1
    """,
    'eval': """
        from t5x import partitioning
        include 't5x/examples/t5/mt5/small.gin'
        include 't5x/configs/runs/eval.gin'
        CHECKPOINT_PATH = '/there/checkpoint_1'
        EVAL_OUTPUT_DIR = '/there/out'
        partitioning.PjitPartitioner.num_partitions = 2
    """,
    'infer': """
        from t5x import utils
        include 't5x/contrib/gpu/t5/t5_1_1/small.gin'
        include 't5x/configs/runs/infer.gin'
        CHECKPOINT_PATH = '/there/checkpoint_1'
        INFER_OUTPUT_DIR = '/there/out'
        utils.DatasetConfig.batch_size = 4
    """,
    'moved': """
        from t5x import adafactor as a
        from t5x import utils as data
        include 't5x/examples/t5/t5_1_1/tiny.gin'
        include 't5x/configs/runs/pretrain.gin'
        MODEL_DIR = '/there/run'
        TRAIN_STEPS = 10
        data.SaveCheckpointConfig.period = 7
        a.Adafactor.decay_rate = 0.7
    """,
}  # fmt: skip


@pytest.fixture
def folder(t5x_names, monkeypatch, tmp_path):
  monkeypatch.setattr(reader, '_SOURCES', [])
  gin_files.register()
  gin_registry.forget()
  for module, name in (
      (train, 'train'), (evaluation, 'evaluate'), (infer, 'infer'),
  ):
    monkeypatch.setattr(
        sys.modules['__main__'], name, getattr(module, name), raising=False
    )
  (tmp_path / 'theirs/parts').mkdir(parents=True)
  (tmp_path / 'theirs/parts/size.gin').write_text(
      '# A part.\nnetwork.T5Config.emb_dim = 64\n'
  )
  yield tmp_path
  gin.clear_config()


def _write(folder, name, *texts):
  path = folder / 'theirs' / name
  path.write_text(_HEAD + ''.join(map(textwrap.dedent, texts)))
  return path


def _copy(folder):
  paths = [str(folder / 'theirs')]
  reports = migrate.check(paths)
  return clean_copy.write(reports, paths, str(folder / 'ours'))


def _operative(path, folder, monkeypatch):
  """Every parameter the run will use, defaults too, by the code's own names.

  Macros are resolved, so that it does not matter what files call a thing.
  """
  gin_registry.forget()
  gin_utils.parse_gin_flags([str(folder)], [str(path)], [])
  lines = set()
  for scope, configurable in operative._reached(gin.config._CONFIG):
    owner = f'{scope}/{operative._full_name(configurable)}'
    for name, value in operative._parameters(scope, configurable).items():
      lines.add(f'{owner}.{name} = {operative._text(value)}')
  return lines


@pytest.mark.parametrize('name', _RECIPES)
def test_gin_reads_the_same_from_both(name, folder, monkeypatch):
  _write(folder, 'run.gin', _RECIPES[name], _TASK)
  copy = _copy(folder)
  assert 'run.gin' in copy.written
  assert not copy.as_they_were
  new = folder / 'ours/run.gin'
  before = _operative(
      folder / 'theirs/run.gin', folder / 'theirs', monkeypatch
  )
  assert len(before) > 50
  assert _operative(new, folder / 'ours', monkeypatch) == before
  assert 'from t5x' not in new.read_text()
  assert 'import t5x' not in new.read_text()


def test_all_but_imports_names_and_includes_stays(folder):
  _write(folder, 'run.gin', _RECIPES['pretrain'], _TASK)
  _copy(folder)
  text = (folder / 'ours/run.gin').read_text()
  assert "MODEL_DIR = 'utils.DatasetConfig'\n" in text
  assert '# utils.DatasetConfig stays in comments\n' in text
  assert '# what is trained\n' in text
  assert "include 'models/t5_1_1/small.gin'\n" in text
  assert "include 't5x/configs/runs/pretrain.gin'\n" in text
  assert 'from t5wild.networks import transformer as network\n' in text
  assert '\ntrain/data.DatasetConfig.pack = False\n' in text
  part = (folder / 'ours/parts/size.gin').read_text()
  assert part.startswith('# A part.\nfrom __gin__ import dynamic_registration')
  assert part.endswith('\nnetwork.T5Config.emb_dim = 64\n')


def test_a_file_that_no_run_reads_yet_is_written(folder):
  _write(folder, 'big.gin', "include 't5x/examples/t5/byt5/large.gin'\n")
  _copy(folder)
  text = (folder / 'ours/big.gin').read_text()
  assert text == f"{_HEAD}include 'models/byt5/large.gin'\n"


def test_paths_may_be_relative(folder, monkeypatch):
  _write(folder, 'run.gin', _RECIPES['pretrain'], _TASK)
  _copy(folder)
  monkeypatch.chdir(folder)
  copy = clean_copy.write(migrate.check(['theirs']), ['theirs'], 'again')
  for path in copy.written:
    assert (folder / 'again' / path).read_text() == (
        folder / 'ours' / path
    ).read_text()
  assert 'run.gin' in copy.written


def test_a_part_given_after_others_gets_the_imports_of_its_names(folder):
  _write(folder, 'run.gin', _RECIPES['pretrain'], _TASK)
  (folder / 'theirs/alone.gin').write_text('infer_eval/utils.DatasetConfig:\n'
                                           '  batch_size = 4\n')
  copy = _copy(folder)
  assert 'alone.gin' in copy.written
  assert (folder / 'ours/alone.gin').read_text() == (
      f'{_HEAD}from t5wild import data\n\ninfer_eval/data.DatasetConfig:\n'
      '  batch_size = 4\n'
  )


def test_a_recipe_that_does_not_run_is_left_out(folder):
  path = _write(folder, 'bad.gin', 'from t5x import utils\nutils.No.x = 1\n')
  copy = _copy(folder)
  assert str(path) in copy.left_out
  assert not (folder / 'ours/bad.gin').exists()


def test_a_recipe_that_only_lacks_packages_is_written(folder):
  text = _RECIPES['moved'] + '        import not_installed.tasks\n'
  _write(folder, 'run.gin', text, _TASK)
  assert 'run.gin' in _copy(folder).written
  assert 'import not_installed.tasks\n' in (
      folder / 'ours/run.gin'
  ).read_text()


def test_nothing_is_written_where_the_copy_would_differ(folder, monkeypatch):
  _write(folder, 'run.gin', _RECIPES['moved'], _TASK)
  text_of = clean_gin.text_of
  monkeypatch.setattr(
      clean_gin, 'text_of',
      lambda *given: text_of(*given).replace('= 0.7', '= 0.8'),
  )
  with pytest.raises(clean_copy.DifferentRecipeError, match='decay_rate'):
    _copy(folder)
  assert not (folder / 'ours').exists()


def test_nothing_is_overwritten(tmp_path):
  assert clean_copy.problem_of(str(tmp_path / 'new')) is None
  assert clean_copy.problem_of(str(tmp_path)) is None
  (tmp_path / 'a').touch()
  assert 'not empty' in clean_copy.problem_of(str(tmp_path))
  assert 'not empty' in clean_copy.problem_of(str(tmp_path / 'a'))


def test_two_files_of_one_place_are_refused(folder):
  paths = []
  for name in ('a', 'b'):
    (folder / name).mkdir()
    paths.append(str(folder / name / 'run.gin'))
    (folder / name / 'run.gin').write_text('A = 1\n')
  with pytest.raises(clean_copy.DifferentRecipeError, match='run.gin'):
    clean_copy.write(migrate.check(paths), paths, str(folder / 'ours'))
