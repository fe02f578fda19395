# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Splits a batch into microbatches whose rows stay on their devices."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging
import jax
from jax.sharding import PartitionSpec

from t5wild.vitals import supervised

SEMANTICS = ('t5x', 'global')


def check_semantics(semantics: str) -> None:
  """Raises ValueError unless `semantics` is one of `SEMANTICS`."""
  if semantics not in SEMANTICS:
    raise ValueError(
        f'microbatch_semantics is {semantics!r}, expected one of {SEMANTICS}: '
        "'global' makes loss and dropout independent of num_microbatches, "
        "'t5x' repeats T5X's numbers"
    )


def check_num_microbatches(num_microbatches: Any) -> None:
  """Raises ValueError unless it is a number; 0 is None, as recipes have it."""
  if num_microbatches is None:
    return
  if not isinstance(num_microbatches, int) or num_microbatches < 0:
    raise ValueError(
        f'num_microbatches is {num_microbatches!r}, expected None (or 0) for '
        'the whole batch, or an integer of at least 1: set '
        'trainer.Trainer.num_microbatches'
    )


def tell_semantics(num_microbatches: int | None, semantics: str) -> None:
  """Tells, once, of numbers that depend on how a batch is taken apart."""
  if semantics == 't5x' and (num_microbatches or 1) > 1:
    logging.log_first_n(
        logging.WARNING,
        'As in T5X each of the %d microbatches has a loss normaliser and '
        'dropout keys of its own: a special normaliser, such as '
        'NUM_REAL_TARGET_TOKENS, makes gradients about %d times those of the '
        "whole batch. Set trainer.Trainer.microbatch_semantics to 'global' for "
        'numbers that do not depend on num_microbatches.',
        1,
        num_microbatches,
        num_microbatches,
    )


def folded(num_microbatches: int | None, *, semantics: str) -> int | None:
  """The number where fewer devices than planned make the same batches.

  With `global` semantics each device makes the same parts as before, of several
  devices, one after the other: the numbers and the memory stay. T5X's depend on
  the number of microbatches, so that it stays, and memory grows.
  """
  told = supervised.from_environment()
  fold = 1 if told is None else told.fold
  if fold == 1:
    return num_microbatches
  if semantics == 'global':
    logging.info('%d times the microbatches: fewer places than planned', fold)
    return (num_microbatches or 1) * fold
  logging.warning(
      'Fewer places than planned hold batches %d times as large in memory: '
      "with microbatch_semantics='t5x' more microbatches would change the "
      "numbers; 'global' would not.",
      fold,
  )
  return num_microbatches


def check_divisible(
    batch_size: int, *, num_microbatches: int | None, data_shards: int = 1
) -> None:
  """Raises ValueError unless every device gets whole rows of each microbatch.

  Args:
    batch_size: Rows of the global batch.
    num_microbatches: Number of microbatches; None is 1.
    data_shards: Number of parts the rows are split into over devices.
  """
  parts = (num_microbatches or 1) * data_shards
  if batch_size % parts:
    near = max(1, round(batch_size / parts)) * parts
    raise ValueError(
        f'batch size {batch_size} is not divisible by num_microbatches x data '
        f'parallel parts = {num_microbatches or 1} x {data_shards}, expected a '
        f'multiple of {parts}: set BATCH_SIZE to {near}, or change '
        'trainer.Trainer.num_microbatches or the mesh'
    )


def split(
    batch: Mapping[str, jax.Array],
    num_microbatches: int,
    *,
    semantics: str,
    data_partition_spec: PartitionSpec,
) -> Callable[[jax.Array], dict[str, jax.Array]]:
  """Returns the function (index of a microbatch) -> microbatch.

  `t5x`: microbatch i holds consecutive rows; they must move between devices,
  since a batch is sharded by consecutive rows, too. `global`: microbatch i
  holds every num_microbatches-th row, so that none moves. No second copy of
  the batch is made where nothing moves.

  Args:
    batch: Features, [batch, ...].
    num_microbatches: Their number; divides the batch.
    semantics: `t5x` or `global`.
    data_partition_spec: Sharding of a batch's rows.
  """
  if semantics == 't5x':
    axis, spec = 0, PartitionSpec(None, *data_partition_spec)
    shape = (num_microbatches, -1)  # [microbatch, row, ...]
  else:
    axis, spec = 1, data_partition_spec
    shape = (-1, num_microbatches)  # [row, microbatch, ...]
  parts = {
      name: constrain(x.reshape(*shape, *x.shape[1:]), spec)
      for name, x in batch.items()
  }

  def take(index: jax.Array) -> dict[str, jax.Array]:
    return {
        name: constrain(
            jax.lax.dynamic_index_in_dim(x, index, axis, keepdims=False),
            data_partition_spec,
        )
        for name, x in parts.items()
    }

  return take


def constrain(x: jax.Array, spec: PartitionSpec | Sequence[Any]) -> jax.Array:
  """Returns `x` laid out as `spec` says, if a mesh is set."""
  if jax.sharding.get_abstract_mesh().empty:
    return x
  return jax.lax.with_sharding_constraint(x, PartitionSpec(*spec))
