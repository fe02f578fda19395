# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Registers T5's mixtures, by T5's names and with its rates."""

import seqio

from t5wild.tasks.t5 import defaults
from t5wild.tasks.t5 import glue
from t5wild.tasks.t5 import tasks

MixtureRegistry = seqio.MixtureRegistry

_UNSUPERVISED = 'c4_v020_unsupervised'
_GLUE = glue.GLUE_WEIGHT_MAPPING
_SUPER_GLUE = glue.SUPER_GLUE_WEIGHT_MAPPING
_ENDE, _ENFR, _ENRO = (
    'wmt_t2t_ende_v003', 'wmt15_enfr_v003', 'wmt16_enro_v003'
)
_OTHERS = (
    'cnn_dailymail_v002', 'squad_v010_allanswers', _ENDE, _ENFR, _ENRO
)
_SUPERVISED = (*_GLUE, *_SUPER_GLUE, *_OTHERS)
_PRONOUNS = (
    'dpr_v001_simple', 'super_glue_wsc_v102_simple_train',
    'super_glue_wsc_v102_simple_eval',
)  # fmt: skip


def assign_weight_or_rate_num_examples(name):
  """A benchmark's fixed rate; of another task its number of examples."""
  rates = _GLUE | _SUPER_GLUE
  return rates.get(name, defaults.rate_num_examples)


def _rate_among_all(name: str):
  """The same, halved for RTE, which both benchmarks have."""
  rate = assign_weight_or_rate_num_examples(name)
  return rate / 2 if 'glue' in name and 'rte' in name else rate


def _add_benchmarks() -> None:
  for name, rates in (
      ('glue_v002_proportional', _GLUE),
      ('super_glue_v102_proportional', _SUPER_GLUE),
      (
          'super_glue_v102_proportional_sentinel',
          glue.SUPER_GLUE_WEIGHT_MAPPING_SENTINEL,
      ),
  ):
    MixtureRegistry.add(name, list(rates.items()))
  MixtureRegistry.add(
      'glue_mnli_and_dev_v002',
      [name for name in _GLUE if 'mnli' in name],
      default_rate=1.0,
  )
  MixtureRegistry.add(
      'wsc_dpr_simple_proportional',
      [(name, _SUPER_GLUE[name]) for name in _PRONOUNS],
  )


def _add_trained_together() -> None:
  """Mixtures of what T5 trained on together, with and without its text."""
  unsupervised = (_UNSUPERVISED, defaults.rate_unsupervised)
  MixtureRegistry.add(
      'en_mix',
      [unsupervised, *_GLUE, *_SUPER_GLUE, 'squad_v010_allanswers'],
      default_rate=defaults.rate_num_examples,
  )
  MixtureRegistry.add(
      'all_equal', [*_SUPERVISED, _UNSUPERVISED], default_rate=1.0
  )
  supervised = [(name, _rate_among_all(name)) for name in _SUPERVISED]
  MixtureRegistry.add(
      'all_proportional',
      [*supervised, (_UNSUPERVISED, defaults.rate_num_examples)],
  )
  # Its text has a rate that rate_num_examples.maximum does not bound.
  MixtureRegistry.add('all_mix', [unsupervised, *supervised])


def _add_all_but_one() -> None:
  everything = {*_SUPERVISED, _UNSUPERVISED}
  for name, left_out, rate in (
      ('glue_v002_proportional', _GLUE, assign_weight_or_rate_num_examples),
      (
          'super_glue_v102_proportional', _SUPER_GLUE,
          assign_weight_or_rate_num_examples,
      ),
      *((name, (name,), _rate_among_all) for name in _OTHERS),
  ):  # fmt: skip
    MixtureRegistry.add(
        f'leave_one_out_{name}',
        [(each, rate(each)) for each in sorted(everything - set(left_out))],
    )


def _add_large() -> None:
  translations = [_ENDE, _ENFR]
  large = [*translations, 'cnn_dailymail_v002']
  add = MixtureRegistry.add
  add('large_supervised_equal', large, default_rate=1.0)
  add(
      'large_supervised_proportional',
      large,
      default_rate=defaults.rate_num_examples,
  )
  add('large_translation_equal', translations, default_rate=1.0)
  add(
      'squad_trivia_qa_equal',
      ['squad_v010_allanswers', 'trivia_qa_v010'],
      default_rate=1.0,
  )


# The names of its tasks are registered first.
assert tasks.TaskRegistry is seqio.TaskRegistry
_add_benchmarks()
_add_trained_together()
_add_all_but_one()
_add_large()
