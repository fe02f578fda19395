# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of checkpoints, one after the other; see `t5wild.eval`."""
