# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What T5's tasks share: their vocabulary, and how often each is drawn."""

import seqio

from t5wild.tasks.t5 import gin_names

_configurable = gin_names.configurable('t5.data.utils')
DEFAULT_SPM_PATH = 'gs://t5-data/vocabs/cc_all.32000/sentencepiece.model'
DEFAULT_EXTRA_IDS = 100


def get_default_vocabulary():
  """T5's 32,000 pieces and 100 sentinels; read when it is first used."""
  return seqio.SentencePieceVocabulary(DEFAULT_SPM_PATH, DEFAULT_EXTRA_IDS)


def make_features() -> dict[str, seqio.Feature]:
  """Inputs, which a task may lack, and targets, in T5's vocabulary."""
  return {
      'inputs': seqio.Feature(
          get_default_vocabulary(), add_eos=True, required=False
      ),
      'targets': seqio.Feature(get_default_vocabulary(), add_eos=True),
  }


@_configurable
def rate_num_examples(
    task,
    maximum=None,
    temperature=1.0,
    scale=1.0,
    fallback_to_num_input_examples=True,
):
  """The number of a task's training examples, times `scale`, at most `maximum`.

  All of it to the power 1 / `temperature`.
  """
  return seqio.mixing_rate_num_examples(
      task=task,
      maximum=maximum,
      scale=scale,
      temperature=temperature,
      fallback_to_num_input_examples=fallback_to_num_input_examples,
  )


@_configurable
def rate_unsupervised(task, value=1e6):
  """The rate of the unsupervised task of a mixture."""
  del task
  return value
