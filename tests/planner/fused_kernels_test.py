# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The program NVIDIA's compiler makes for an H100: fused calls, no excess."""

import json
import math
import re

import pytest

from t5wild import exit_codes
from t5wild import precompile
from t5wild.planner import environment
from t5wild.planner import for_topology

_BIASED = ('__cudnn$fmhaScaleBiasSoftmax',)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('model', 'config', 'kernels'),
    [
        # T5's bias in both stacks, none across.
        ('t5_1_1/tiny', 'T5Config', (*_BIASED, '__cudnn$fmhaSoftmax')),
        ('prefix_lm/tiny', 'TransformerConfig', _BIASED),
        # Rotary positions, causal, fewer heads of keys.
        ('llama_like/tiny', 'TransformerConfig', ('__cudnn$fmhaSoftmax',)),
    ],
)
def test_every_attention_is_fused_forward_and_backward(
    model, config, kernels, tmp_path, capsys
):
  try:
    environment.check_plugin('gpu')
  except environment.MissingPluginError as error:
    pytest.skip(str(error))
  for_topology.define_flags()
  code = precompile.run([
      't5wild precompile', '--topology=h100:1x2',
      f'--gin_file=models/{model}.gin', '--gin_file=runs/pretrain.gin',
      '--gin.MIXTURE_OR_TASK_NAME=no_such_task', f'--gin.MODEL_DIR={tmp_path}',
      "--gin.TASK_FEATURE_LENGTHS={'inputs': 256, 'targets': 256}",
      '--gin.BATCH_SIZE=4', '--gin.TRAIN_STEPS=10', '--gin.DROPOUT_RATE=0.0',
      '--gin.VOCABULARY=@seqio.ByteVocabulary()',
      f'--gin.network.{config}.head_dim=64',
      f"--gin.network.{config}.dtype='bfloat16'",
      f'--gin.network.{config}.scan_layers=True',
      # Half of the heads on each device.
      '--gin.partitioning.PjitPartitioner.num_partitions=2',
      '--programs=train,decode',
  ])  # fmt: skip
  assert code == exit_codes.DONE.code, capsys.readouterr().err
  found = json.loads((tmp_path / 'precompile/h100-1x2.json').read_text())
  vocab_size = found['recipe']['shape']['vocab_size']
  found = found['programs']['train']['kernels']
  assert found['attention_forward'] == ', '.join(kernels)
  assert found['attention_backward'] == ', '.join(
      f'{kernel}Backward' for kernel in kernels
  )
  # The gradient of the embeddings needs no number of each token and row.
  program = (tmp_path / 'precompile/h100-1x2-train.hlo.txt').read_text()
  written = re.findall(r' = s32\[([\d,]+)\]\S* fusion\(', program)
  largest = max(math.prod(map(int, sizes.split(','))) for sizes in written)
  assert largest < 4 * 256 * vocab_size / 2
