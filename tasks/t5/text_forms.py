# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""How T5 spaces text: punctuation apart, single spaces."""

import tensorflow as tf


def with_spaced_punctuation(text: tf.Tensor) -> tf.Tensor:
  """Text with a space on either side of each punctuation mark."""
  return with_single_spaces(
      tf.strings.regex_replace(text, r'([[:punct:]])', r' \1 ')
  )


def with_single_spaces(text: tf.Tensor) -> tf.Tensor:
  """Text in which each run of white space is one space."""
  return tf.strings.regex_replace(text, r'\s+', ' ')


def joined(*parts: tf.Tensor | str) -> tf.Tensor:
  """The parts with single spaces between and within them."""
  return with_single_spaces(tf.strings.join(parts, separator=' '))


def label_text(label: tf.Tensor, names: list[str]) -> tf.Tensor:
  """The name of a class; '<unk>' for -1, by which test sets hide theirs."""
  return tf.gather(['<unk>', *names], label + 1)
