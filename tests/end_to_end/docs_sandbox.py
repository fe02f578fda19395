# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A folder in which the docs' commands run as they stand, only smaller."""

import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import sysconfig

from tests.end_to_end import t5x_recipe_test

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 4
_TIMEOUT_SECONDS = 900  # several runs in a block, on a busy machine

# Stands before t5wild on PATH: the same command, trained for a few steps on a
# few files. What docs write for "your own arguments" is left out.
_WRAPPER = '''#!{python}
import os, re, sys
arguments = [a for a in sys.argv[1:] if a not in ('...', '--gin.MODEL_DIR=...')]
line = ' '.join(arguments)
if line.startswith('quickstart'):
  if '--steps' not in line:
    arguments += ['--steps', '{steps}']
  arguments += ['--text', {texts!r}]  # one place for all copies of this folder
elif arguments[0] == 'cache' or line.startswith('data inspect --gin_file'):
  arguments += ['--gin.TEXT=my_texts']
elif arguments[0] == 'sweep':
  arguments += [
      "--gin.sweep.Sweep.values={{'adafactor.Adafactor.beta1': [None]}}",
      "--gin.sweep.Sweep.bindings={{'TRAIN_STEPS': 2, 'TEXT': 'my_texts', "
      "'local_text.text_task.name': 'python_stdlib', "
      "'train_script.train.eval_period': 2}}",
  ]
elif arguments[0] == 'train' or '--run_mode=train' in line:
  given = re.findall(r'TRAIN_STEPS=(\\d+)', line)
  if not given or int(given[-1]) > 100:
    steps = {steps} + 2 * ('finetune' in line)
    arguments += ['--gin.TRAIN_STEPS=%d' % steps]
  if 'finetune_function' in line and 'INITIAL' not in line:
    path = 't5wild_quickstart/checkpoint_{steps}'
    arguments += ['--gin.INITIAL_CHECKPOINT_PATH=' + path]
  if 'sources/' not in line and re.search(
      'recipes/(quickstart|.*_text|comparison)[.]gin', line
  ):
    arguments += ['--gin.TEXT=my_texts']
os.execv({python!r}, [{python!r}, '-m', 't5wild.cli', *arguments])
'''
_SCRIPT = '''
from absl import app, flags
from t5x import models

flags.DEFINE_integer('my_flag', 0, 'A flag of my own.')

def main(_):
  print(flags.FLAGS.my_flag, models.EncoderDecoderModel.__name__)

if __name__ == '__main__':
  app.run(main)
'''
_MY_DATA = '''
from __gin__ import dynamic_registration
from t5wild.tasks import local_text

include 'runs/finetune.gin'
MIXTURE_OR_TASK_NAME = @local_text.text_task()
local_text.text_task.paths = 'my_texts'
TASK_FEATURE_LENGTHS = {'inputs': 64, 'targets': 32}
TRAIN_STEPS = 2
DROPOUT_RATE = 0.0
BATCH_SIZE = 8
'''
_MY_TASKS = '''
from t5wild.tasks import local_text

local_text.add_local_text_task('my_task', 'my_texts', held_out_fraction=0.2)
'''
_PAIR = {'question': 'What is it?', 'context': 'A text.', 'answer': 'a text'}
# What the docs name as the reader's own.
_FILES = {
    'prompts.txt': 'import <extra_id_0>\n',
    'texts.txt': 'def __init_<extra_id_0>(self):\n',
    'in.jsonl': '{"inputs": "import <extra_id_0>"}\n',
    'my_script.py': _SCRIPT,
    'my_data.gin': _MY_DATA,
    'my_project/my_run.gin': t5x_recipe_test.RECIPE.replace(
        '%TEXT', "'my_texts'"
    ),
    'my_project/my_models.py': 'from t5x import models\n',
    'my_project/tasks.py': _MY_TASKS,
    'my_pairs.jsonl': f'{json.dumps(_PAIR)}\n' * 40,
    'my_pairs/a.jsonl': f'{json.dumps(_PAIR)}\n' * 40,
    'wikitext/train.jsonl': '{"text": "A text about something."}\n' * 200,
}
_GIN_FILE = re.compile(r'`(\w+\.gin)`[^`]*```gin\n(.*?)^```$',
                       re.DOTALL | re.MULTILINE)


def blocks(page: pathlib.Path) -> list[str]:
  """The shell commands of a page, a text for each block."""
  return [text for language, text in _code(page) if language == 'sh']


def other_code(page: pathlib.Path) -> list[str]:
  """The lines of a page's code that is of no language, or only indented."""
  lines = [
      line
      for language, text in _code(page)
      if not language
      for line in text.splitlines()
  ]
  for line in page.read_text(encoding='utf-8').splitlines():
    if line.startswith('    t5wild '):
      lines.append(line.strip())
  return lines


def _code(page):
  """Language and text of each block between fences."""
  found, language, lines = [], None, []
  for line in page.read_text(encoding='utf-8').splitlines(keepends=True):
    if not line.startswith('```'):
      lines.append(line)
    elif language is None:
      language, lines = line[3:].strip(), []
    else:
      found.append((language, ''.join(lines)))
      language = None
  return found


def _make_vocabulary(path: pathlib.Path, texts: pathlib.Path) -> None:
  import sentencepiece

  sentencepiece.SentencePieceTrainer.train(
      input=','.join(map(str, sorted(texts.iterdir()))),
      model_prefix=str(path.with_suffix('')), vocab_size=200, pad_id=0,
      eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
  )  # fmt: skip


def make(folder: pathlib.Path) -> None:
  """Fills a folder with what the docs take for granted."""
  bin_folder = folder / 'bin'
  bin_folder.mkdir(parents=True)
  wrapper = bin_folder / 't5wild'
  texts = folder / 'my_texts'
  wrapper.write_text(
      _WRAPPER.format(python=sys.executable, steps=STEPS, texts=str(texts))
  )
  wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
  (bin_folder / 'python').symlink_to(sys.executable)
  texts.mkdir()
  library = pathlib.Path(sysconfig.get_path('stdlib'))
  for path in sorted(library.glob('*.py'))[:16]:
    text = path.read_text(encoding='utf-8', errors='replace')[:2000]
    (texts / f'{path.stem}.txt').write_text(text, encoding='utf-8')
  _make_vocabulary(folder / 'v.model', texts)
  for name, text in _FILES.items():
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding='utf-8')
  (folder / 'tools').symlink_to(ROOT / 'tools')
  readme = (ROOT / 'README.md').read_text(encoding='utf-8')
  for name, text in _GIN_FILE.findall(readme):
    text = re.sub('TRAIN_STEPS = .*', f'TRAIN_STEPS = {STEPS}', text)
    (folder / name).write_text(text, encoding='utf-8')


def run(folder: pathlib.Path, text: str) -> subprocess.CompletedProcess:
  """Runs the commands of a block in the folder, up to the first that fails."""
  environment = {k: v for k, v in os.environ.items() if k != 'XLA_FLAGS'}
  environment |= {
      'PATH': f'{folder / "bin"}:{os.environ["PATH"]}', 'COLUMNS': '100',
  }
  return subprocess.run(
      ['bash', '-eo', 'pipefail', '-c', text],
      cwd=folder,
      env=environment,
      stdin=subprocess.DEVNULL,
      capture_output=True,
      text=True,
      check=False,
      timeout=_TIMEOUT_SECONDS,
  )
