# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's learning rate that depends on the machine it is made on."""

import os


def make_rate():
  """Returns step -> rate, another one where ODD is set."""
  rate = 0.02 if os.environ.get('ODD') else 0.01
  return lambda step: rate
