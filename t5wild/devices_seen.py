# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Which accelerators the operating system shows, whatever JAX makes of them."""

import glob
import os


def accelerator() -> str | None:
  """'gpu' or 'tpu' when the operating system shows one, else None."""
  if glob.glob('/dev/nvidia[0-9]*') or os.path.exists('/dev/kfd'):
    return 'gpu'
  if glob.glob('/dev/accel*') or glob.glob('/dev/vfio/[0-9]*'):
    return 'tpu'
  return None
