# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What is said of a model at the start of a run."""

import pytest

from t5wild.networks import config as network_config
from t5wild.trainer import model_info


@pytest.mark.parametrize(
    ('device_kind', 'is_told'),
    [
        ('NVIDIA A100-SXM4-80GB', True), ('TPU v6 lite', True),
        ('NVIDIA H100 80GB HBM3', False), ('cpu', False),
    ],
)  # fmt: skip
def test_fp8_is_told_of_where_the_chip_has_no_such_products(
    device_kind, is_told
):
  config = network_config.T5Config(vocab_size=8)
  fp8 = config.replace(quantization='fp8')
  hint = model_info.hint_of_products(fp8, device_kind)
  assert (hint is not None) == is_told
  assert hint is None or "T5Config.quantization is 'fp8'" in hint
  assert model_info.hint_of_products(config, device_kind) is None
