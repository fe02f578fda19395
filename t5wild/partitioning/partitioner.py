# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Partitioners: from a train state and rules to shardings and jitted functions.

`PjitPartitioner` is what recipes name. A function partitioned by it is traced
under the mesh and the rules, so that the logical constraints of a network
(`flax.linen.partitioning.with_sharding_constraint`) apply inside.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any

from absl import logging
from flax.linen import partitioning as flax_partitioning
import jax
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
import numpy as np

from t5wild.partitioning import compile_errors
from t5wild.partitioning import devices as devices_lib
from t5wild.partitioning import layout
from t5wild.partitioning import mesh as mesh_lib
from t5wild.partitioning import partitioned_function
from t5wild.partitioning import rules as rules_lib
from t5wild.partitioning import startup_flags as startup_flags_lib
from t5wild.partitioning import state_axes

DataLayout = layout.DataLayout


class BasePartitioner:
  """The mesh, who reads which rows, and the functions to partition with.

  The mesh is made on first use, not in the constructor: gin builds a
  partitioner before `jax.distributed` has started.
  """

  def __init__(
      self,
      num_partitions: int | None = None,
      model_parallel_submesh: Sequence[int] | None = None,
      params_on_devices: bool = True,
      backend: str | None = None,
      ici_mesh_shape: Sequence[int] | None = None,
      dcn_mesh_shape: Sequence[int] | None = None,
      *,
      mesh_shape: Mapping[str, int] | None = None,
      platform: str | None = None,
  ):
    """Keeps the description of the mesh.

    Args:
      num_partitions: size of the model axis, on any platform; None is 1.
      model_parallel_submesh: tile of devices the model axis covers, (x, y, z,
        core) on a TPU torus; elsewhere only its product counts. Wins over
        `num_partitions`.
      params_on_devices: kept for T5X's sake; parameters live on the devices.
      backend: name for `jax.devices`.
      ici_mesh_shape: sizes within a slice, see `mesh.mesh_sizes`.
      dcn_mesh_shape: sizes across slices (hosts where there are no slices).
      mesh_shape: axis -> size; wins over all of the above.
      platform: `'cpu'`, `'gpu'` or `'tpu'`: another one is an error.
    """
    self._num_partitions = num_partitions
    self._model_parallel_submesh = model_parallel_submesh
    self.params_on_devices = params_on_devices
    self._backend = backend
    self._ici_mesh_shape = ici_mesh_shape
    self._dcn_mesh_shape = dcn_mesh_shape
    self._mesh_shape = mesh_shape
    self._platform = platform

  @functools.cached_property
  def mesh(self) -> Mesh:
    """The mesh over all devices of all processes."""
    devices = devices_lib.select_devices(self._backend, platform=self._platform)
    sizes = mesh_lib.mesh_sizes(
        len(devices),
        num_partitions=self._num_partitions,
        model_parallel_submesh=self._model_parallel_submesh,
        mesh_shape=self._mesh_shape,
        ici_mesh_shape=self._ici_mesh_shape,
        dcn_mesh_shape=self._dcn_mesh_shape,
    )
    dcn_sizes = None
    if self._mesh_shape is None and self._dcn_mesh_shape is not None:
      dcn_sizes = mesh_lib.sizes_of_shape(
          self._dcn_mesh_shape, name='dcn_mesh_shape'
      )
    return mesh_lib.make_mesh(
        devices,
        sizes=sizes,
        dcn_sizes=dcn_sizes,
        model_parallel_submesh=self._model_parallel_submesh,
    )

  def fall_back_to_data_parallelism(self) -> None:
    """Gives up a mesh that does not fit the devices, and says so.

    For what a mesh does not change: a checkpoint can be read on any. Every
    process calls it.
    """
    try:
      _ = self.mesh
    except mesh_lib.MisfitError as error:
      self._num_partitions = self._model_parallel_submesh = None
      self._ici_mesh_shape = self._dcn_mesh_shape = None
      self._mesh_shape = {'data': -1}
      logging.warning(
          '%s All %d device(s) are data parallel instead.',
          str(error).splitlines()[0], self.mesh.size,
      )  # fmt: skip

  @property
  def logical_axis_rules(self) -> tuple:
    """The rules as they apply on this mesh."""
    return rules_lib.rules_for_mesh(
        rules_lib.checked_rules(rules_lib.standard_logical_axis_rules()),
        mesh=self.mesh,
    )

  @property
  def data_partition_spec(self) -> PartitionSpec:
    """Spec of a batch: its rows over the axes of the rule for `batch`."""
    return flax_partitioning.logical_to_mesh_axes(
        ('batch',), self.logical_axis_rules
    )

  @property
  def data_mesh_size(self) -> int:
    """In how many parts the rows of a batch are split over devices."""
    return layout.ways_split(self.mesh, self.data_partition_spec)

  @property
  def data_shards(self) -> int:
    """In how many parts hosts read a batch."""
    return len(layout.shards(self.mesh, self.data_partition_spec))

  @property
  def data_shard_id(self) -> int:
    """Which of these parts this host reads."""
    return self.get_data_layout().shard_id

  def get_data_layout(
      self, batch_size: int | None = None, host_index: int | None = None
  ) -> layout.DataLayout:
    """Returns which rows of a batch this host (or another one) reads.

    Raises:
      ValueError: the batch is not divisible by the data-parallel parts.
    """
    return layout.data_layout(
        self.mesh,
        self.data_partition_spec,
        batch_size=batch_size,
        process_index=host_index,
    )

  def host_rows(self, batch_size: int) -> np.ndarray:
    """Returns the indices of this host's rows in a global batch."""
    return layout.host_rows(
        self.mesh, self.data_partition_spec, batch_size=batch_size
    )

  def global_batch(
      self, host_batch: Mapping[str, np.ndarray]
  ) -> dict[str, jax.Array]:
    """Returns the global batch on the devices from every host's own rows."""
    return layout.global_batch(
        host_batch, mesh=self.mesh, spec=self.data_partition_spec
    )

  def get_local_chunk_info(
      self,
      global_shape: tuple[int, ...],
      mesh_axes: Sequence[str | None],
  ) -> layout.LocalChunkInfo:
    """Returns the part of an array that lies on this host."""
    return layout.local_chunk(
        self.mesh, PartitionSpec(*mesh_axes), global_shape
    )

  def shardings(self, specs: Any) -> Any:
    """Returns the tree of NamedShardings of a tree of PartitionSpecs.

    None stays None, so that the structure is kept.
    """
    return jax.tree.map(
        lambda spec: NamedSharding(self.mesh, spec),
        specs,
        is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
    )

  def get_logical_axes(
      self, train_state: state_axes.TrainState
  ) -> state_axes.TrainState:
    """Returns a copy of the state with logical axes (or None) as leaves."""
    return train_state.restore_state(
        jax.tree.map(lambda x: None, train_state.state_dict())
    )

  def get_mesh_axes(
      self, train_state: state_axes.TrainState
  ) -> state_axes.TrainState:
    """Returns a copy of the state with a PartitionSpec for every array.

    Scalars and arrays without logical axes are replicated. A dimension that
    its mesh axis does not divide stays whole; parameters this happens to are
    logged.

    Args:
      train_state: of arrays or ShapeDtypeStructs.

    Raises:
      ValueError: a logical axis has no rule.
    """
    return state_axes.mesh_axes_of_state(
        train_state,
        axes_state=self.get_logical_axes(train_state),
        rules=self.logical_axis_rules,
        mesh=self.mesh,
    )

  def partition(
      self,
      fn: Callable[..., Any],
      in_axis_resources: Any,
      out_axis_resources: Any,
      static_argnums: int | Sequence[int] = (),
      donate_argnums: int | Sequence[int] = (),
  ) -> partitioned_function.PartitionedFunction:
    """Returns `fn` jitted over the mesh.

    Args:
      fn: the function.
      in_axis_resources: tree (or prefix) of PartitionSpecs of the arguments
        that are not static; None is replicated.
      out_axis_resources: the same for the result.
      static_argnums: arguments that are compile-time constants.
      donate_argnums: arguments whose memory the result may take over.
    """
    jitted = jax.jit(
        fn,
        in_shardings=self._jit_shardings(in_axis_resources),
        out_shardings=self._jit_shardings(out_axis_resources),
        static_argnums=static_argnums,
        donate_argnums=donate_argnums,
    )
    return partitioned_function.PartitionedFunction(
        jitted, mesh=self.mesh, logical_axis_rules=self.logical_axis_rules
    )

  def _jit_shardings(self, specs: Any) -> Any:
    """Shardings for jit, where None means replicated."""
    return jax.tree.map(
        lambda spec: NamedSharding(self.mesh, spec or PartitionSpec()),
        specs,
        is_leaf=lambda leaf: leaf is None or isinstance(leaf, PartitionSpec),
    )

  def compile(
      self, partitioned_fn: partitioned_function.PartitionedFunction, *args
  ) -> Any:
    """Returns the function compiled for arguments of these shapes."""
    with compile_errors.told_with_their_mend():
      return partitioned_fn.lower(*args).compile()

  def move_params_to_devices(
      self,
      train_state: state_axes.TrainState,
      train_state_axes: state_axes.TrainState,
  ) -> state_axes.TrainState:
    """Returns the state with every array laid out as its spec says.

    Args:
      train_state: of jax.Arrays, or of numpy arrays that are equal on all
        hosts.
      train_state_axes: PartitionSpecs, from `get_mesh_axes`.
    """
    shardings = jax.tree.broadcast(
        self._jit_shardings(train_state_axes), train_state
    )
    return jax.tree.map(_placed, train_state, shardings)


