# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild data inspect`: what a task, a file or a cache holds, shown.

  t5wild data inspect CACHE                    what `t5wild cache` wrote
  t5wild data inspect my_pairs.jsonl --inputs=question --targets=answer
  t5wild data inspect FOLDER                   text, tables, a Hugging Face data
                                               set, a cache of seqio
  t5wild data inspect my_task --module=my_project.tasks
  t5wild data inspect --gin_file=recipes/quickstart.gin

Prints tables, and the first rows with their boundaries and masks drawn; --out
writes a page and a picture, too. Needs no accelerator, and neither seqio nor
TensorFlow but for live tasks.
"""

import argparse
import ast
from collections.abc import Sequence
import os
import sys
from typing import Any

import jax
from rich import console as console_lib

from t5wild import command_line
from t5wild import exit_codes
from t5wild import gin_utils
from t5wild import run_config
from t5wild.data import datasets
from t5wild.data import providers
from t5wild.inspecting import cache_subjects
from t5wild.inspecting import file_subjects
from t5wild.inspecting import inspection
from t5wild.inspecting import page
from t5wild.inspecting import picture
from t5wild.inspecting import recipe
from t5wild.inspecting import subject as subject_lib
from t5wild.inspecting import task_subjects
from t5wild.inspecting import terminal

_PAGE, _PICTURE = 'inspect.html', 'inspect.png'
_COLUMN_FLAGS = {'inputs': 'inputs', 'targets': 'targets', 'text_field': 'text'}


def main(argv: Sequence[str] | None = None) -> int:
  """Inspects what the command line says; `argv` without the program's name."""
  given = list(sys.argv[1:] if argv is None else argv)
  if not given or given[0] != 'inspect':
    wants_help = bool(given) and given[0] in ('-h', '--help', 'help')
    text = _WHAT if wants_help else f'{_unknown(given)}\n\n{_WHAT}'
    _say(text, stream=sys.stdout if wants_help else sys.stderr)
    return (
        exit_codes.DONE.code if wants_help else exit_codes.BAD_CONFIG.code
    )
  arguments = _parser().parse_args(gin_utils.rewrite_gin_args(given[1:]))
  # The accelerators of this machine may be in use, and none is needed.
  jax.config.update('jax_platforms', 'cpu')
  try:
    _inspect(arguments)
  except (ValueError, LookupError, OSError, TypeError) as error:
    _say(command_line.complaint(error), stream=sys.stderr)
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


_WHAT = (
    'usage: t5wild data inspect WHAT [arguments]\n\n'
    '  inspect  show examples, masks and boundaries, and statistics of a task, '
    'a file or a cache\n\n'
    '`t5wild data inspect --help` says more.'
)


def _unknown(given: Sequence[str]) -> str:
  said = repr(given[0]) if given else 'nothing'
  return f"`t5wild data` was given {said}: expected 'inspect'."


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild data inspect',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('what', nargs='?', metavar='WHAT',
      help='a path, or the name of a task or mixture')
  add('--module', help='module to import first, which registers the task')
  add('--gin_file', action='append', default=[],
      help='a recipe, whose training data are shown; --gin.NAME=value too')
  add('--gin_bindings', action='append', default=[], help=argparse.SUPPRESS)
  add('--gin_search_paths', action='append', default=[])
  add('--split', help="'train' if not given, or the first there is")
  add('--task_feature_lengths', type=_literal, metavar='LENGTHS',
      help="as in gin: {'inputs': 512, 'targets': 114}")
  add('--layout', choices=subject_lib.KINDS,
      help='what rows are for; that of the recipe, or what suits the features')
  add('--objective',
      help='for text and tokens: span_corruption, lm, prefix_lm, ul2, ...')
  add('--inputs', help="of files: a column, or 'question: {question}'")
  add('--targets', help='of files: the same')
  add('--text_field', help='of files: the column of the text')
  add('--vocabulary', metavar='MODEL',
      help='of files: a SentencePiece model; bytes if not given')
  add('--extra_ids', type=int, metavar='COUNT',
      help='of files: sentinels of the vocabulary; 125 of bytes, 100 of a '
      'model, if not given')
  add('--use_cached', action='store_true', help="read a task's cache of seqio")
  add('--seqio_additional_cache_dirs', action='append', default=[],
      metavar='DIR', help='folder of cached tasks')
  add('--tfds_data_dir', metavar='DIR', help='folder of TFDS data sets')
  add('--examples', type=int, default=2000, help='most that are looked at')
  add('--rows', type=int, default=4, help='rows that are drawn')
  add('--seed', type=int, default=0, help='of the objective')
  add('--out', metavar='DIR', help=f'write {_PAGE} and {_PICTURE} there')
  return parser


