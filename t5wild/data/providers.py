# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The seqio task or mixture that a config names, and its vocabularies.

A config is anything with the fields of `datasets.DatasetConfig`. seqio is
imported when a function here is called, not before.
"""

from collections.abc import Sequence
import difflib
import importlib
import os
from typing import Any

import gin

from t5wild import vocabulary_files
from t5wild.data import pipelines
from t5wild.data import tfds_data
from t5wild.data import vocabularies

_MOST_NAMED = 8


def set_data_dirs(
    *, tfds_data_dir: str | None, cache_dirs: Sequence[str]
) -> None:
  """Tells seqio where TFDS data sets and cached tasks lie.

  Args:
    tfds_data_dir: overrides that of every task; None leaves them.
    cache_dirs: searched for cached tasks after those that tasks name.
  """
  import seqio

  if tfds_data_dir:
    seqio.set_tfds_data_dir_override(tfds_data_dir)
  seqio.add_global_cache_dirs(list(cache_dirs))


def provider_of(cfg: Any) -> Any:
  """Finds the seqio task or mixture that a config names.

  Raises:
    ValueError: where no such name is registered.
  """
  vocabulary_files.install()
  if cfg.module:
    # Such modules, those of t5 among them, may have functions for gin, which
    # takes no new ones once it has read the recipe.
    with gin.unlock_config():
      importlib.import_module(cfg.module)
  pipelines.start_tensorflow()
  import seqio

  if not isinstance(cfg.mixture_or_task_name, str):
    return cfg.mixture_or_task_name
  try:
    return seqio.get_mixture_or_task(cfg.mixture_or_task_name)
  except ValueError:
    raise ValueError(
        f'no seqio task or mixture is named {cfg.mixture_or_task_name!r}'
        f'{_near(cfg.mixture_or_task_name)}: expected one that is registered, '
        f'which {_registered()} are. Import the module that registers it (a '
        'gin line: import my_package.tasks, in a --gin_file; those of T5: '
        'import t5.data.mixtures), or correct MIXTURE_OR_TASK_NAME (--task '
        'where that was given).'
    ) from None  # or binaries print seqio's traceback


def _near(name: str) -> str:
  """Names of tasks and mixtures that are much like another."""
  import seqio

  names = [*seqio.TaskRegistry.names(), *seqio.MixtureRegistry.names()]
  close = difflib.get_close_matches(name, names, n=3)
  return f' (did you mean {" or ".join(map(repr, close))}?)' if close else ''


def _registered() -> str:
  """The names that there are, as far as they can be read at a glance."""
  import seqio

  names = [*seqio.TaskRegistry.names(), *seqio.MixtureRegistry.names()]
  shown = ', '.join(map(repr, sorted(names)[:_MOST_NAMED]))
  more = len(names) - _MOST_NAMED
  return f'{shown} and {more} more' if more > 0 else shown or 'none'


def subtasks_of(provider: Any) -> list[Any]:
  """The tasks of a mixture, or the task itself."""
  import seqio

  return list(seqio.get_subtasks(provider))


def check_split(cfg: Any, *, provider: Any) -> None:
  """Refuses a split that no task has, and data that is not there.

  Raises:
    ValueError: with the splits there are.
    FileNotFoundError: for a data set of TFDS's, with the folders looked at.
  """
  tasks = subtasks_of(provider)
  tfds_data.check(tasks, use_cached=cfg.use_cached)
  splits = sorted({name for task in tasks for name in task.splits})
  if cfg.split not in splits:
    raise ValueError(
        f'{provider.name} has no split {cfg.split!r}: expected one of '
        f'{splits}. Set data.DatasetConfig.split (or --split) to one of them.'
    )


def check_cache(cfg: Any, *, provider: Any) -> None:
  """Refuses a cache that was asked for and is not there."""
  import seqio

  if not cfg.use_cached:
    return
  absent = [
      task.name
      for task in subtasks_of(provider)
      if task.supports_caching and not task.cache_dir
  ]
  if absent:
    raise FileNotFoundError(
        f'use_cached is True and there is no cache of {absent}: expected '
        f'TASK/COMPLETED in one of {list(seqio.get_global_cache_dirs())}. '
        'Write it with seqio_cache_tasks and pass its folder to '
        'seqio.add_global_cache_dirs, or set USE_CACHED_TASKS = False.'
    )


def check_vocabularies(provider: Any) -> None:
  """Refuses vocabularies whose files cannot be read.

  Raises:
    FileNotFoundError: for a SentencePiece model that is not there.
    ValueError: for a file that is none.
  """
  for feature in provider.output_features.values():
    _check_readable(feature.vocabulary)


def get_vocabulary(cfg: Any) -> tuple[Any, Any]:
  """Returns the vocabularies of a task's inputs and targets.

  Where a task lacks one of the two, all its features must share one
  vocabulary, which stands for both; pass-through vocabularies do not count.

  Raises:
    ValueError: where the features leave it open.
    FileNotFoundError: for a SentencePiece model that is not there.
  """
  provider = provider_of(cfg)
  check_vocabularies(provider)
  features = provider.output_features
  found = [feature.vocabulary for feature in features.values()]
  if 'inputs' in features and 'targets' in features:
    return features['inputs'].vocabulary, features['targets'].vocabulary
  import seqio

  found = [
      vocabulary
      for vocabulary in found
      if not isinstance(vocabulary, seqio.PassThroughVocabulary)
  ] or found
  if found and all(
      vocabularies.are_equal(found[0], vocabulary) for vocabulary in found[1:]
  ):
    return found[0], found[0]
  raise ValueError(
      f"the task's features {sorted(features)} have the vocabularies "
      f'{list(map(vocabularies.in_words, found))}: expected "inputs" and '
      '"targets", or one vocabulary for all. Give the features one vocabulary.'
  )


def _check_readable(vocabulary: Any) -> None:
  """Refuses a SentencePiece vocabulary whose model cannot be read."""
  path = getattr(vocabulary, 'sentencepiece_model_file', None)
  if not isinstance(path, str | os.PathLike):
    return
  vocabulary_files.check(path)
  _ = vocabulary.vocab_size  # reads the model, where no other has before


def verify_matching_vocabs(cfg: Any, model: Any) -> None:
  """Refuses a model whose vocabularies are not its task's.

  So is one whose network has fewer tokens than its vocabularies: the others
  would all be taken for its last one. A config of no task (synthetic batches)
  has none to differ.

  Raises:
    ValueError: with both sides, where they differ, or have too many tokens.
    FileNotFoundError: for a SentencePiece model that cannot be read.
  """
  model_side = (model.input_vocabulary, model.output_vocabulary)
  if hasattr(cfg, 'verify_vocabularies'):  # read from caches
    cfg.verify_vocabularies(model)
    _check_network_size(model, model_side)
    return
  if not hasattr(cfg, 'mixture_or_task_name'):
    return
  task_side = get_vocabulary(cfg)
  for vocabulary in model_side:
    _check_readable(vocabulary)
  if all(map(vocabularies.are_equal, task_side, model_side)):
    _check_network_size(model, model_side)
    return
  raise ValueError(
      f'the vocabularies of the task {provider_of(cfg).name} and of the model '
      'differ (inputs, targets):\n'
      f'  task:  {", ".join(map(vocabularies.in_words, task_side))}\n'
      f'  model: {", ".join(map(vocabularies.in_words, model_side))}\n'
      "Expected the same. Set VOCABULARY to the task's, or choose a task with "
      "the model's."
  )


def _check_network_size(model: Any, vocabularies_of_model: Any) -> None:
  """Refuses tokens beyond a network's table; one without a size passes."""
  config = getattr(getattr(model, 'module', None), 'config', None)
  table_size = getattr(config, 'vocab_size', None)
  if table_size is None:
    return
  for side, vocabulary in zip(
      ('inputs', 'targets'), vocabularies_of_model, strict=True
  ):
    size = vocabulary.vocab_size
    if size > table_size:
      raise ValueError(
          f'the vocabulary of the {side} has more tokens than the network:\n'
          f'  vocabulary: {size} ({vocabularies.in_words(vocabulary)})\n'
          f'  network:    {table_size}\n'
          f'Expected at most as many. Set {type(config).__name__}.vocab_size '
          f'to {size} or more, or VOCABULARY to one that fits.'
      )
