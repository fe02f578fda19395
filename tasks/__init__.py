# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""seqio tasks, imported as `t5wild.tasks`; nothing is registered by this."""
