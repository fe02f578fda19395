# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""gin configurations as a run meets them: parsed, called, written down."""

import sys

from absl import flags
import gin
import pytest

from t5wild import gin_utils


def _parse(*files, flag=(), **options):
  gin_utils.parse_gin_flags(['.'], list(files), list(flag), **options)


def _train(toy):
  return gin.get_configurable(toy.train)()


def test_later_files_and_flags_win(toy, write):
  write('a.gin', 'SIZE = 1\ntoy.train.model = @toy.Model()\n'
        'toy.Model.size = %SIZE\ntoy.Model.rate = 0.5')
  write('b.gin', "include 'a.gin'\nSIZE = 2")
  write('c.gin', 'SIZE = 3')
  _parse('b.gin', finalize_config=False)
  assert _train(toy)['model'].size == 2
  gin.clear_config()
  _parse('b.gin', 'c.gin', finalize_config=False)
  assert _train(toy)['model'].size == 3
  gin.clear_config()
  _parse('b.gin', 'c.gin', flag=['SIZE=4', 'SIZE=5'])
  assert _train(toy)['model'].size == 5
  assert _train(toy)['model'].rate == 0.5


def test_an_include_holds_where_it_stands(toy, write):
  write('a.gin', 'toy.Model.size = 1\ntoy.Model.rate = 1.0', head=True)
  write('b.gin', """
      toy.Model.size = 2
      include 'a.gin'
      toy.Model.rate = 2.0
      toy.train.model = @toy.Model()
  """)
  _parse('b.gin')
  model = _train(toy)['model']
  assert (model.size, model.rate) == (1, 2.0)


@pytest.mark.parametrize(
    ('flag', 'expected'),
    [
        ("toy.train.model_dir='x'", 'x'),
        ('toy.train.model_dir=x', 'x'),
        ('toy.train.model_dir=/tmp/x', '/tmp/x'),
        ('toy.train.model_dir=gs://bucket/x.y', 'gs://bucket/x.y'),
        ('train.model_dir=x', 'x'),
        ('t5wild.toy.train.model_dir=x', 'x'),
    ],
)
def test_a_string_flag_needs_no_quotes_and_a_short_name_is_enough(
    toy, write, flag, expected
):
  write('a.gin', 'toy.train.model = @toy.Model()')
  _parse('a.gin', flag=[flag])
  assert _train(toy)['model_dir'] == expected


def test_flags_reach_scopes_and_references(toy, write):
  write('a.gin', """
      toy.train.model = @toy.Model()
      toy.train.data = @train/toy.DatasetConfig()
  """)
  _parse('a.gin', flag=[
      'train/utils.DatasetConfig.batch_size=8',
      "DatasetConfig.lengths={'inputs': 4}",
      'train.evaluation=[@eval/DatasetConfig(), @toy.strict]',
      'eval/DatasetConfig.name=other',
      'toy.strict.steps=7',
  ])
  result = _train(toy)
  assert result['data'].batch_size == 8
  assert result['data'].lengths == {'inputs': 4}
  assert result['evaluation'][0].name == 'other'
  assert result['evaluation'][0].batch_size == 1
  assert result['evaluation'][1]() == 7


def test_the_main_module_may_be_named_by_its_alias_in_flags(
    toy, write, monkeypatch
):
  main = sys.modules['__main__']
  monkeypatch.setattr(main, 'train', toy.train, raising=False)
  write('a.gin', 'import __main__ as train_script\n'
        'train_script.train.model = @toy.Model()')
  _parse('a.gin', flag=['train_script.train.steps=9'])
  assert _train(toy)['steps'] == 9


def test_imports_and_includes_may_be_given_as_bindings(toy, write):
  write('a.gin', 'toy.train.model = @toy.Model()')
  _parse(flag=["include 'a.gin'", 'toy.train.steps=4'])
  assert _train(toy)['steps'] == 4


def test_nothing_is_bound_when_anything_is_refused(toy, write):
  write('a.gin', 'toy.Model.size = 3\ntoy.Model.sise = 4')
  with pytest.raises(gin_utils.GinError):
    _parse('a.gin')
  assert 'size' not in gin.config_str()


def test_names_registered_without_dynamic_registration_work(toy, write):
  write('a.gin', 'registry.registered.steps = x', head=False)
  write('b.gin', "registry.registered.steps = 'x'", head=False)
  write('c.gin', 'registry.registered.steps = 4', head=False)
  with pytest.raises(gin_utils.GinError, match='a.gin:1'):
    _parse('a.gin')
  with pytest.raises(gin_utils.GinError, match='b.gin:1'):
    _parse('b.gin')
  _parse('c.gin', finalize_config=False)
  assert gin.get_configurable(toy.registered)() == 4
  _parse(flag=['registered.steps=5'])
  assert gin.get_configurable(toy.registered)() == 5


