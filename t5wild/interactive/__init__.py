# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Models at hand, in a notebook or a plain script."""

# ruff: noqa: F401
from t5wild.interactive.graduating import get_gin_config_from_interactive_model
from t5wild.interactive.graduating import get_seqio_task_from_examples
from t5wild.interactive.graduating import T5XScriptType
from t5wild.interactive.model import InferenceType
from t5wild.interactive.model import InteractiveModel
from t5wild.interactive.of_run import load
from t5wild.interactive.of_run import LoadedRun
from t5wild.interactive.texts import get_batches_from_seqio
from t5wild.interactive.texts import get_dataset_from_natural_text_examples
