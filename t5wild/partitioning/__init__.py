# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Named-axis sharding: meshes, rules, partitioners, processes."""

from jax.sharding import Mesh as Mesh
from jax.sharding import PartitionSpec as PartitionSpec

from t5wild.partitioning.layout import DataLayout as DataLayout
from t5wild.partitioning.layout import LocalChunkInfo as LocalChunkInfo
from t5wild.partitioning.mesh import MESH_AXES as MESH_AXES
from t5wild.partitioning.partitioner import BasePartitioner as BasePartitioner
from t5wild.partitioning.partitioner import PjitPartitioner as PjitPartitioner
from t5wild.partitioning.rules import LogicalAxisRules as LogicalAxisRules
from t5wild.partitioning.rules import (
  standard_logical_axis_rules as standard_logical_axis_rules,
)

ModelBasedPjitPartitioner = PjitPartitioner
