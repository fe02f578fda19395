# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What `train(trainer_cls=...)` calls, as T5X types it."""

from collections.abc import Sequence
from typing import Any, Protocol

import jax

from t5wild import train_state as train_state_lib
from t5wild.models import base as models_base
from t5wild.partitioning import partitioner as partitioner_lib

PyTree = Any


class BaseTrainerConstructor(Protocol):
  """What `train(trainer_cls=...)` calls."""

  def __call__(
      self,
      model: models_base.BaseModel,
      train_state: train_state_lib.TrainState,
      partitioner: partitioner_lib.BasePartitioner,
      eval_names: Sequence[str],
      summary_dir: str | None,
      train_state_axes: PyTree,
      rng: jax.Array,
  ) -> Any:
    """Returns a `trainer.BaseTrainer`."""
