# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Configurations under the defaults of those networks that T5X had several of.

T5X had networks of their own for scanned layers (`scalable_t5`) and for GPUs
(`contrib.gpu.t5`). Here each is the one network with other values, and T5X
recipes leave these to their defaults.
"""

from flax import struct

from t5wild.networks import config


@struct.dataclass
class ScannedT5Config(config.T5Config):
  """An encoder-decoder's, scanned unless said otherwise."""

  scan_layers: bool = True


@struct.dataclass
class ScannedTransformerConfig(config.TransformerConfig):
  """A decoder's, scanned unless said otherwise."""

  scan_layers: bool = True


@struct.dataclass
class GpuT5Config(config.T5Config):
  """An encoder-decoder's, with T5X's help for Adam.

  Attributes:
    scale_attn_logits: multiply queries by 1/sqrt(head_dim) in the forward pass
      as well as once in their initial kernel, where T5 does so.
  """

  scale_attn_logits: bool = False
