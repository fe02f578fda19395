# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation of checkpoints is asked to do, checked at once."""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

from t5wild.checkpoints import configs as checkpoint_configs
from t5wild.models import base as models_base
from t5wild.partitioning import partitioner as partitioner_lib

# Argument to its lowest value and what to set.
_LOWEST = {
    'eval_steps': (1, 'it to a number of batches, or to None (all)'),
    'wait_seconds': (0, 'WAIT_SECONDS to the time to wait, or to 0'),
    'poll_seconds': (0.1, 'it to the seconds between looks'),
    'total_steps': (0, 'it to the last step of the run, or to None'),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
  """The arguments of `t5wild.eval.evaluate`; see there for each.

  Attributes:
    settings: Lines of configuration by which evaluations are told apart.
  """

  model: models_base.BaseModel
  dataset_cfg: Any
  restore_checkpoint_cfg: checkpoint_configs.RestoreCheckpointConfig
  partitioner: partitioner_lib.BasePartitioner
  output_dir: str
  inference_evaluator_cls: Callable[..., Any] | None
  training_evaluator_cls: Callable[..., Any] | None
  summarize_config_fn: Callable[..., None] | None
  train_state_initializer_cls: Callable[..., Any]
  train_eval_get_dataset_fn: Callable[..., Any] | None
  fallback_init_rng: int | None
  use_orbax: bool
  verify_matching_vocabs_fn: Callable[..., None] | None
  eval_steps: int | None
  wait_seconds: float
  poll_seconds: float
  total_steps: int | None
  settings: Sequence[str] = ()

  def __post_init__(self):
    """Refuses what would fail only after compiling."""
    if not self.output_dir:
      raise ValueError(
          f'output_dir is {self.output_dir!r}: expected a folder or a bucket '
          'path. Set EVAL_OUTPUT_DIR.'
      )
    if self.inference_evaluator_cls is self.training_evaluator_cls is None:
      raise ValueError(
          'inference_evaluator_cls and training_evaluator_cls are both None: '
          'expected at least one. Set the first to @seqio.Evaluator for the '
          "task's metrics, the second to @trainer.Trainer for its loss."
      )
    for name, (lowest, mend) in _LOWEST.items():
      value = getattr(self, name)
      if value is not None and value < lowest:
        raise ValueError(
            f'{name} is {value!r}, expected at least {lowest}: set {mend}.'
        )
    if self.wait_seconds and self.restore_checkpoint_cfg.mode != 'all':
      raise ValueError(
          f'wait_seconds is {self.wait_seconds} and RestoreCheckpointConfig.'
          f'mode is {self.restore_checkpoint_cfg.mode!r}: expected mode '
          "'all' where new checkpoints are waited for. Set it, or WAIT_SECONDS "
          'to 0.'
      )
    if not self.use_orbax:
      raise ValueError(
          f'use_orbax is {self.use_orbax!r}: expected True, only Orbax '
          'checkpoints are read here. Drop the binding.'
      )
