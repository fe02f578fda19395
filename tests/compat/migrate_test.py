# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe runs unchanged if every binding is read; else it is told why."""

import pathlib
import sys
import textwrap

import pytest

from t5wild.compat import alias_modules
from t5wild.compat import finder
from t5wild.compat import gin_files
from t5wild.compat import migrate
from t5wild.compat import recipe_modules
from t5wild.compat import t5_alias
from t5wild.compat import t5_finder
from t5wild.gin_config import reader
from tests import gin_registry

_HEAD = 'from __gin__ import dynamic_registration\n'
_GOOD = """
    import __main__ as train_script
    from t5x import models
    from t5x import utils
    include 't5x/examples/t5/t5_1_1/tiny.gin'
    include 't5x/configs/runs/pretrain.gin'
    MIXTURE_OR_TASK_NAME = 'my_task'
    train_script.train.eval_period = 3
    utils.SaveCheckpointConfig.keep = 2
    models.EncoderDecoderModel.predict_batch_with_aux.num_decodes = 4
"""


@pytest.fixture
def write(t5x_names, monkeypatch, tmp_path):
  """Writes a file of the recipe's folder; returns its path."""
  gin_registry.forget()
  monkeypatch.setattr(reader, '_SOURCES', [gin_files.text_of])

  def write_file(name, text, *, head=_HEAD):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + textwrap.dedent(text))
    return str(path)

  return write_file


def _only(path):
  (report,) = migrate.check([path])
  return report


def test_a_recipe_in_t5x_words_runs_unchanged(write):
  report = _only(write('good.gin', _GOOD))
  assert report.faults == ()
  assert report.runs_unchanged


def test_what_flags_are_to_set_is_no_fault_and_is_told(write):
  report = _only(write('run.gin', "include 't5x/configs/runs/pretrain.gin'\n"))
  assert report.runs_unchanged
  assert any('%MODEL' in need for need in report.needs)


@pytest.mark.parametrize(
    ('line', 'place', 'message'),
    [
        ('utils.DatasetConfig.batchsize = 3', ':3:', "'batch_size'"),
        ('utils.DatasetConfi.batch_size = 3', ':3:', "'DatasetConfig'"),
        ('from t5x.contrib.moe import models', ':3:', 'mixtures of experts'),
        ('import not_installed.tasks', ':3:', 'not_installed is not installed'),
    ],
)
def test_what_is_missing_is_told_with_its_line(write, line, place, message):
  report = _only(write('bad.gin', f'from t5x import utils\n{line}\n'))
  assert not report.runs_unchanged
  assert place in str(report.faults[0])
  assert message in str(report.faults[0])


def test_code_beside_the_recipe_is_never_run(write, tmp_path):
  write('my_tasks.py', "raise RuntimeError('was run')\n", head='')
  report = _only(write('good.gin', _GOOD + '    import my_tasks\n'))
  assert report.runs_unchanged
  assert report.own_modules == ('my_tasks',)
  assert 'my_tasks' not in sys.modules


@pytest.mark.parametrize('head', [_HEAD, ''])
def test_a_binding_of_code_that_was_not_read_rests_on_it(write, head):
  write('my_models.py', 'class Model: pass\n', head='')
  text = 'import my_models\nmy_models.Model.size = 3\n'
  report = _only(write('a.gin', text, head=head))
  assert report.verdict == 'rests on code of its own'
  (fault,) = report.faults
  assert 'this is of my_models, code of the recipe' in fault.what
  assert fault.text == 'my_models.Model.size = 3'
  text += 'from t5x import utils\nutils.Nothing.size = 3\n'
  report = _only(write('b.gin', text))
  assert report.verdict == 'does not run'


def test_a_forks_own_modules_are_code_of_the_recipe(write):
  write('t5x/__init__.py', "raise RuntimeError('was run')\n", head='')
  write('t5x/my_tasks.py', "raise RuntimeError('was run')\n", head='')
  report = _only(write('good.gin', _GOOD + '    import t5x.my_tasks\n'))
  assert report.runs_unchanged
  assert report.own_modules == ('t5x.my_tasks',)
  for name in ('t5x.no_tasks', 't5x.contrib.moe.models'):
    assert not _only(write('b.gin', _GOOD + f'    import {name}\n')).own_modules


@pytest.mark.parametrize('hide', [False, True])
def test_a_fork_on_the_path_is_not_run_and_its_names_are_ours(
    write, tmp_path, monkeypatch, no_names, hide
):
  monkeypatch.syspath_prepend(tmp_path)
  for name in ('__init__', 'models', 'utils', 'my_tasks'):
    write(f't5x/{name}.py', "raise RuntimeError('was run')\n", head='')
  finder.install(hide=hide)
  report = _only(write('good.gin', _GOOD + '    import t5x.my_tasks\n'))
  assert report.runs_unchanged
  assert report.own_modules == ('t5x.my_tasks',)
  assert not [name for name in sys.modules if name.startswith('t5x.m')]


