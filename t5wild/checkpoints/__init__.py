# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: saved in the background, restored on any mesh."""

from t5wild.checkpoints import checkpointer
from t5wild.checkpoints import configs
from t5wild.checkpoints import load
from t5wild.checkpoints import manager
from t5wild.checkpoints import tiers

CheckpointConfig = configs.CheckpointConfig
CheckpointManager = manager.CheckpointManager
Checkpointer = checkpointer.Checkpointer
FastTier = tiers.FastTier
Mirror = tiers.Mirror
RestoreCheckpointConfig = configs.RestoreCheckpointConfig
SaveBestCheckpointer = checkpointer.SaveBestCheckpointer
SaveCheckpointConfig = configs.SaveCheckpointConfig
all_steps = manager.steps.all_steps
apply_assignment_map = configs.transforms.apply_assignment_map
get_checkpoint_dir = manager.steps.get_checkpoint_dir
latest_step = manager.steps.latest_step
load_t5x_checkpoint = load.load_t5x_checkpoint
