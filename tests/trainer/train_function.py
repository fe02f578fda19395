# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A whole train step as one function, to compile or to run."""

from t5wild.trainer import step as step_lib


def make(model, *, num_microbatches, semantics='global'):
  """Returns (state, batch, key) -> (state, metrics), at a rate of 0.01."""

  def train(state, batch, rng):
    return step_lib.train_with_lr(
        state,
        batch,
        learning_rate=0.01,
        dropout_rng=rng,
        model=model,
        num_microbatches=num_microbatches,
        microbatch_semantics=semantics,
    )

  return train
