# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Files as subjects: text, tables, Hugging Face's folders, seqio's caches.

Imports neither seqio nor TensorFlow.
"""

from collections.abc import Iterator, Mapping, Sequence
import itertools
import os
import string
import types
from typing import Any

import numpy as np

from t5wild.data import documents
from t5wild.data import hugging_face
from t5wild.data import rows as rows_lib
from t5wild.data import seqio_caches
from t5wild.data import table_reader
from t5wild.data import tables
from t5wild.data import text_files
from t5wild.inspecting import file_vocabularies
from t5wild.inspecting import subject as subject_lib

_TEXT, _INPUTS, _TARGETS = 'text', 'inputs', 'targets'
_DEFAULT_LENGTHS = {'inputs': 512, 'targets': 512}


def open_path(path: str, asked: subject_lib.Asked) -> subject_lib.Subject:
  """Opens a file or a folder, whatever it holds, but for a record cache.

  Raises:
    FileNotFoundError: there is nothing.
    ValueError: it cannot be read, or lacks a column or split.
  """
  kind, files, kinds = _find(path)
  if files is None:
    return _open_texts(path, asked)
  table = table_reader.open_table(path, files, kinds=kinds)
  split = asked.split or next(iter(table.splits))
  return _open_table(table, split, kind=kind, asked=asked)


def _find(
    path: str,
) -> tuple[str, Mapping[str, Sequence[tables.TableFile]] | None, Any]:
  """(what it is, tables by split or None for text, kinds of columns)."""
  if os.path.isdir(path):
    if seqio_caches.is_cache(path):
      cache = seqio_caches.find(path)
      return 'cache of seqio', cache.files, cache.features
    if _has_tables(path):
      return 'folder of tables', hugging_face.find(path), None
    return 'folder of text', None, None
  if os.path.isfile(path) and tables.kind_of(path):
    name = tables.kind_of(path)
    return f'{name} file', {'train': tables.find_files(path)}, None
  if not os.path.exists(path):
    found = text_files.find_text_files(path)  # a glob, or refused
    if all(tables.kind_of(each.path) for each in found):
      return 'tables', {'train': tables.find_files(path)}, None
  return 'text', None, None


def _has_tables(path: str) -> bool:
  """Whether a folder is one of tables, though other files be beside them.

  JSON lines may be among the files of a text.
  """
  kinds = set()
  for file in text_files.find_text_files(path, suffixes=('',)):
    name = os.path.basename(file.path).lower()
    if name.endswith(text_files.TEXT_SUFFIXES) and name != 'readme.md':
      kinds.add('text')
    else:
      kinds.add(tables.kind_of(name))
  return bool(kinds & {'parquet', 'arrow', 'tfrecord'}) or (
      'jsonl' in kinds and 'text' not in kinds
  )


def _open_texts(path: str, asked: subject_lib.Asked) -> subject_lib.Subject:
  files = text_files.find_text_files(path)
  if asked.split not in (None, 'train'):
    raise ValueError(
        f'--split is {asked.split!r}, and {path} is text without splits: '
        "expected 'train', or none. Leave it out."
    )
  reader = documents.DocumentReader(
      text_field=asked.columns.get(_TEXT, 'text'), on_corrupt='skip'
  )
  texts = itertools.chain.from_iterable(
      reader.read(piece) for piece in documents.pieces_of(files)
  )
  found = list(itertools.islice(texts, asked.num_examples))
  if not found:
    raise ValueError(
        f'{path} is empty: {len(files)} files without a document, '
        f'{reader.skipped.count} corrupt lines. Expected one at least. Correct '
        'the path.'
    )
  vocabulary = _vocabulary_of(asked)
  return _of_documents(
      [np.array(vocabulary.encode(text.decode()), np.int32) for text in found],
      raw=found,
      vocabulary=vocabulary,
      asked=asked,
      title=path,
      facts={'kind': 'text', 'files': f'{len(files):,}'},
      skipped=reader.skipped.count,
  )


def _open_table(
    table: tables.Table, split: str, *, kind: str, asked: subject_lib.Asked
) -> subject_lib.Subject:
  whole = table_reader.TableReader(
      table,
      on_corrupt='skip',
      skipped=documents.SkippedLines(is_told=False),  # told when it is read
  )
  templates = _templates(whole, asked)
  columns = sorted({
      each for text in templates.values() for each in _columns_of(text)
  })
  reader = table_reader.TableReader(
      table, {column: column for column in columns}, on_corrupt='skip'
  )
  rows = list(itertools.islice(reader.read_all(split), asked.num_examples))
  if not rows:
    raise ValueError(
        f'the split {split!r} of {table.name} has no row that can be read '
        f'({reader.skipped.count} are corrupt): expected one at least. Choose '
        f'another of {list(table.splits)} by --split, or mend the files.'
    )
  vocabulary = _vocabulary_of(asked)
  facts = {
      'kind': kind,
      'split': f'{split} (of {", ".join(table.splits)})',
      'files': f'{len(table.files.get(split, ())):,}',
      'columns': ', '.join(
          f'{name} ({each})' for name, each in whole.kinds.items()
      ),
  }
  found = {
      name: [_tokens(text, row, vocabulary) for row in rows]
      for name, text in templates.items()
  }
  if _TEXT in templates:
    raw = [tokens.tobytes() for tokens in found[_TEXT]]
    return _of_documents(
        found[_TEXT], raw=raw, vocabulary=vocabulary, asked=asked,
        title=table.name, facts=facts, skipped=reader.skipped.count,
    )  # fmt: skip
  examples = {
      name: subject_lib.end_all(_rows_of(tokens), vocabulary)
      for name, tokens in found.items()
  }
  layout = subject_lib.make_layout(
      list(examples),
      kind=asked.layout,
      lengths=asked.lengths or subject_lib.fitting_lengths(examples),
  )
  return subject_lib.Subject(
      title=table.name,
      facts=facts,
      vocabularies=dict.fromkeys(examples, vocabulary),
      layout=layout,
      examples=examples,
      documents=[],
      skipped=reader.skipped.count,
      notes=[] if asked.lengths else [
          'no --task_feature_lengths: those that cut nothing off'
      ],
  )


def _of_documents(
    tokens: Sequence[np.ndarray],
    *,
    raw: Sequence[bytes],
    vocabulary: Any,
    asked: subject_lib.Asked,
    title: str,
    facts: Mapping[str, str],
    skipped: int,
) -> subject_lib.Subject:
  """Documents, and the examples that an objective makes of them."""
  name = asked.objective or 'causal_lm'
  lengths = asked.lengths or _DEFAULT_LENGTHS
  feature = types.SimpleNamespace(vocabulary=vocabulary, add_eos=False)
  is_pair = name not in ('lm', 'causal_lm', 'fim', 'fill_in_the_middle')
  names = (_INPUTS, _TARGETS) if is_pair else (_TARGETS,)
  examples = subject_lib.apply_objective(
      tokens,
      subject_lib.find_objective(name),
      features=dict.fromkeys(names, feature),
      lengths={name: lengths[name] for name in names if name in lengths},
      seed=asked.seed,
  )
  return subject_lib.Subject(
      title=title,
      facts={**facts, 'objective': name},
      vocabularies=dict.fromkeys(examples, vocabulary),
      layout=subject_lib.make_layout(
          list(examples), kind=asked.layout, lengths=lengths
      ),
      examples=examples,
      documents=raw,
      document_lengths=np.array([each.size for each in tokens]),
      skipped=skipped,
  )


def _vocabulary_of(asked: subject_lib.Asked) -> Any:
  return file_vocabularies.load(asked.vocabulary, extra_ids=asked.extra_ids)


def _rows_of(tokens: Sequence[np.ndarray]) -> rows_lib.Rows:
  return rows_lib.Rows(
      values=np.concatenate([*tokens, np.zeros(0, np.int32)]),
      lengths=np.array([each.size for each in tokens], np.int64),
  )


def _templates(
    reader: table_reader.TableReader, asked: subject_lib.Asked
) -> dict[str, str]:
  """What is made of columns: inputs and targets, or one text."""
  given = dict(asked.columns)
  if _INPUTS in given or _TARGETS in given:
    return {
        _INPUTS: given.get(_INPUTS, _INPUTS),
        _TARGETS: given.get(_TARGETS, _TARGETS),
    }
  if _TEXT in given:
    return {_TEXT: given[_TEXT]}
  kinds = reader.kinds
  if {_INPUTS, _TARGETS} <= kinds.keys():
    return {_INPUTS: _INPUTS, _TARGETS: _TARGETS}
  for name in (_TEXT, _TARGETS, 'content'):
    if name in kinds:
      return {_TEXT: name}
  if len(kinds) == 1:
    return {_TEXT: next(iter(kinds))}
  raise ValueError(
      f'{reader.table.name} has the columns {list(kinds)}: expected to be told '
      'which to show. Give --text_field=COLUMN, or --inputs=COLUMN and '
      "--targets=COLUMN (or texts around columns: 'question: {question}')."
  )


def _columns_of(text: str) -> Iterator[str]:
  if '{' not in text:
    yield text
    return
  yield from filter(None, (each[1] for each in string.Formatter().parse(text)))


def _tokens(text: str, row: Mapping[str, Any], vocabulary: Any) -> np.ndarray:
  """The tokens of a column, or of a text around columns."""
  if '{' in text:
    parts = [
        literal + (str(row[column]) if column else '')
        for literal, column, *_ in string.Formatter().parse(text)
    ]
    return np.array(vocabulary.encode(''.join(parts)), np.int32)
  value = row[text]
  if isinstance(value, str):
    return np.array(vocabulary.encode(value), np.int32)
  has_end = value.size and value[-1] == vocabulary.eos_id
  return value[:-1] if has_end else value
