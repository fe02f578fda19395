# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Training: steps, trainers, and what watches their metrics."""

# ruff: noqa: F401
from t5wild.trainer.actions import ActionMapType
from t5wild.trainer.actions import ActionMode
from t5wild.trainer.actions import BaseAction
from t5wild.trainer.actions import EarlyStoppingAction
from t5wild.trainer.actions import TerminateOnNanAction
from t5wild.trainer.constructor import BaseTrainerConstructor
from t5wild.trainer.step import accumulate_grads_microbatched
from t5wild.trainer.step import apply_grads
from t5wild.trainer.step import eval_step
from t5wild.trainer.step import merge_metrics
from t5wild.trainer.step import train_with_lr
from t5wild.trainer.trainer import BaseTrainer
from t5wild.trainer.trainer import Trainer
from t5wild.trainer.weight_stats import WeightMetricsComputer
