# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The program that NVIDIA's real compiler makes for an H100 multiplies FP8."""

import json

import pytest

from t5wild import exit_codes
from t5wild.planner import environment
from t5wild.planner import for_topology
from tests.planner import tiny_recipe

# Forward, 4 of an encoder layer (one for queries, keys and values, `out`, one
# for both gates, `wo`) and 7 of a decoder layer. Backward, 7 and 11 of those of
# inputs, 4 and 7 of those of kernels. There are two layers of each.
_PRODUCTS = 2 * (4 + 7 + 7 + 11 + 4 + 7)


@pytest.mark.slow
def test_every_product_of_the_chosen_layers_is_one_of_fp8(
    tmp_path, capsys, monkeypatch
):
  try:
    environment.check_plugin('gpu')
  except environment.MissingPluginError as error:
    pytest.skip(str(error))
  for_topology.define_flags()
  monkeypatch.setenv('XLA_FLAGS', '--xla_gpu_enable_triton_gemm=false')
  code = tiny_recipe.compile_for(
      'h100:1x2', tmp_path,
      "--gin.network.T5Config.quantization='fp8'",
      # Smaller products are no calls of a library.
      '--gin.network.T5Config.emb_dim=128',
      '--gin.network.T5Config.mlp_dim=256',
      "--gin.TASK_FEATURE_LENGTHS={'inputs': 128, 'targets': 64}",
      '--gin.DROPOUT_RATE=0.0',
      '--gin.partitioning.PjitPartitioner.num_partitions=1',
  )  # fmt: skip
  assert code == exit_codes.DONE.code, capsys.readouterr().err
  found = json.loads((tmp_path / 'precompile/h100-1x2.json').read_text())
  products = found['programs']['train']['kernels']['products']
  assert products['__cublas$lt$matmul$f8'] == _PRODUCTS
