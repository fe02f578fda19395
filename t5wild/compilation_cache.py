# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""JAX's persistent compilation cache: where it lies, how large, what it saved.

On by default, because a restart after a fault should cost seconds. The folder
is on node-local disk (a shared file system makes every rank of a pod race for
the same files); `T5WILD_COMPILATION_CACHE=off` turns it off, any other value is
the folder, and JAX's own `JAX_COMPILATION_CACHE_DIR` wins over both.
"""

import collections
import os
import pathlib

from absl import logging
import jax

from t5wild import compilation_entries

MAX_BYTES = 4 * 1024**3
_MIN_COMPILE_SECONDS = 0.5
_ENVIRONMENT = 'T5WILD_COMPILATION_CACHE'
_EVENTS = {
    '/jax/compilation_cache/cache_hits': 'hits',
    '/jax/compilation_cache/cache_misses': 'misses',
}
_counts: collections.Counter[str] = collections.Counter()


def default_folder() -> pathlib.Path:
  """Returns the node-local folder used when the user names none."""
  base = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
  return pathlib.Path(base) / 't5wild' / 'compilation'


def folder() -> str | None:
  """The folder that is asked for, there or not; None when the cache is off."""
  chosen = os.environ.get(_ENVIRONMENT, '')
  if chosen.lower() == 'off':
    return None
  return jax.config.jax_compilation_cache_dir or str(
      pathlib.Path(chosen) if chosen else default_folder()
  )


def _count(event: str, **_) -> None:
  if event in _EVENTS:
    _counts[_EVENTS[event]] += 1


def start() -> str | None:
  """Turns the cache on and starts counting hits and misses.

  Returns:
    The folder in use, or None when it is off or cannot be written; an
    unwritable folder is a warning, never the end of a run.
  """
  asked = folder()
  if asked is None:
    return None
  is_jaxs = bool(jax.config.jax_compilation_cache_dir)
  if not is_jaxs:
    try:
      pathlib.Path(asked).mkdir(parents=True, exist_ok=True)
    except OSError as error:
      logging.warning(
          'No compilation cache: %s cannot be made (%s). Every start compiles '
          'anew; name a writable node-local folder in %s to change that.',
          asked, compilation_entries.reason(error), _ENVIRONMENT,
      )
      return None
    jax.config.update('jax_compilation_cache_dir', asked)
    if os.access(asked, os.W_OK):
      # With a limit JAX notes when it reads, and could not even read.
      jax.config.update('jax_compilation_cache_max_size', MAX_BYTES)
    jax.config.update(
        'jax_persistent_cache_min_compile_time_secs', _MIN_COMPILE_SECONDS
    )
  # Others may write to JAX's own folder; to ours nobody does without seals.
  compilation_entries.start(takes_unsealed=is_jaxs)
  if not _counts:
    _counts.update(hits=0, misses=0)
    jax.monitoring.register_event_listener(_count)
  return asked


def counts() -> dict[str, int]:
  """Returns {'hits': n, 'misses': n} since `start`."""
  return {name: _counts[name] for name in ('hits', 'misses')}
