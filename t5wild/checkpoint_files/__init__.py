# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as folders of files: hashes, copies, marks; no JAX, no Orbax."""
