# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A folder for `transformers` is there whole or not at all."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from t5wild import convert
from t5wild import exit_codes
from t5wild.checkpoint_files import steps
from t5wild.checkpoints import conversion
from t5wild.checkpoints import formats
from t5wild.checkpoints import hf_writing
from t5wild.checkpoints import safetensors_files
from t5wild.checkpoints import stored
from tests.checkpoints import hf_recorded

MODELS = hf_recorded.read()


@pytest.fixture
def arrays(tmp_path):
  """The parameters of a T5."""
  hf_recorded.write_folder(tmp_path / 'source', MODELS['t5_1_1'])
  return formats.read_structure(tmp_path / 'source')


def test_large_models_are_several_files_and_an_index(
    tmp_path, monkeypatch, arrays
):
  monkeypatch.setattr(hf_writing, '_MOST_FILE_BYTES', 4000)
  folder = tmp_path / 'model'
  hf_writing.write(str(folder), arrays)
  files = sorted(folder.glob('*.safetensors'))
  assert len(files) > 2
  read = formats.read_structure(folder)
  assert read.keys() == arrays.keys()
  for key, array in arrays.items():
    np.testing.assert_array_equal(np.asarray(read[key]), np.asarray(array))
  index = json.loads((folder / 'model.safetensors.index.json').read_text())
  assert index['metadata']['total_size'] == sum(
      array.nbytes for key, array in arrays.items() if key != 'state/step'
  )
  files[1].unlink()
  with pytest.raises(steps.NotACheckpointError, match=files[1].name):
    formats.read_structure(folder)


def _make_run(folder):
  (folder / 'checkpoint_3' / 'state').mkdir(parents=True)


def _make_config(folder):
  folder.mkdir()
  (folder / 'config.gin').write_text('')


def _make_file(folder):
  folder.write_text('')


def _make_full(folder):
  folder.mkdir()
  (folder / 'notes.txt').write_text('')


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (_make_run, 'is a run directory'),
        (_make_config, 'is a run directory'),
        (_make_file, 'is a file'),
        (_make_full, r"holds \['notes.txt'\] already"),
    ],
)
def test_target_that_is_something_else_is_refused_and_left_alone(
    tmp_path, arrays, make, words
):
  target = tmp_path / 'target'
  make(target)
  before = sorted(tmp_path.rglob('*'))
  with pytest.raises(ValueError, match=words + '.*expected.*another'):
    hf_writing.write(str(target), arrays)
  assert sorted(tmp_path.rglob('*')) == before


def test_bucket_is_refused(arrays):
  with pytest.raises(ValueError, match='object store.*copy it'):
    hf_writing.write('gs://bucket/model', arrays)


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write everywhere')
def test_target_that_cannot_be_written_is_refused(tmp_path, arrays):
  tmp_path.chmod(0o500)
  with pytest.raises(steps.UnwritableError, match='expected.*--to'):
    hf_writing.write(str(tmp_path / 'model'), arrays)


def test_target_below_a_file_is_refused(tmp_path, arrays):
  (tmp_path / 'file').write_text('')
  with pytest.raises(steps.UnwritableError, match='expected.*--to'):
    hf_writing.write(str(tmp_path / 'file' / 'model'), arrays)


class _Failing(stored.InMemory):
  def read(self, index):
    raise OSError(28, 'No space left on device')


def test_full_disk_leaves_nothing_behind(tmp_path, arrays):
  key = 'target/decoder/logits_dense/kernel'
  arrays[key] = _Failing(np.asarray(arrays[key]), key=key)
  before = sorted(tmp_path.iterdir())
  with pytest.raises(steps.UnwritableError, match='No space.*expected.*free'):
    hf_writing.write(str(tmp_path / 'model'), arrays)
  assert sorted(tmp_path.iterdir()) == before


def test_what_killed_writers_left_is_told_by_size_and_kept(tmp_path, arrays):
  del arrays
  target = tmp_path / 'out' / 'model'
  assert not hf_writing.leftovers(str(target))  # There is no out yet.
  partial = target.parent / '.model.partial-x1'
  partial.mkdir(parents=True)
  (partial / 'model.safetensors').write_bytes(b'1' * 1234)
  (target.parent / '.model2.partial-x1').mkdir()
  said = []
  conversion.Conversion(
      source=str(tmp_path / 'source'), target=str(target), to_format='hf'
  ).run(said.append)
  (sentence,) = [s for s in said if '.partial-' in s]
  assert sentence == (
      f'{partial} (1,234 bytes) is an unfinished model: if no other process is '
      'writing it now, it may be removed.'
  )
  assert partial.is_dir()
  assert target.is_dir()


