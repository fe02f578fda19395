# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Live seqio tasks and mixtures as subjects.

seqio and TensorFlow are imported when a function here is called, not before.
"""

from collections.abc import Mapping
import functools
import itertools
from typing import Any

import numpy as np

from t5wild.data import datasets
from t5wild.data import fingerprints
from t5wild.data import pipelines
from t5wild.data import providers
from t5wild.data import rows as rows_lib
from t5wild.inspecting import subject as subject_lib

_DEFAULT_LENGTH = 512


def open_config(
    cfg: datasets.DatasetConfig,
    asked: subject_lib.Asked,
    *,
    layout_kind: str | None = None,
) -> subject_lib.Subject:
  """Takes the first examples of a task or mixture, in the order of its source.

  Args:
    cfg: which task, split and lengths.
    asked: how to look.
    layout_kind: of the recipe's model.

  Raises:
    ValueError: no such task or split, or no example.
  """
  provider = datasets.open_provider(cfg)
  asked.check_vocabulary_is_open(f'the task {provider.name}')
  tasks = providers.subtasks_of(provider)
  features = dict(provider.output_features)
  lengths = dict(cfg.task_feature_lengths or {}) or dict.fromkeys(
      features, _DEFAULT_LENGTH
  )
  notes = [
      f'the first {asked.num_examples:,} examples at most, in the order of the '
      'source'
  ]
  if not cfg.task_feature_lengths:
    notes.append(f'no --task_feature_lengths: {lengths}')
  examples = _read(provider, cfg, asked, lengths=lengths, notes=notes)
  if not next(iter(examples.values())).lengths.size:
    raise ValueError(
        f'the split {cfg.split!r} of {provider.name} has no example: expected '
        'one at least. Look at its source, or choose another of '
        f'{sorted({split for task in tasks for split in task.splits})}.'
    )
  return subject_lib.Subject(
      title=f'{provider.name}, {cfg.split}',
      facts=_facts(provider, tasks, cfg),
      vocabularies={
          name: feature.vocabulary for name, feature in features.items()
      },
      layout=subject_lib.make_layout(
          list(examples),
          kind=asked.layout or layout_kind,
          lengths=lengths,
      ),
      examples=examples,
      ended=_ended(provider, features),
      documents=_documents(tasks[0], cfg, asked) if len(tasks) == 1 else [],
      skipped=sum(getattr(t.source, 'skipped_lines', 0) for t in tasks),
      notes=notes,
  )


def _facts(
    provider: Any, tasks: list[Any], cfg: datasets.DatasetConfig
) -> dict[str, str]:
  splits = sorted({split for task in tasks for split in task.splits})
  facts = {
      'kind': 'seqio task' if len(tasks) == 1 else f'mixture of {len(tasks)}',
      'split': f'{cfg.split} (of {", ".join(splits)})',
      'source': type(tasks[0].source).__name__,
      'features': ', '.join(
          f'{name} ({feature.vocabulary.vocab_size:,} ids)'
          for name, feature in provider.output_features.items()
      ),
  }
  if len(tasks) == 1:
    facts['steps'] = ' → '.join(
        fingerprints.describe_preprocessor(step).split('(')[0].rpartition('.')[2]
        for step in tasks[0].preprocessors
    )
  else:
    facts['tasks'] = ', '.join(
        f'{task.name} ({provider.get_rate(task):g})' for task in tasks
    )
  if cfg.use_cached:
    facts['read from'] = "seqio's cache"
  return facts


def _read(
    provider: Any,
    cfg: datasets.DatasetConfig,
    asked: subject_lib.Asked,
    *,
    lengths: Mapping[str, int],
    notes: list[str],
) -> dict[str, rows_lib.Rows]:
  names = [name for name in provider.output_features if name in lengths]
  if not names:
    raise ValueError(
        f'task_feature_lengths {dict(lengths)} has no feature of '
        f'{provider.name}: expected some of {list(provider.output_features)}. '
        'Correct --task_feature_lengths.'
    )
  dataset = _uncut(provider, notes).get_dataset(
      sequence_length=lengths,
      split=cfg.split,
      use_cached=cfg.use_cached,
      shuffle=False,
      seed=asked.seed,
      num_epochs=1,
      trim_output_features=False,
  )
  dataset = dataset.map(lambda e: {name: e[name] for name in names})
  found = list(
      itertools.islice(
          pipelines.PipelineIterator(pipelines.with_options(dataset)),
          asked.num_examples,
      )
  )
  for name in names:
    _check_tokens(name, found, provider)
  return {
      name: rows_lib.Rows(
          values=np.concatenate(
              [*(e[name] for e in found), np.zeros(0, np.int32)]
          ).astype(np.int32),
          lengths=np.array([e[name].size for e in found], np.int64),
      )
      for name in names
  }


def _check_tokens(name: str, found: list[Any], provider: Any) -> None:
  array = found[0][name] if found else np.zeros(0, np.int32)
  if array.ndim != 1 or array.dtype.kind not in 'iu':
    raise ValueError(
        f'the feature {name!r} of {provider.name} is of rank {array.ndim} and '
        f'type {array.dtype}: expected sequences of token ids. Leave it out '
        'of --task_feature_lengths.'
    )


def _uncut(provider: Any, notes: list[str]) -> Any:
  """The task without the cut that its end of sequence makes, if it has one."""
  import seqio

  whole = seqio.preprocessors.append_eos
  if not isinstance(provider, seqio.Task):
    notes.append('what append_eos_after_trim cuts off is not counted: it is '
                 'in the tasks of the mixture; look at each')  # fmt: skip
    return provider
  steps = list(provider.preprocessors)
  if not any(map(_cuts, steps)):
    return provider
  return seqio.Task(
      provider.name,
      source=provider.source,
      preprocessors=[whole if _cuts(step) else step for step in steps],
      output_features=provider.output_features,
      shuffle_buffer_size=None,
  )


def _cuts(step: Any) -> bool:
  """Whether a preprocessor is append_eos_after_trim, however gin wrapped it."""
  import seqio

  while step is not seqio.preprocessors.append_eos_after_trim:
    step = getattr(step, '__wrapped__', None) or (
        step.func if isinstance(step, functools.partial) else None
    )
    if step is None:
      return False
  return True


def _ended(provider: Any, features: Mapping[str, Any]) -> list[str]:
  """Features of which examples end with one, though they are cut."""
  steps = getattr(provider, 'preprocessors', ())
  if not any(map(_cuts, steps)):
    return []
  return [name for name, feature in features.items() if feature.add_eos]


def _documents(
    task: Any, cfg: datasets.DatasetConfig, asked: subject_lib.Asked
) -> list[bytes]:
  """The bytes of the first examples of the source, to compare."""
  if cfg.use_cached:
    return []
  dataset = task.source.get_dataset(split=cfg.split, shuffle=False)
  found = []
  for example in dataset.take(asked.num_examples).as_numpy_iterator():
    flat = sorted(
        (name, np.asarray(value)) for name, value in _flat('', example)
    )
    found.append(
        b'|'.join(
            name.encode() + (
                repr(value.tolist()).encode()
                if value.dtype == object
                else value.tobytes()
            )
            for name, value in flat
        )
    )
  return found


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
  if isinstance(value, Mapping):
    return [
        each
        for key, inner in value.items()
        for each in _flat(f'{prefix}/{key}', inner)
    ]
  return [(prefix, value)]
