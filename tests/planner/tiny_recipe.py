# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A recipe that every compiler is through with in seconds."""

import pathlib

from t5wild import precompile

ARGUMENTS = (
    '--gin_file=models/t5_1_1/tiny.gin',
    '--gin_file=runs/pretrain.gin',
    '--gin.MIXTURE_OR_TASK_NAME=no_such_task',  # its data are never opened
    "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 8}",
    '--gin.BATCH_SIZE=16',
    '--gin.DROPOUT_RATE=0.1',
    '--gin.VOCABULARY=@seqio.ByteVocabulary()',
    '--gin.TRAIN_STEPS=10',
    '--gin.network.T5Config.scan_layers=True',
    '--gin.partitioning.standard_logical_axis_rules.'
    'parameter_partitioning_dims=2',
    '--gin.partitioning.PjitPartitioner.num_partitions=2',
)


def compile_for(topology: str, folder: pathlib.Path, *more: str) -> int:
  """Runs `t5wild precompile` into FOLDER/precompile; returns its exit code."""
  return precompile.run([
      't5wild precompile', f'--topology={topology}', *ARGUMENTS,
      f'--gin.MODEL_DIR={folder}', *more,
  ])  # fmt: skip
