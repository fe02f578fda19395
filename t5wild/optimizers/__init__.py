# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning rate schedules.

`from t5wild import optimizers` gives T5X's names: `optimizers.OptimizerDef`,
`optimizers.MultiOptimizer`, `optimizers.chain`, `optimizers.adamw`, ...
"""

# ruff: noqa: F401, F403
from t5wild.optimizers.adafactor import Adafactor
from t5wild.optimizers.base import *
from t5wild.optimizers.multi_optimizer import MultiOptimizer
from t5wild.optimizers.optax_wrapper import *
from t5wild.optimizers.schedules import create_learning_rate_scheduler