def _literal(text: str) -> Any:
  try:
    return ast.literal_eval(text)
  except (ValueError, SyntaxError):
    raise argparse.ArgumentTypeError(
        f"{text!r} is no dictionary: expected {{'inputs': 512, 'targets': 114}}"
    ) from None


def _inspect(arguments: argparse.Namespace) -> None:
  if arguments.rows < 1:
    raise ValueError(
        f'--rows is {arguments.rows}: expected 1 at least. Raise it.'
    )
  asked = subject_lib.Asked(
      split=arguments.split,
      lengths=arguments.task_feature_lengths,
      layout=arguments.layout,
      objective=arguments.objective,
      num_examples=arguments.examples,
      seed=arguments.seed,
      vocabulary=arguments.vocabulary,
      extra_ids=arguments.extra_ids,
      columns={
          column: getattr(arguments, flag)
          for flag, column in _COLUMN_FLAGS.items()
          if getattr(arguments, flag) is not None
      },
  )
  if arguments.seqio_additional_cache_dirs or arguments.tfds_data_dir:
    providers.set_data_dirs(
        tfds_data_dir=arguments.tfds_data_dir,
        cache_dirs=arguments.seqio_additional_cache_dirs,
    )
  subject = _open(arguments, asked)
  found = inspection.inspect(subject, num_rows=arguments.rows)
  terminal.show(found, console=console_lib.Console(highlight=False))
  if arguments.out:
    _write(found, arguments.out)


def _open(
    arguments: argparse.Namespace, asked: subject_lib.Asked
) -> subject_lib.Subject:
  """Opens what is named: a recipe, a path, or else a task."""
  what = arguments.what
  if arguments.gin_file:
    config = run_config.RunConfig.read(
        arguments.gin_file[0],
        gin_files=arguments.gin_file[1:],
        gin_bindings=arguments.gin_bindings,
        gin_search_paths=arguments.gin_search_paths,
    )
    return recipe.open_config(config, asked, task=what)
  if what is None:
    raise ValueError(
        'nothing is named: expected a path, the name of a task, or a recipe. '
        'Add it: t5wild data inspect my_file.jsonl, or --gin_file=RECIPE.'
    )
  if cache_subjects.is_cache(what):
    return cache_subjects.open_path(what, asked)
  if os.path.exists(what) or _is_path(what, module=arguments.module):
    return file_subjects.open_path(what, asked)
  cfg = datasets.DatasetConfig(
      mixture_or_task_name=what,
      task_feature_lengths=asked.lengths,
      split=asked.split or 'train',
      batch_size=1,
      shuffle=False,
      seed=asked.seed,
      module=arguments.module,
      use_cached=arguments.use_cached,
  )
  return task_subjects.open_config(cfg, asked)


def _is_path(what: str, *, module: str | None) -> bool:
  """Whether a name that is none of a file was meant as one."""
  return module is None and (
      any(each in what for each in ('/', '*', '~')) or '.' in what[1:-1]
  )


def _write(found: inspection.Inspection, out: str) -> None:
  os.makedirs(out, exist_ok=True)
  path = os.path.join(out, _PAGE)
  with open(path, 'w', encoding='utf-8', errors='replace') as file:
    file.write(page.document(found))
  picture.draw(found, os.path.join(out, _PICTURE))
  _say(f'\n{path} and {_PICTURE} beside it')


def _say(text: str, *, stream: Any = None) -> None:
  print(text, file=stream or sys.stdout, flush=True)


if __name__ == '__main__':
  sys.exit(main())
