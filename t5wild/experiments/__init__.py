# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Many runs of one recipe: sweeps and ladders; imports with JAX absent."""