def test_the_operative_config_holds_defaults_and_gives_the_same_run(
    toy, write, tmp_path
):
  write('a.gin', """
      STEPS = 3
      toy.train.model = @toy.Model()
      toy.train.data = @train/toy.DatasetConfig()
      toy.train.steps = %STEPS
      train/toy.DatasetConfig.batch_size = 8
      toy.DatasetConfig.name = 'shared'
  """)
  _parse('a.gin')
  gin_utils.summarize_gin_config(str(tmp_path / 'run'), None, 0)
  written = tmp_path / 'run' / 'operative_config.gin'
  text = written.read_text(encoding='utf-8')
  given = (tmp_path / 'run' / 'config.gin').read_text(encoding='utf-8')
  assert 'toy.train.steps = %STEPS' in given
  assert 'toy.Model.rate' not in given
  for line in (
      'toy.Model.size = 3', 'toy.Model.rate = 0.1', 'STEPS = 3',
      'toy.train.steps = %STEPS', "toy.train.model_dir = ''",
      'train/toy.DatasetConfig.batch_size = 8',
      "train/toy.DatasetConfig.name = 'shared'",
      'train/toy.DatasetConfig.shuffle = True',
  ):
    assert line in text.splitlines()
  first = _train(toy)
  gin.clear_config()
  _parse(str(written))
  second = _train(toy)
  assert first['data'] == second['data']
  assert first['steps'] == second['steps']
  assert gin_utils.operative_config_str() == text


class _Writer:

  def __init__(self):
    self.texts = []

  def write_text(self, step, name, text):
    self.texts.append((step, name, text))

  def flush(self):
    self.texts.append('flushed')


def test_the_operative_config_is_written_as_a_text_summary(
    toy, write, tmp_path
):
  _parse(write('a.gin', 'toy.Model.size = 4'))
  writer = _Writer()
  gin_utils.summarize_gin_config(str(tmp_path), writer, 5)
  (step, name, text), last = writer.texts
  assert (step, name, last) == (5, 'config', 'flushed')
  assert 'toy.Model.size = 4' in text


def test_t5x_functions_for_gin_files_give_their_values(toy, write):
  write('a.gin', """
      from t5wild import gin_utils
      toy.train.model = @toy.Model()
      toy.train.steps = @gin_utils.sum_fn()
      gin_utils.sum_fn:
        var1 = 2
        var2 = 3
      toy.train.fn = @gin_utils.string_split_fn()
      gin_utils.string_split_fn:
        text = 'a,b'
        separator = ','
        index = 1
      toy.train.evaluation = @gin_utils.bool_fn()
      gin_utils.bool_fn.var1 = ''
  """)
  _parse('a.gin')
  result = _train(toy)
  assert result['steps'] == 5
  assert result['fn'] == 'b'
  assert result['evaluation'] is False


def test_what_no_file_names_is_told_with_what_to_include(toy, write):
  def elsewhere():
    raise AssertionError('is not called')

  _parse(write('a.gin', 'toy.train.steps = 5'))
  assert gin_utils.configured(toy.train, mend='Include b.gin.')
  with pytest.raises(
      gin_utils.GinError,
      match=r'no gin file names .*elsewhere: expected .*\. Include b.gin\.',
  ):
    gin_utils.configured(elsewhere, mend='Include b.gin.')


def test_flags_are_defined_once(monkeypatch):
  values = flags.FlagValues()
  monkeypatch.setattr(flags, 'FLAGS', values)
  monkeypatch.setattr(
      flags, 'DEFINE_multi_string',
      lambda name, default, text: flags.DEFINE_multi(
          flags.ArgumentParser(), flags.ArgumentSerializer(), name, default,
          text, flag_values=values,
      ),
  )
  monkeypatch.setattr(
      flags, 'DEFINE_list',
      lambda name, default, text: flags.DEFINE(
          flags.ListParser(), name, default, text, flag_values=values
      ),
  )
  gin_utils.define_gin_flags()
  gin_utils.define_gin_flags()
  values(gin_utils.rewrite_gin_args([
      'x', '--gin_file=a', '--gin_file=b', '--gin.A=1',
      '--gin_search_paths=p,q',
  ]))
  assert values.gin_file == ['a', 'b']
  assert values.gin_bindings == ['A = 1']
  assert values.gin_search_paths == ['p', 'q']
