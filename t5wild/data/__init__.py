# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Data: configs, readers, objectives; imports no TensorFlow and no seqio."""

from t5wild.data.cached_datasets import (
    CachedDatasetConfig as CachedDatasetConfig,
)
from t5wild.data.datasets import DatasetConfig as DatasetConfig
from t5wild.data.datasets import get_dataset as get_dataset
from t5wild.data.datasets import (
    get_training_eval_datasets as get_training_eval_datasets,
)
from t5wild.data.datasets import get_vocabulary as get_vocabulary
from t5wild.data.datasets import make_eval_batches as make_eval_batches
from t5wild.data.datasets import make_train_reader as make_train_reader
from t5wild.data.datasets import (
    verify_matching_vocabs as verify_matching_vocabs,
)
from t5wild.data.device_feed import DeviceFeed as DeviceFeed
