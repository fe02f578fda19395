# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""One partitioned function over a data set on all hosts, outputs in order.

Every host reads the whole data set and computes its rows of each batch, so the
outputs, and what is made of them, are the same on every mesh.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import inspect
import itertools
from typing import Any

import jax
import numpy as np

from t5wild.partitioning import distributed

# Batches on the devices before the first one's outputs are waited for.
_MAX_BATCHES_IN_FLIGHT = 2

Example = Mapping[str, np.ndarray]


def get_infer_fn(
    infer_step: Callable[..., Any],
    batch_size: int,
    train_state_axes: Any,
    partitioner: Any,
    keep_aux_as_numpy: bool = False,
) -> Callable[..., Any]:
  """Makes a function that applies `infer_step` to a data set (T5X's signature).

  Args:
    infer_step: (params, batch), and `rng` and `flax_mutables` if it takes them,
      to outputs with a row for each of the batch; such as a model's
      `predict_batch`, `predict_batch_with_aux` or `score_batch`.
    batch_size: examples of a global batch; the last one is filled up.
    train_state_axes: PartitionSpecs of the state.
    partitioner: lays batches over the devices.
    keep_aux_as_numpy: leave auxiliary values as arrays, one per example.

  Returns:
    (dataset, train_state, rng=None) -> outputs. The data set is an iterable of
    (index, example), the same on all hosts, and may be a tf.data.Dataset. The
    outputs are a list of (index, output), in the data set's order, on every
    host; where `infer_step` gives (output, {name: value}) it is that list and
    {name: list of values}.

  Raises:
    ValueError: the batch cannot be split over the data-parallel devices.
  """
  return InferFunction(
      infer_step,
      batch_size,
      train_state_axes,
      partitioner,
      keep_aux_as_numpy=keep_aux_as_numpy,
  )


class InferFunction:
  """What `get_infer_fn` makes; see there."""

  def __init__(
      self,
      infer_step: Callable[..., Any],
      batch_size: int,
      train_state_axes: Any,
      partitioner: Any,
      *,
      keep_aux_as_numpy: bool,
  ):
    """Takes the arguments of `get_infer_fn`."""
    self._batch_size = batch_size
    self._keep_aux_as_numpy = keep_aux_as_numpy
    self._partitioner = partitioner
    self._rows = partitioner.host_rows(batch_size)
    self._step = partitioner.partition(
        _with_fixed_arguments(infer_step),
        in_axis_resources=(
            train_state_axes.params,
            train_state_axes.flax_mutables,
            partitioner.data_partition_spec,
            None,
        ),
        out_axis_resources=None,
    )

  def trace(self, train_state: Any, batch: Mapping[str, Any], rng: Any) -> None:
    """Traces the step, so that it raises what it would when first called.

    Args:
      train_state: the state, or its shapes.
      batch: a global batch, or its shapes.
      rng: a key.
    """
    self._step.trace(
        train_state.params, train_state.flax_mutables, batch, _as_host_key(rng)
    )

  def __call__(self, dataset, train_state, rng=None):
    """Returns the outputs of a data set."""
    _check_equal_lengths(dataset)
    in_flight = collections.deque()
    outputs, indices = [], []
    for numbers, batch in _batches(dataset, self._batch_size):
      step_rng = None
      if rng is not None:
        step_rng, rng = map(_as_host_key, jax.random.split(rng))
      rows = {name: array[self._rows] for name, array in batch.items()}
      in_flight.append(
          self._step(
              train_state.params,
              train_state.flax_mutables,
              self._partitioner.global_batch(rows),
              step_rng,
          )
      )
      indices += numbers
      if len(in_flight) > _MAX_BATCHES_IN_FLIGHT:
        outputs.append(_fetch(in_flight.popleft()))
    outputs += map(_fetch, in_flight)
    return _by_example(
        indices, outputs, keep_aux_as_numpy=self._keep_aux_as_numpy
    )


def tokens_and_aux_values(
    outputs: Any,
) -> tuple[Sequence[Any], dict[str, Any]]:
  """Takes what an infer function gave apart, in the order of the examples.

  Args:
    outputs: pairs of (index, tokens or score); or a tuple of these and of
      auxiliary values, one list a name, in the same order as they.

  Returns:
    (tokens or scores, auxiliary values by name; {} where there are none).
  """
  pairs, aux = outputs if isinstance(outputs, tuple) else (outputs, {})
  order = sorted(range(len(pairs)), key=lambda place: pairs[place][0])
  return [pairs[place][1] for place in order], jax.tree.map(
      lambda values: [values[place] for place in order],
      aux,
      is_leaf=lambda values: isinstance(values, list | np.ndarray),
  )


def _with_fixed_arguments(infer_step: Callable[..., Any]) -> Callable[..., Any]:
  """The step with the same arguments, whichever of them it reads."""
  taken = inspect.signature(infer_step).parameters

  def step(params, flax_mutables, batch, rng):
    given = {'rng': rng, 'flax_mutables': flax_mutables}
    return infer_step(
        params, batch, **{n: v for n, v in given.items() if n in taken}
    )

  return step


def _batches(
    dataset: Iterable[tuple[Any, Example]], batch_size: int
) -> Iterator[tuple[list[int], dict[str, np.ndarray]]]:
  """Yields (indices, batch); the last batch repeats its first example."""
  examples = iter(
      dataset.as_numpy_iterator()
      if hasattr(dataset, 'as_numpy_iterator')
      else dataset
  )
  while taken := list(itertools.islice(examples, batch_size)):
    padding = [taken[0]] * (batch_size - len(taken))
    columns = [example for _, example in taken + padding]
    yield (
        [int(index) for index, _ in taken],
        {
            name: np.stack([np.asarray(one[name]) for one in columns])
            for name in columns[0]
        },
    )


def _check_equal_lengths(dataset: Any) -> None:
  """Refuses data of unequal lengths: a host would wait for ever."""
  try:
    length = len(dataset)
  except TypeError:
    return  # unknown until it is read
  lengths = distributed.meet('lengths of inference data', value=length)
  if len(set(lengths)) > 1:
    raise ValueError(
        f'the hosts have data sets of {lengths} examples (by process index) to '
        'infer on: expected equal numbers. Make the task read the same '
        'examples everywhere: no shuffling without a seed, the same files.'
    )


def _as_host_key(key: jax.Array) -> Any:
  """A key that any mesh takes: raw keys as numpy."""
  if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
    return key
  return np.asarray(key)


def _fetch(outputs: Any) -> Any:
  """Outputs, which every device has whole, as numpy arrays."""
  return jax.tree.map(lambda x: np.asarray(x.addressable_data(0)), outputs)


def _by_example(
    indices: list[int], outputs: list[Any], *, keep_aux_as_numpy: bool
) -> Any:
  """Batches of outputs as T5X's list of (index, output), and what is beside."""
  if not outputs:
    return []
  # The rows after the last index were padding.
  whole = jax.tree.map(
      lambda *parts: np.concatenate(parts)[: len(indices)], *outputs
  )
  aux = None
  if (
      isinstance(whole, tuple)
      and len(whole) == 2
      and isinstance(whole[1], Mapping)
  ):
    whole, aux = whole
  leaves, structure = jax.tree.flatten(whole)
  rows = [
      structure.unflatten(row)
      for row in zip(*(leaf.tolist() for leaf in leaves), strict=True)
  ]
  numbered = list(zip(indices, rows, strict=True))
  if aux is None:
    return numbered
  as_list = list if keep_aux_as_numpy else np.ndarray.tolist
  return numbered, jax.tree.map(as_list, aux)
