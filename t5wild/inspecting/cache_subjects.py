# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Record caches as subjects; neither seqio nor TensorFlow is needed."""

import ast
from collections.abc import Callable, Mapping
import functools
import os
import re
import types
from typing import Any

import numpy as np

from t5wild.data import fingerprints
from t5wild.data import places
from t5wild.data import record_cache
from t5wild.inspecting import subject as subject_lib

_COMPARED_RECORDS = 100_000
_AT_ONCE = 4096
_OBJECTIVE = re.compile(r'^t5wild\.data\.objectives\.(\w+)(\(.*\))$')
_DEFAULT_LENGTHS = {'inputs': 512, 'targets': 114}


def is_cache(path: str) -> bool:
  """Whether a folder is, or holds, a cache that `t5wild cache` writes.

  A bucket is taken for one: nothing else there is looked at.
  """
  if places.is_bucket(path):
    return True
  names = {record_cache.ROOT, record_cache.LOCK, *_OF_SPLITS}
  return bool(names & set(places.names(path))) or _holds_splits(path, depth=2)


def _holds_splits(folder: str, *, depth: int) -> bool:
  """Whether splits of a cache, whole or not, lie in folders of a folder."""
  try:
    with os.scandir(folder) as entries:
      inner = [each.path for each in entries if each.is_dir()]
  except OSError:
    return False
  return any(
      any(os.path.exists(os.path.join(each, name)) for name in _OF_SPLITS)
      or (depth > 1 and _holds_splits(each, depth=depth - 1))
      for each in inner
  )


_OF_SPLITS = (record_cache.MANIFEST, record_cache.PLAN)


def open_path(path: str, asked: subject_lib.Asked) -> subject_lib.Subject:
  """Opens a cache: a folder of `t5wild cache --out`, or of one split.

  Raises:
    BadCacheError: it is not whole.
    ValueError: it has no such split, or several tasks.
  """
  cache = record_cache.RecordCache(_choose(path, asked.split))
  return open_cache(cache, asked)


def _choose(path: str, split: str | None) -> str:
  folders = record_cache.folders_of(path)
  if folders == [path]:
    return path
  by_task: dict[str, list[str]] = {}
  for folder in folders:
    by_task.setdefault(os.path.dirname(folder), []).append(
        os.path.basename(folder)
    )
  if len(by_task) > 1:
    raise ValueError(
        f'{path} holds the caches {sorted(by_task)}: expected one of them. '
        'Give its folder.'
    )
  ((task, splits),) = by_task.items()
  wanted = split or ('train' if 'train' in splits else splits[0])
  if wanted not in splits:
    raise ValueError(
        f'--split is {wanted!r}, and {path} has {splits}: expected one of '
        'them. Choose one, or leave it out.'
    )
  return places.join(task, wanted)


