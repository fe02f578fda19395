# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks over text files of this machine: files, folders and globs.

In gin a task is a reference that is called, and its arguments are bindings:

    from t5wild.tasks import local_text
    data.DatasetConfig.mixture_or_task_name = @local_text.text_task()
    local_text.text_task.paths = '/data/books'

In Python, `add_local_text_task('books', '/data/books')` registers one under a
name that recipes then use. Importing this module registers nothing and imports
no TensorFlow.
"""

from collections.abc import Callable, Sequence
import os
import sysconfig
from typing import Any

from t5wild.data import documents
from t5wild.data import objectives
from t5wild.data import text_files
from t5wild.data import vocabularies

_OBJECTIVES = {'span_corruption': objectives.span_corruption}
# What nobody wrote for readers in the standard library: tests, and tables that
# programs made (code points of encodings, the help texts as escaped strings).
_SKIPPED_IN_STDLIB = (
    'test', 'tests', 'idlelib', 'lib2to3', 'encodings', 'pydoc_data',
)
# Sentinels: with 125 the byte vocabulary has 384 ids, as in ByT5; SentencePiece
# vocabularies of T5 have 100.
_BYTE_SENTINELS = 125
_SENTENCEPIECE_SENTINELS = 100

Paths = str | Sequence[str]


def text_task(
    paths: Paths | None = None,
    *,
    name: str | None = None,
    vocabulary: Any = None,
    objective: str | Callable[..., Any] = 'span_corruption',
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
      library's sources, a text that every machine has.
    name: name of the task, by which its metrics go.
    vocabulary: a seqio vocabulary, the path of a SentencePiece model, or None
      for bytes (384 ids, of which 125 are sentinels).
    objective: 'span_corruption', or a seqio preprocessor from {'targets'} to
      {'inputs', 'targets'}; `@objectives.span_corruption` in gin, to set its
      arguments.
    held_out_fraction: fraction of the files in 'validation', 0 for none.
    text_field: field of JSON lines, column of Parquet files.
    on_corrupt: 'fail' or 'skip', for a line that is no text.
    shuffle_buffer_size: examples among which the next one is drawn.

  Returns:
    A seqio.Task.

  Raises:
    FileNotFoundError: for a path or a vocabulary that does not exist.
    ValueError: for an argument out of range.
  """
  import seqio

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


def _task_arguments(
    paths: Paths | None,
    *,
    vocabulary: Any,
    objective: str | Callable[..., Any],
    held_out_fraction: float,
    reader: documents.DocumentReader,
) -> dict[str, Any]:
  import seqio

  from t5wild.tasks import text_source

  vocabulary = _seqio_vocabulary(vocabulary)
  pieces = documents.split_pieces(
      _files(paths), held_out_fraction=held_out_fraction
  )
  return {
      'source': text_source.TextSource(pieces, reader=reader),
      'output_features': {
          'inputs': seqio.Feature(vocabulary=vocabulary, add_eos=True),
          'targets': seqio.Feature(vocabulary=vocabulary, add_eos=True),
      },
      'preprocessors': [
          objectives.tokenize_documents,
          _objective(objective),
          seqio.preprocessors.append_eos,
      ],
  }


def _files(paths: Paths | None) -> list[text_files.TextFile]:
  if paths is not None:
    return text_files.find_text_files(paths)
  return text_files.find_text_files(
      sysconfig.get_paths()['stdlib'],
      suffixes=('.py',),
      skipped_folders=text_files.SKIPPED_FOLDERS + _SKIPPED_IN_STDLIB,
  )


def _objective(objective: str | Callable[..., Any]) -> Callable[..., Any]:
  if callable(objective):
    return objective
  if objective not in _OBJECTIVES:
    raise ValueError(
        f'objective is {objective!r}: expected one of {sorted(_OBJECTIVES)} or '
        "a seqio preprocessor. Set the task's objective to one of them."
    )
  return _OBJECTIVES[objective]


def _seqio_vocabulary(vocabulary: Any) -> Any:
  """seqio's form of a vocabulary, which can encode inside tf.data."""
  import seqio

  if vocabulary is None:
    return seqio.ByteVocabulary(_BYTE_SENTINELS)
  if isinstance(vocabulary, vocabularies.ByteVocabulary):
    return seqio.ByteVocabulary(vocabulary.extra_ids)
  if not isinstance(vocabulary, str | os.PathLike):
    return vocabulary
  vocabularies.check_sentencepiece_file(vocabulary)
  return seqio.SentencePieceVocabulary(
      os.fspath(vocabulary), extra_ids=_SENTENCEPIECE_SENTINELS
  )
