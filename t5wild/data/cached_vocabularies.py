# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the vocabularies of caches against those of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from t5wild.data import fingerprints
from t5wild.data import record_cache


def check(caches: Sequence[record_cache.RecordCache], model: Any) -> None:
  """Refuses a model whose vocabularies are not those of all caches.

  Raises:
    ValueError: with both fingerprints, where they differ.
  """
  sides = {'inputs': model.input_vocabulary, 'targets': model.output_vocabulary}
  for cache in caches:
    for name, feature in cache.manifest.features.items():
      side = sides.get(name, sides['targets'])
      own = fingerprints.describe_vocabulary(side)
      stored = feature['vocabulary']
      if own['fingerprint'] != stored['fingerprint']:
        raise ValueError(
            f'the vocabularies of the {name} differ:\n'
            f'  cache {cache.folder}: {_words(stored)}\n'
            f'  model: {_words(own)}\n'
            "Expected the same. Set VOCABULARY to the cache's, or cache the "
            "task with the model's (t5wild cache)."
        )


def _words(description: Mapping[str, Any]) -> str:
  return (
      f'{description["kind"]}, {description["vocab_size"]} ids, '
      f'{description["extra_ids"]} sentinels, fingerprint '
      f'{description["fingerprint"]}'
  )
