# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's tasks, mixtures, preprocessors and metrics, where `t5` is absent.

`t5.data...` and `t5.evaluation.metrics` are names for what lies here; an
installed `t5` keeps its own. Formats, rates, lengths and random draws are T5's,
so that a model sees the same tokens. Importing this registers nothing.
"""