def test_t5s_names_are_ours_where_t5_is_absent(write, monkeypatch):
  if t5_finder.has_t5():
    pytest.skip('t5 is installed')
  ours = alias_modules.AliasFinder(t5_alias.TABLE)
  monkeypatch.setattr(sys, 'meta_path', [ours, *sys.meta_path])
  report = _only(write('a.gin', _GOOD + '    import t5.data.mixtures\n'))
  assert report.faults == report.own_modules == ()
  (fault,) = _only(write('b.gin', 'import t5.data.mixtur\n')).faults
  assert "did you mean 't5.data.mixtures'" in fault.what


def test_every_spelling_of_an_import_of_t5x_is_known(write):
  report = _only(
      write(
          'a.gin',
          'import t5x.examples.t5.network\nimport t5x.utils as u\n'
          't5x.examples.t5.network.T5Config.emb_dim = 3\n'
          'u.SaveCheckpointConfig.keep = 3\n',
      )
  )
  assert report.faults == ()


def test_a_parameter_that_only_kwargs_would_take_is_a_fault(write, monkeypatch):
  def passes_on(known=1, **kwargs):
    return known, kwargs

  monkeypatch.setitem(
      sys.modules, 't5wild.passing', type(sys)('t5wild.passing')
  )
  sys.modules['t5wild.passing'].passes_on = passes_on
  text = 'import t5wild.passing as p\np.passes_on.{} = 2\n'
  assert _only(write('a.gin', text.format('known'))).runs_unchanged
  report = _only(write('b.gin', text.format('other')))
  assert "declares no parameter 'other'" in str(report.faults[0])


def test_a_part_runs_as_the_part_of_files_that_do(write, tmp_path):
  part = write('parts/size.gin', 'short.T5Config.emb_dim = 4\n', head='')
  assert not _only(part).runs_unchanged
  whole = write(
      'whole.gin',
      'from t5x.examples.t5 import network as short\n'
      "short.T5Config.head_dim = 2\ninclude 'parts/size.gin'\n",
  )
  reports = {each.path: each for each in migrate.check([str(tmp_path)])}
  assert reports[part].runs_unchanged
  assert reports[part].includers == (whole,)


@pytest.mark.parametrize(
    ('text', 'after'),
    [
        ('network.T5Config.emb_dim = 4', 't5x/examples/t5/t5_1_1/base.gin'),
        (
            'TRAIN_STEPS = 3\nnetwork.TransformerConfig:\n  num_heads = 2',
            't5x/examples/decoder_only/models/base.gin',
        ),
        (
            'infer_eval/utils.DatasetConfig.batch_size = 4',
            't5x/configs/runs/finetune.gin',
        ),
    ],
)
def test_a_part_goes_by_the_names_of_files_that_it_is_given_after(
    write, text, after
):
  report = _only(write('part.gin', f'{text}\n', head=''))
  assert report.runs_unchanged
  assert after in ' '.join(report.after)


@pytest.mark.parametrize(
    'text', ['network.T5Config.emb_dims = 4', 'network.T6Config.emb_dim = 4']
)
def test_a_part_that_binds_what_is_not_there_does_not_run(write, text):
  report = _only(write('part.gin', f'{text}\n', head=''))
  assert not report.runs_unchanged
  assert report.after == ()


def test_a_package_that_is_not_installed_is_all_that_is_missing(write):
  report = _only(write('a.gin', _GOOD + '    import not_installed.tasks\n'))
  assert report.verdict == 'runs once installed'
  assert report.missing_packages == ('not_installed',)
  used = _GOOD + '    import not_installed as n\n    n.f.x = 1\n'
  assert _only(write('b.gin', used)).verdict == 'does not run'


def test_lines_that_need_a_failed_import_point_at_it(write):
  text = 'from t5x import export_lib\nexport_lib.save.batch_size = 3\n'
  first, second = _only(write('a.gin', text)).faults
  assert (first.line, first.follows_from) == (2, None)
  assert (second.line, second.follows_from) == (3, 2)


def test_no_package_is_imported_to_find_an_included_file(
    write, tmp_path, monkeypatch
):
  monkeypatch.syspath_prepend(tmp_path / 'path')
  write('path/theirs/__init__.py', "raise RuntimeError('was run')", head='')
  write('path/theirs/configs/__init__.py', "raise RuntimeError()", head='')
  write('path/theirs/configs/a.gin', _GOOD)
  report = _only(write('b/b.gin', "include 'theirs/configs/a.gin'\n"))
  assert report.runs_unchanged
  write('path/theirs/tasks.py', "raise RuntimeError('was run')", head='')
  report = _only(write('b/c.gin', _GOOD + '    import theirs.tasks\n'))
  assert report.own_modules == ('theirs.tasks',)
  assert 'theirs' not in sys.modules


