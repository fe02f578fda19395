# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""t5wild, a T5X-style trainer; holds the version and imports nothing."""

__version__ = '0.1.0'
