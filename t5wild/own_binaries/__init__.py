# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What a training binary written for T5X calls: its parts, one by one.

Our own binaries do not need this: `assembly` puts a run together.
"""