@pytest.mark.parametrize(
    ('imports', 'framework'),
    [
        ('import trax.models', 'Trax'),
        ('import ddsp.training', 'DDSP'),
        ('import mesh_tensorflow.optimize\nimport t5.models.mesh', 'Mesh'),
    ],
)
def test_a_gin_file_of_another_framework_is_told_so(write, imports, framework):
  report = _only(write('a.gin', f'{imports}\nModel.depth = 512\n', head=''))
  assert report.verdict == 'of another framework'
  (fault,) = report.faults
  assert framework in fault.what
  assert 'docs/recipes.md' in fault.do


@pytest.mark.parametrize(
    ('name', 'text', 'framework'),
    [
        ('base.yml', 'per_device_batch_size: 12.0\n', 'MaxText'),
        ('a.toml', '[model]\nflavor = "8B"\n', 'torchtitan'),
        ('config.json', '{"model_type": "t5"}', 'Hugging Face'),
        ('named.gin', 'base_emb_dim: 2048\n', 'MaxText'),
        ('plain.yaml', 'a: 3\n', 'another framework'),
    ],
)
def test_a_configuration_that_is_no_gin_is_told_so(
    write, name, text, framework
):
  report = _only(write(name, text, head=''))
  assert report.verdict == 'of another framework'
  assert framework in report.faults[0].what


def test_a_file_that_imports_nothing_may_be_of_either(write):
  report = _only(write('a.gin', 'Config.batch_size = 4096\n', head=''))
  assert 'imports nothing' in report.faults[0].what
  assert report.faults[1].line == 1


def test_bytes_that_are_no_text_are_one_fault(write, tmp_path):
  for name in ('a.gin', 'a.py', 'a.yaml'):
    (tmp_path / name).write_bytes(b'\xff\xfe\x00')
    report = _only(str(tmp_path / name))
    assert [each.kind for each in report.faults] == ['unreadable']


def test_an_installed_package_that_fails_is_a_fault(write, monkeypatch):
  def fail(name):
    raise AttributeError(f'numpy.bool, in {name}')

  monkeypatch.setattr(recipe_modules, '_is_installed', lambda root: True)
  monkeypatch.setattr(recipe_modules.importlib, 'import_module', fail)
  report = _only(write('a.gin', 'import old_package\n'))
  assert 'old_package is installed, and fails' in report.faults[0].what


@pytest.mark.parametrize(
    'module', ['unittest.__main__', 'this', 'antigravity', 'idlelib.idle']
)
def test_a_program_that_a_recipe_imports_is_not_run(write, monkeypatch, module):
  def run(name):
    raise NotImplementedError(f'{name} is run')

  monkeypatch.setattr(recipe_modules.importlib, 'import_module', run)
  report = _only(write('a.gin', f'import {module}\n'))
  assert f'{module} is a program, which is not run' in report.faults[0].what


def test_a_module_that_ends_python_is_a_fault_and_prints_nothing(
    write, monkeypatch, capsys
):
  def end(name):
    print(f'{name} ends')  # noqa: T201 -- as a module does
    raise SystemExit(3)

  monkeypatch.setattr(recipe_modules, '_is_installed', lambda root: True)
  monkeypatch.setattr(recipe_modules.importlib, 'import_module', end)
  report = _only(write('a.gin', 'import some_program\n'))
  assert 'some_program is installed, and fails' in report.faults[0].what
  assert capsys.readouterr().out == ''


def test_python_is_judged_by_names_and_by_keywords(write):
  path = write(
      'a.py',
      """\
      from t5x import utils
      config = utils.SaveCheckpointConfig(keep=1, kep=2)
      utils.DatasetConfi
      """,
      head='',
  )
  report = _only(path)
  assert report.verdict == 'does not run'
  assert [(each.line, each.kind) for each in report.faults] == [
      (2, 'parameter'), (3, 'name'),
  ]
  assert "did you mean 'keep'" in report.faults[0].what
  assert "did you mean 'DatasetConfig'" in report.faults[1].what
  assert [each.t5wild for each in report.names] == [
      't5wild.checkpoints.SaveCheckpointConfig'
  ]


def test_a_folder_means_its_gin_files_and_the_python_of_t5x(write, tmp_path):
  for name in ('b/a.gin', 'b/a.yaml', 'b/plain.py', 'b/theirs.py'):
    write(name, 'import t5x\n' if 'theirs' in name else '', head='')
  found = [pathlib.Path(r.path).name for r in migrate.check([str(tmp_path)])]
  assert found == ['a.gin', 'theirs.py']


def test_code_of_t5x_that_cannot_be_parsed_is_not_passed_over(write, tmp_path):
  write('ours.py', "print 'old'\n", head='')
  write('theirs.py', "from t5x import models\nprint 'old'\n", head='')
  (report,) = migrate.check([str(tmp_path)])
  assert report.path.endswith('theirs.py')
  assert [each.kind for each in report.faults] == ['unreadable']


def test_text_that_is_no_gin_is_one_fault(write):
  report = _only(write('a.gin', 'a: b: c\n', head=''))
  assert len(report.faults) == 1
  assert 'this is no gin statement' in str(report.faults[0])
