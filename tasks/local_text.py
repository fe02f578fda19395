# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks over text of this machine: files, folders, globs, or another source.

In gin a task is a reference that is called, and its arguments are bindings:

    from t5wild.tasks import local_text
    data.DatasetConfig.mixture_or_task_name = @local_text.text_task()
    local_text.text_task.paths = '/data/books'

`t5wild.tasks.sources` has others than files: paths = @sources.hugging_face().

In Python, `add_local_text_task('books', '/data/books')` registers one under a
name that recipes then use. Importing this module registers nothing and imports
no TensorFlow.
"""

from collections.abc import Sequence
import itertools
import sysconfig
from typing import Any

from t5wild.data import documents
from t5wild.data import text_files
from t5wild.tasks import text_objectives

# What nobody wrote for readers in the standard library: tests, and tables that
# programs made (code points of encodings, the help texts as escaped strings).
_SKIPPED_IN_STDLIB = (
    'test', 'tests', 'idlelib', 'lib2to3', 'encodings', 'pydoc_data',
)

Paths = str | Sequence[str]


def text_task(
    paths: Any = None,
    *,
    name: str | None = None,
    vocabulary: Any = None,
    objective: text_objectives.Objective = 'span_corruption',
    held_out_fraction: float = 0.05,
    text_field: str = 'text',
    on_corrupt: str = 'fail',
    shuffle_buffer_size: int = 1000,
) -> Any:
  """Makes a seqio task over text files; it is not registered.

  Splits are 'train' and 'validation', divided by whole files (by the hash of
  a file's name, so the division holds when files come and go).

  Args:
    paths: files, folders or globs: .txt and other plain text, .py, .jsonl,
      each of them also as .gz, and .parquet. None is the Python standard
      library's sources, a text that every machine has. Or a seqio.DataSource,
      such as those of `t5wild.tasks.sources`, which has its own splits.
    name: name of the task, by which its metrics go.
    vocabulary: a seqio vocabulary, the path of a SentencePiece model, or None
      for bytes (384 ids, of which 125 are sentinels).
    objective: 'span_corruption', 'iid_denoising', 'ul2', 'prefix_lm', 'lm' or
      'fim'; or a seqio preprocessor of tokenized documents in 'targets', such
      as `@objectives.span_corruption` in gin, to set its arguments; or what
      `text_objectives.find_objective` makes of either, to set the features.
    held_out_fraction: fraction of the files in 'validation', 0 for none; not
      of a source.
    text_field: field of JSON lines, column of Parquet files, field of a
      source's examples: text, or tokens of the vocabulary.
    on_corrupt: 'fail' or 'skip', for a line that is no text; not of a source.
    shuffle_buffer_size: examples among which the next one is drawn.

  Returns:
    A seqio.Task.

  Raises:
    FileNotFoundError: for a path or a vocabulary that does not exist.
    ValueError: for an argument out of range; files whose first document is
      none (`documents.CorruptTextError`).
  """
  import seqio

  if isinstance(paths, seqio.DataSource):
    return seqio.Task(
        name or 'text',
        shuffle_buffer_size=shuffle_buffer_size,
        **text_objectives.parts_over_source(
            paths,
            text_field=text_field,
            objective=objective,
            vocabulary=vocabulary,
        ),
    )
  return seqio.Task(
      name or ('python_stdlib' if paths is None else 'local_text'),
      shuffle_buffer_size=shuffle_buffer_size,
      **_task_arguments(
          paths,
          vocabulary=vocabulary,
          objective=objective,
          held_out_fraction=held_out_fraction,
          reader=documents.DocumentReader(
              text_field=text_field, on_corrupt=on_corrupt
          ),
      ),
  )


def add_local_text_task(
    name: str, paths: Paths | None = None, **arguments: Any
) -> Any:
  """Registers a text task with seqio, so that recipes and mixtures can name it.

  Args:
    name: name of the task, not yet taken.
    paths: see `text_task`.
    **arguments: those of `text_task`.

  Returns:
    The seqio.Task.

  Raises:
    ValueError: for a name that is taken, and as `text_task` does.
  """
  import seqio

  task = text_task(paths, name=name, **arguments)
  seqio.TaskRegistry.add_provider(name, task)
  return task


def add_local_text_tasks(
    name: str, paths: Paths | None = None, **arguments: Any
) -> list[Any]:
  """Registers a text task for each objective: ul2_NAME, lm_NAME and so on.

  Args:
    name: the tasks' names end with it.
    paths: see `text_task`.
    **arguments: those of `text_task` but for `objective`.

  Returns:
    The seqio.Tasks.

  Raises:
    ValueError: for a name that is taken, and as `text_task` does.
  """
  return [
      add_local_text_task(
          f'{objective}_{name}', paths, objective=objective, **arguments
      )
      for objective in text_objectives.OBJECTIVES
  ]


def _task_arguments(
    paths: Paths | None,
    *,
    vocabulary: Any,
    objective: text_objectives.Objective,
    held_out_fraction: float,
    reader: documents.DocumentReader,
) -> dict[str, Any]:
  from t5wild.tasks import text_source

  parts = text_objectives.task_parts(objective, vocabulary=vocabulary)
  pieces = documents.split_pieces(
      find_files(paths), held_out_fraction=held_out_fraction
  )
  reader.check_first(itertools.chain(*pieces.values()))
  return {'source': text_source.TextSource(pieces, reader=reader), **parts}


def find_files(paths: Paths | None) -> list[text_files.TextFile]:
  """Lists the files of paths; those of the standard library for None.

  Raises:
    FileNotFoundError: for a path that does not exist.
  """
  if paths is not None:
    return text_files.find_text_files(paths)
  return text_files.find_text_files(
      sysconfig.get_paths()['stdlib'],
      suffixes=('.py',),
      skipped_folders=text_files.SKIPPED_FOLDERS + _SKIPPED_IN_STDLIB,
  )