_KILLED = """
import os, signal, sys
from t5wild.checkpoints import formats, hf_writing
arrays = formats.read_structure(sys.argv[1])
write = os.fsync
files = []
def fsync(file):
  write(file)
  files.append(file)
  if len(files) == int(sys.argv[3]):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
hf_writing._MOST_FILE_BYTES = 8000
hf_writing.write(sys.argv[2], arrays)
"""


@pytest.mark.slow  # Imports everything once more.
def test_killed_half_way_there_is_no_folder_that_looks_whole(tmp_path, arrays):
  del arrays
  target = tmp_path / 'out' / 'model'
  done = subprocess.run(
      [sys.executable, '-c', _KILLED, str(tmp_path / 'source'), str(target),
       '3'],
      env=dict(os.environ, JAX_PLATFORMS='cpu'),
      check=False,
  )  # fmt: skip
  assert done.returncode == -signal.SIGKILL
  (partial,) = target.parent.iterdir()
  assert partial.name.startswith('.model.partial-')
  assert len(list(partial.glob('*.safetensors'))) == 3
  assert not steps.is_hugging_face(partial)


def test_numbers_that_are_not_finite_are_told(tmp_path, arrays, capsys):
  del arrays
  file = str(tmp_path / 'source' / 'model.safetensors')
  weights = hf_recorded.make_weights(MODELS['t5_1_1']['shapes'])
  weights['shared.weight'][3, 4] = np.nan
  safetensors_files.write_file(
      file, {k: stored.InMemory(v, key=k) for k, v in weights.items()}
  )
  code = convert.main(
      ['--from', str(tmp_path / 'source'), '--to', str(tmp_path / 'out'),
       '--to_format=hf']
  )  # fmt: skip
  assert code == exit_codes.DONE.code
  assert "'shared.weight'" in capsys.readouterr().out


def test_network_that_transformers_lacks_is_refused_by_its_values(
    tmp_path, arrays
):
  network = {
      'positions': 'relative_bias', 'scale_queries': True, 'num_kv_heads': 1,
      'num_heads': 2,
  }  # fmt: skip
  with pytest.raises(ValueError, match='scale_queries.*num_kv_heads.*expected'):
    hf_writing.write(str(tmp_path / 'model'), arrays, network=network)
  assert not (tmp_path / 'model').exists()


def test_config_to_be_like_may_be_of_another_head_and_name_programs(
    tmp_path, arrays
):
  template = MODELS['t5_1_1']['config'] | {
      'architectures': None, 'auto_map': {'AutoModel': 'program.Model'},
      'torch_dtype': 'float16',
  }  # fmt: skip
  written = hf_writing.write(str(tmp_path / 'm'), arrays, template=template)
  config = json.loads((tmp_path / 'm' / 'config.json').read_text())
  assert config == written.config
  assert config['architectures'] == ['T5ForConditionalGeneration']
  assert config['dtype'] == 'float32'
  assert not {'auto_map', 'torch_dtype'} & config.keys()


def test_parameters_of_another_shape_are_told_on_both_sides(tmp_path, arrays):
  network = MODELS['t5_1_1']['config'] | {'d_ff': 25}
  with pytest.raises(
      ValueError, match=r'wi_0/kernel: \[16, 24\] in.*, \[16, 25\] by'
  ):
    hf_writing.write(str(tmp_path / 'model'), arrays, template=network)


def test_decoder_without_a_network_is_refused_with_the_mend(tmp_path):
  hf_recorded.write_folder(tmp_path / 'source', MODELS['llama_2'])
  read = formats.read_structure(tmp_path / 'source')
  with pytest.raises(ValueError, match='--run.*--like'):
    hf_writing.write(str(tmp_path / 'model'), read)


def test_family_of_the_other_kind_is_refused(tmp_path, arrays):
  with pytest.raises(ValueError, match="'llama'.*expected one of.*'umt5'"):
    hf_writing.write(str(tmp_path / 'model'), arrays, family='llama')
