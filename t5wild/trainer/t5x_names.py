# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What T5X kept in `utils` for users' own training binaries."""

from collections.abc import Mapping, Sequence
import re
from typing import Any

from absl import logging
import flax
from flax import traverse_util
from flax.linen import partitioning as flax_partitioning
import jax
import jax.numpy as jnp

from t5wild.trainer import model_info


def log_model_info(  # T5X's signature
    log_file: str | None, full_train_state: Any, partitioner: Any
) -> None:
  """Logs the arrays of a state and how they lie; in process 0 alone.

  Args:
    log_file: also written there; None writes nothing.
    full_train_state: a train state of arrays or of their shapes.
    partitioner: what gives each its place.
  """
  if jax.process_index() != 0:
    return
  info = model_info.describe_state(full_train_state, partitioner)
  logging.info('%s', info.text())
  if log_file is not None:
    from etils import epath  # bucket paths as well as folders

    epath.Path(log_file).write_text(info.text())


def get_zeros_batch_like_spec(
    batch_spec: Mapping[str, jax.ShapeDtypeStruct],
) -> dict[str, jax.Array]:
  """Returns a batch of zeros with these shapes and types."""
  return {
      name: jnp.zeros(spec.shape, spec.dtype)
      for name, spec in batch_spec.items()
  }


def get_zeros_batch_like_dataset(
    dataset: Any, batch_size: int | None = None
) -> dict[str, jax.Array]:
  """Returns a batch of zeros like those of a data set.

  Args:
    dataset: a `tf.data.Dataset`, or anything with an `element_spec`.
    batch_size: number of rows; None: as many as its batches have.
  """
  spec = {}
  for name, element in dataset.element_spec.items():
    shape = tuple(element.shape)
    if batch_size:
      shape = (batch_size, *shape[1:])
    dtype = getattr(element.dtype, 'as_numpy_dtype', element.dtype)
    spec[name] = jax.ShapeDtypeStruct(shape, dtype)
  return get_zeros_batch_like_spec(spec)


def set_hardware_rng_ops() -> None:
  """Makes new keys use the hardware's generator: faster, not repeatable."""
  jax.config.update('jax_default_prng_impl', 'unsafe_rbg')


def get_local_data(x: Any) -> Any:
  """Returns the first shard of a `jax.Array` on this host; others as given."""
  return x.addressable_data(0) if isinstance(x, jax.Array) else x


def round_vocab_size_to_multiple(vocabulary: Any, divisor: int = 128) -> int:
  """Returns the vocabulary's size, rounded up to a multiple of `divisor`."""
  return -(-vocabulary.vocab_size // divisor) * divisor


def flatten_dict_string_keys(x: Any) -> dict[str, Any]:
  """Returns the leaves of nested dicts by their keys, joined by '/'."""
  return traverse_util.flatten_dict(flax.core.unfreeze(x), sep='/')


def override_params_axes_names(
    model_variables: Mapping[str, Any],
    params_axes_names_override: Sequence[tuple[str, tuple[str, ...]]] = (),
) -> Any:
  """Returns the variables with other names of their parameters' axes.

  Args:
    model_variables: with the collections 'params' and 'params_axes'.
    params_axes_names_override: (pattern of a whole parameter name, names of its
      axes); the first pattern that matches counts.

  Raises:
    ValueError: there are no 'params_axes', or a rule has another number of
      axes than the parameter.
  """
  if 'params_axes' not in model_variables:
    raise ValueError(
        f'model_variables has collections {sorted(model_variables)}, expected '
        "'params_axes' among them: make the parameters with "
        'flax.linen.partitioning.param_with_axes'
    )
  variables = flax.core.unfreeze(model_variables)
  axes = traverse_util.flatten_dict(variables['params_axes'])
  for key, param in traverse_util.flatten_dict(variables['params']).items():
    names = _first_match('/'.join(key), params_axes_names_override)
    if names is None:
      continue
    if len(names) != param.ndim:
      raise ValueError(
          f'params_axes_names_override gives {"/".join(key)!r} the axes '
          f'{names!r}, expected {param.ndim} names for shape '
          f'{tuple(param.shape)}: correct the rule'
      )
    place = (*key[:-1], f'{key[-1]}_axes')
    axes[place] = flax_partitioning.AxisMetadata(names=tuple(names))
  variables['params_axes'] = traverse_util.unflatten_dict(axes)
  return flax.core.freeze(variables)


def _first_match(
    name: str, rules: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[str, ...] | None:
  return next(
      (names for pattern, names in rules if re.fullmatch(pattern, name)), None
  )
