# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5X's names for t5wild's objects: importing this makes them importable."""

from t5wild.compat import install

install.install()
