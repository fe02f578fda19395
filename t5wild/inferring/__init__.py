# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Inference over files and tasks: inputs, buckets, resumable outputs."""

from t5wild.inferring import inputs

FileConfig = inputs.FileConfig
