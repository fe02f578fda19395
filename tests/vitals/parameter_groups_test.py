# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Layers by the paths of parameters."""

import pytest

from t5wild.vitals import parameter_groups


@pytest.mark.parametrize(
    ('path', 'group'),
    [
        ('encoder/layers_11/attention/query/kernel', 'encoder/layers_11'),
        ('decoder/layer_0/mlp/wi', 'decoder/layer_0'),
        ('decoder/decoder_norm/scale', 'decoder/decoder_norm'),
        ('token_embedder/embedding', 'token_embedder'),
        ('bias', 'bias'),
    ],
)
def test_a_parameter_belongs_to_its_layer(path, group):
  assert parameter_groups.group_of(path) == group