class PjitPartitioner(BasePartitioner):
  """Partitions by named axes: `partitioning.PjitPartitioner` of recipes."""

  def __init__(  # noqa: PLR0913  (T5X's signature)
      self,
      num_partitions: int | None = None,
      model_parallel_submesh: Sequence[int] | None = None,
      params_on_devices: bool = True,
      backend: str | None = None,
      ici_mesh_shape: Sequence[int] | None = None,
      dcn_mesh_shape: Sequence[int] | None = None,
      logical_axis_rules: rules_lib.LogicalAxisRules | None = None,
      use_cpu_pjit: bool | None = None,
      activation_partitioning_dims: int = 1,
      parameter_partitioning_dims: int = 1,
      *,
      mesh_shape: Mapping[str, int] | None = None,
      platform: str | None = None,
      startup_flags: Mapping[str, Any] | None = None,
  ):
    """Keeps the mesh's description and checks the rules.

    Args:
      num_partitions: see BasePartitioner.
      model_parallel_submesh: see BasePartitioner.
      params_on_devices: see BasePartitioner.
      backend: see BasePartitioner.
      ici_mesh_shape: see BasePartitioner.
      dcn_mesh_shape: see BasePartitioner.
      logical_axis_rules: pairs (logical axis, mesh axis) by priority; None
        takes the standard ones.
      use_cpu_pjit: kept for old recipes; CPUs always partition.
      activation_partitioning_dims: for the standard rules.
      parameter_partitioning_dims: for the standard rules; 2 is fully sharded.
      mesh_shape: see BasePartitioner.
      platform: see BasePartitioner.
      startup_flags: set before JAX starts its devices, see `startup_flags.use`.

    Raises:
      ValueError: an unknown flag; a rule that is no pair or names an unknown
        mesh axis; numbers of dimensions beside rules that would not follow
        them.
    """
    super().__init__(
        num_partitions,
        model_parallel_submesh,
        params_on_devices,
        backend,
        ici_mesh_shape,
        dcn_mesh_shape,
        mesh_shape=mesh_shape,
        platform=platform,
    )
    del use_cpu_pjit
    if startup_flags:
      startup_flags_lib.use(startup_flags, platform=platform)
    if logical_axis_rules is None:
      logical_axis_rules = rules_lib.standard_logical_axis_rules(
          activation_partitioning_dims, parameter_partitioning_dims
      )
    elif (activation_partitioning_dims, parameter_partitioning_dims) != (1, 1):
      raise ValueError(
          'PjitPartitioner has logical_axis_rules and also '
          f'activation_partitioning_dims = {activation_partitioning_dims}, '
          f'parameter_partitioning_dims = {parameter_partitioning_dims}.\n'
          'Expected these numbers only where the rules are made.\n'
          'Set standard_logical_axis_rules.parameter_partitioning_dims and '
          '.activation_partitioning_dims instead of those of PjitPartitioner.'
      )
    self._logical_axis_rules = rules_lib.checked_rules(logical_axis_rules)

  @functools.cached_property
  def logical_axis_rules(self) -> tuple:
    """The rules as they apply on this mesh."""
    return rules_lib.rules_for_mesh(self._logical_axis_rules, mesh=self.mesh)

  def get_logical_axes(
      self, train_state: state_axes.TrainState
  ) -> state_axes.TrainState:
    """Returns a copy of the state with logical axes (or None) as leaves."""
    return train_state.as_logical_axes()


def _placed(array: Any, sharding: NamedSharding) -> jax.Array:
  if isinstance(array, jax.Array):
    if array.is_fully_addressable and sharding.is_fully_addressable:
      return jax.device_put(array, sharding)
    if not array.is_fully_addressable:
      # Between hosts only a computation can move shards.
      return jax.jit(_identity, out_shardings=sharding)(array)
  array = np.asarray(array)
  return jax.make_array_from_callback(
      array.shape, sharding, lambda index: array[index]
  )


def _identity(array):
  return array
