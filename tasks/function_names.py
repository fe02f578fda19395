# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks to name Python functions: a supervised task of real text.

    from t5wild.tasks import function_names
    MIXTURE_OR_TASK_NAME = @function_names.function_name_task()

The inputs are a function without its name, the targets are the name. Importing
this module registers nothing and imports no TensorFlow;
`t5wild.tasks.python_stdlib` registers `function_name_python_stdlib`.
"""

import ast
from collections.abc import Iterator, Sequence
import functools
import re
import tokenize
from typing import Any
import warnings

from absl import logging

from t5wild.data import text_files
from t5wild.tasks import local_text
from t5wild.tasks import metrics
from t5wild.tasks import text_objectives

GIVEN = ('source', 'docstring')
# Stands where the name was, in the inputs.
GAP = '?'

_WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+')
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Example = dict[str, str]


def function_name_task(
    paths: local_text.Paths | None = None,
    *,
    name: str | None = None,
    given: str = 'source',
    names: str | None = None,
    vocabulary: Any = None,
    held_out_fraction: float = 0.1,
    shuffle_buffer_size: int = 20_000,
) -> Any:
  """Makes a seqio task whose targets are functions' names; not registered.

  Splits are 'train' and 'validation', divided by whole files, as
  `local_text.text_task` divides them: with the same `held_out_fraction`, what
  is held out here was held out there.

  Args:
    paths: files, folders or globs of Python sources, None for the Python
      standard library.
    name: name of the task, by which its metrics go.
    given: what the inputs are: 'source' = the function's lines, or 'docstring'
      = its docstring, for those that have one. On one line, and with `GAP` for
      the name wherever it stands.
    names: regular expression of whole names, for a task of those functions
      alone: r'__\\w+__' is Python's special methods. None: all.
    vocabulary: see `text_objectives.task_parts`.
    held_out_fraction: fraction of the files in 'validation'.
    shuffle_buffer_size: examples among which the next one is drawn.

  Returns:
    A seqio.Task.

  Raises:
    FileNotFoundError: for a path or a vocabulary that does not exist.
    ValueError: for an argument out of range.
  """
  import seqio

  from t5wild.tasks import text_source

  _check_given(given)
  _check_names(names)
  files = text_files.split_files(
      local_text.find_files(paths), held_out_fraction=held_out_fraction
  )
  vocabulary = text_objectives.seqio_vocabulary(vocabulary)
  return seqio.Task(
      name or f'function_name_from_{given}',
      source=text_source.ExampleSource({
          split: functools.partial(_read_examples, tuple(part), given, names)
          for split, part in files.items()
      }),
      preprocessors=[
          seqio.preprocessors.tokenize,
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features={
          feature: seqio.Feature(vocabulary=vocabulary)
          for feature in ('inputs', 'targets')
      },
      metric_fns=[metrics.sequence_accuracy, name_f1],
      shuffle_buffer_size=shuffle_buffer_size,
  )


def add_function_name_task(
    name: str, paths: local_text.Paths | None = None, **arguments: Any
) -> Any:
  """Registers `function_name_NAME` with seqio; see `function_name_task`."""
  import seqio

  name = f'function_name_{name}'
  task = function_name_task(paths, name=name, **arguments)
  seqio.TaskRegistry.add_provider(name, task)
  return task


def name_f1(
    targets: Sequence[str], predictions: Sequence[str]
) -> dict[str, float]:
  """F1 of the words that names are made of, in per cent.

  `get_file_name` and `FileName` have two words in common. Precision and recall
  are of all examples together, as in code2seq (Alon et al., arXiv 1808.01400).
  """
  return {
      'name_f1': metrics.set_f1(
          [words_of(target) for target in targets],
          [words_of(prediction) for prediction in predictions],
      )
  }


def words_of(name: str) -> list[str]:
  """The words of a name, in lower case: they end at `_` and at a capital."""
  return [word.lower() for word in _WORD.findall(name)]


def examples_of(source: str, *, given: str = 'source') -> Iterator[Example]:
  """Makes {'inputs', 'targets'} of each function of a module's source.

  Args:
    source: Python source.
    given: see `function_name_task`.

  Raises:
    SyntaxError: it is none.
    ValueError: for another `given`.
  """
  _check_given(given)
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # of escapes in strings, which are not ours
    tree = ast.parse(source)
  lines = source.split('\n')  # as ast counts them
  for node in ast.walk(tree):
    if not isinstance(node, _Function):
      continue
    text = (
        ast.get_docstring(node)
        if given == 'docstring'
        else '\n'.join(lines[node.lineno - 1 : node.end_lineno])
    )
    if text:
      name = re.escape(node.name)
      text = re.sub(rf'(?<!\w){name}(?!\w)', GAP, text)
      yield {'inputs': ' '.join(text.split()), 'targets': node.name}


def _check_given(given: str) -> None:
  if given not in GIVEN:
    raise ValueError(
        f'given is {given!r}: expected one of {GIVEN}, what the inputs are '
        "made of. Set function_name_task's given to one of them."
    )


def _check_names(names: str | None) -> None:
  try:
    re.compile(names or '')
  except re.error as error:
    raise ValueError(
        f'names is {names!r}: expected a regular expression ({error}), or None '
        "for all functions. Correct function_name_task's names."
    ) from None


@functools.lru_cache(maxsize=8)
def _read_examples(
    files: tuple[text_files.TextFile, ...], given: str, names: str | None
) -> tuple[Example, ...]:
  """The examples of files, in order; what is no Python is left out, loudly."""
  examples: list[Example] = []
  for file in files:
    try:
      with tokenize.open(file.path) as opened:
        examples.extend(examples_of(opened.read(), given=given))
    except (SyntaxError, ValueError, RecursionError) as error:
      logging.warning('%s left out, no Python: %s', file.path, error)
  if names is not None:
    examples = [e for e in examples if re.fullmatch(names, e['targets'])]
  if not examples:
    named = '' if names is None else f', named {names!r}'
    raise ValueError(
        f'{len(files)} files have no function with a {given}{named}: expected '
        f'one or more, in files such as {files[0].path}. Correct the '
        "function_name_task's paths or names."
    )
  return tuple(examples)
