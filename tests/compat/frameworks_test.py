# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A command that is given another framework's configuration says whose."""

from absl import flags
import pytest

from t5wild import command_line
from t5wild import gin_utils
from t5wild.compat import frameworks


@pytest.mark.parametrize(
    ('name', 'text', 'framework'),
    [
        (
            'a.gin',
            'import mesh_tensorflow.transformer.utils\nutils.run.x = 1\n',
            'Mesh-TensorFlow',
        ),
        ('b.gin', 'from ddsp.training import trainers\n', 'DDSP'),
        ('c.yaml', 'base_emb_dim: 3\nper_device_batch_size: 2\n', 'MaxText'),
    ],
)
def test_whose_a_file_is_is_told(tmp_path, name, text, framework):
  path = tmp_path / name
  path.write_text(text)
  told = frameworks.told_of_files([str(path), str(tmp_path / 'absent.gin')])
  assert told.startswith(f'{path} is a configuration of {framework}')
  assert 'do: write it anew' in told


def test_nothing_is_told_of_a_recipe_of_t5x(tmp_path):
  path = tmp_path / 'a.gin'
  path.write_text('import ddsp\nfrom t5x import utils\n')
  assert frameworks.told_of_files([str(path)]) == ''


def test_a_binary_tells_it_before_what_is_wrong(tmp_path, monkeypatch):
  path = tmp_path / 'a.gin'
  path.write_text('import trax.models\ntrax.x = 3\n')
  values = flags.FlagValues()
  flags.DEFINE_multi_string('gin_file', [str(path)], '', values)
  flags.DEFINE_list('gin_search_paths', [], '', values)
  flags.DEFINE_multi_string('gin_bindings', [], '', values)
  values(['binary'])
  monkeypatch.setattr(flags, 'FLAGS', values)
  with pytest.raises(gin_utils.GinError) as caught:
    command_line.parse_gin()
  first, _, rest = str(caught.value).partition('\n')
  assert first == f'{path} is a configuration of Trax, no recipe of T5X.'
  assert 'a.gin:1' in rest
