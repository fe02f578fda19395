# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The device that is measured, as the planner takes a machine."""

import dataclasses

from t5wild import hardware


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneDevice:
  """What `timing.estimate` asks of a topology, of one device.

  Attributes:
    chip: its facts: a row of the table of chips, or measured.
    platform: 'cpu', 'gpu' or 'tpu'.
    num_devices: one.
  """

  chip: hardware.Chip
  platform: str
  num_devices: int = 1
