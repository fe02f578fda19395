# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads gin: finds files, resolves names, refuses what gin overlooks."""

from t5wild.gin_config.lint import declare_scopes as declare_scopes
from t5wild.gin_config.reader import gin_root as gin_root
from t5wild.gin_config.reader import GinError as GinError
from t5wild.gin_config.reader import register_source as register_source