def open_cache(
    cache: record_cache.RecordCache,
    asked: subject_lib.Asked,
    *,
    objective: Callable[..., Any] | None = None,
    layout_kind: str | None = None,
) -> subject_lib.Subject:
  """Takes records at even distances of a cache.

  Args:
    cache: of one split of a task.
    asked: what of it.
    objective: of the recipe; None for what `asked` says, else the task's own.
    layout_kind: of the recipe's model.
  """
  manifest = cache.manifest
  asked.check_vocabulary_is_open(f'the cache {cache.folder}')
  numbers = np.unique(
      np.linspace(0, len(cache) - 1, min(len(cache), asked.num_examples))
      .round()
      .astype(np.int64)
  )
  records = cache.read(numbers)
  features = {
      name: types.SimpleNamespace(
          vocabulary=fingerprints.StoredVocabulary(each['vocabulary']),
          add_eos=each['add_eos'],
      )
      for name, each in manifest.features.items()
  }
  notes = []
  if manifest.content == 'tokens':
    objective, words = _objective_of(manifest, asked, objective)
    lengths = asked.lengths or _DEFAULT_LENGTHS
    if 'lm' in (asked.layout or layout_kind, words) or 'causal_lm' in words:
      features.pop('inputs', None)  # it has targets alone
    examples = subject_lib.apply_objective(
        records.features['targets'].split(), objective, features=features,
        lengths={n: size for n, size in lengths.items() if n in features},
        seed=asked.seed,
    )  # fmt: skip
  else:
    words = 'as cached'
    examples = dict(records.features)
    lengths = asked.lengths or subject_lib.fitting_lengths(examples)
  if not asked.lengths:
    notes.append(f'no --task_feature_lengths: {dict(lengths)}')
  if numbers.size < len(cache):
    notes.append(
        f'{numbers.size:,} of {len(cache):,} records, at even distances; '
        f'duplicates among the first {min(len(cache), _COMPARED_RECORDS):,}'
    )
  compared, sizes = _documents(cache)
  return subject_lib.Subject(
      title=cache.folder,
      facts=_facts(manifest, words),
      vocabularies={
          name: features[name if name in features else 'targets'].vocabulary
          for name in examples
      },
      layout=subject_lib.make_layout(
          list(examples), kind=asked.layout or layout_kind, lengths=lengths
      ),
      examples=examples,
      documents=compared,
      # Those of whole examples are in the features.
      document_lengths=sizes if manifest.content == 'tokens' else None,
      packs_by=subject_lib.BEST_FIT,
      notes=notes,
  )


def _facts(manifest: record_cache.Manifest, objective: str) -> dict[str, str]:
  vocabulary = next(iter(manifest.features.values()))['vocabulary']
  return {
      'kind': f'record cache of {manifest.content}',
      'task': manifest.task,
      'split': manifest.split,
      'records': f'{manifest.num_records:,}',
      'tokens': f'{manifest.num_tokens:,}',
      'shards': f'{len(manifest.shards):,}',
      'vocabulary': f'{vocabulary["kind"]}, {vocabulary["vocab_size"]:,} ids',
      'objective': objective,
      'fingerprint': manifest.fingerprint,
  }


def _objective_of(
    manifest: record_cache.Manifest,
    asked: subject_lib.Asked,
    objective: Callable[..., Any] | None,
) -> tuple[Callable[..., Any], str]:
  """(what is applied to the tokens, in words)."""
  if asked.objective:
    return subject_lib.find_objective(asked.objective), asked.objective
  if objective is not None:
    return objective, fingerprints.describe_preprocessor(objective)
  match = _OBJECTIVE.match(manifest.objective or '')
  if match and match[1] in subject_lib.OBJECTIVES:
    found = subject_lib.find_objective(match[1])
    given = _plain_arguments(match[2])
    return functools.partial(found, **given), f'{match[1]}{match[2]}'
  name = 'span_corruption' if 'inputs' in manifest.features else 'causal_lm'
  return subject_lib.find_objective(name), name


def _plain_arguments(text: str) -> dict[str, Any]:
  """Arguments of numbers and texts, those that a manifest has in words."""
  try:
    call = ast.parse(f'f{text}', mode='eval').body
    return {each.arg: ast.literal_eval(each.value) for each in call.keywords}
  except (SyntaxError, ValueError, AttributeError):
    return {}


def _documents(
    cache: record_cache.RecordCache,
) -> tuple[list[bytes], np.ndarray]:
  """(bytes of the first records, their lengths in tokens)."""
  compared: list[bytes] = []
  sizes = []
  count = min(len(cache), _COMPARED_RECORDS)
  for start in range(0, count, _AT_ONCE):
    records = cache.read(np.arange(start, min(start + _AT_ONCE, count)))
    parts: Mapping[str, Any] = records.features
    sizes.append(sum(rows.lengths for rows in parts.values()))
    compared += [
        b'|'.join(row.tobytes() for row in each)
        for each in zip(*(r.split() for r in parts.values()), strict=True)
    ]
  return compared, np.concatenate([*sizes, np.zeros(0, np.int64)])
