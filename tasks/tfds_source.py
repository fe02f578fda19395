# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A seqio data source of a TFDS data set, its class labels read as names.

Imports TensorFlow and seqio, so it is itself imported when a source is made.
"""

from collections.abc import Mapping
from typing import Any

import seqio
import tensorflow as tf


class LabelledTfdsSource(seqio.TfdsDataSource):
  """Examples of a TFDS data set with texts where it has class labels."""

  def get_dataset(self, *args: Any, **kwargs: Any) -> tf.data.Dataset:
    """One pass over the examples of a split, or of one host's files of it."""
    dataset = super().get_dataset(*args, **kwargs)
    names = self._label_names()
    if not names:
      return dataset

    def with_names(example):
      example = dict(example)
      for column, labels in names.items():
        # What has no label, as in test sets, is -1.
        texts = tf.constant([*labels, ''])
        label = example[column]
        place = tf.where(label < 0, tf.cast(len(labels), label.dtype), label)
        example[column] = tf.gather(texts, place)
      return example

    return dataset.map(with_names)

  def _label_names(self) -> Mapping[str, list[str]]:
    """Names of the classes of each column of labels."""
    features = self.tfds_dataset.builder.info.features or {}
    return {
        column: list(feature.names)
        for column, feature in features.items()
        if type(feature).__name__ == 'ClassLabel' and feature.names
    }
