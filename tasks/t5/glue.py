# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""GLUE and SuperGLUE as T5 has them: classes, forms, metrics, mixing rates."""

import dataclasses
import functools

from t5wild.tasks.t5 import classes
from t5wild.tasks.t5 import metrics
from t5wild.tasks.t5 import postprocessors


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """One of GLUE's or SuperGLUE's data sets; TFDS's builder configs are alike.

  Attributes:
    name: as TFDS calls it.
    label_classes: names of the labels; None where they are numbers.
  """

  name: str
  label_classes: tuple[str, ...] | None


_ENTAILMENT = ('entailment', 'not_entailment')
_MNLI = ('entailment', 'neutral', 'contradiction')
_FALSE_TRUE = ('False', 'True')

GLUE = (
    Benchmark('cola', ('unacceptable', 'acceptable')),
    Benchmark('sst2', ('negative', 'positive')),
    Benchmark('mrpc', ('not_equivalent', 'equivalent')),
    Benchmark('qqp', ('not_duplicate', 'duplicate')),
    Benchmark('stsb', None),
    Benchmark('mnli', _MNLI),
    Benchmark('mnli_mismatched', _MNLI),
    Benchmark('mnli_matched', _MNLI),
    Benchmark('qnli', _ENTAILMENT),
    Benchmark('rte', _ENTAILMENT),
    Benchmark('wnli', ('not_entailment', 'entailment')),
    Benchmark('ax', _MNLI),
)
# Without WSC, which has a form of its own.
SUPER_GLUE = (
    Benchmark('boolq', _FALSE_TRUE),
    Benchmark('cb', ('entailment', 'contradiction', 'neutral')),
    Benchmark('copa', ('choice1', 'choice2')),
    Benchmark('multirc', _FALSE_TRUE),
    Benchmark('record', _FALSE_TRUE),
    Benchmark('rte', _ENTAILMENT),
    Benchmark('wic', _FALSE_TRUE),
    Benchmark('axb', _ENTAILMENT),
    Benchmark('axg', _ENTAILMENT),
)

# Numbers of training examples; 0 for what is evaluated only. WNLI is not
# trained on: definite pronouns and WSC stand for it.
GLUE_WEIGHT_MAPPING = {
    'glue_cola_v002': 8_551.0,
    'glue_sst2_v002': 67_349.0,
    'glue_mrpc_v002': 3_668.0,
    'glue_qqp_v002': 363_849.0,
    'glue_stsb_v002': 5_749.0,
    'glue_mnli_v002': 392_702.0,
    'glue_qnli_v002': 104_743.0,
    'glue_rte_v002': 2_490.0,
    'glue_mnli_mismatched_v002': 0.0,
    'glue_mnli_matched_v002': 0.0,
    'glue_ax_v002': 0.0,
}
SUPER_GLUE_WEIGHT_MAPPING = {
    'dpr_v001_simple': 1_322.0,
    'super_glue_wsc_v102_simple_train': 259.0,
    'super_glue_wsc_v102_simple_eval': 0.0,
    'super_glue_boolq_v102': 9_427.0,
    'super_glue_cb_v102': 250.0,
    'super_glue_copa_v102': 400.0,
    'super_glue_multirc_v102': 27_243.0,
    'super_glue_record_v102': 138_854.0,
    'super_glue_rte_v102': 2_490.0,
    'super_glue_wic_v102': 5_428.0,
    'super_glue_axb_v102': 0.0,
    'super_glue_axg_v102': 0.0,
}


def _with_sentinel(name: str) -> str:
  """The task's name with a sentinel in its inputs, as seqio calls it."""
  for split in ('_train', '_eval'):
    if name.endswith(split):
      return f'{name.removesuffix(split)}_1_sentinel{split}'
  return f'{name}_1_sentinel'


SUPER_GLUE_WEIGHT_MAPPING_SENTINEL = {
    _with_sentinel(name): weight
    for name, weight in SUPER_GLUE_WEIGHT_MAPPING.items()
}

GLUE_METRICS = {
    'cola': [
        metrics.sklearn_metrics_wrapper(
            'matthews_corrcoef', metric_post_process_fn=lambda x: 100 * x
        )
    ],
    'sst2': [metrics.accuracy],
    'mrpc': [metrics.f1_score_with_invalid, metrics.accuracy],
    'stsb': [metrics.pearson_corrcoef, metrics.spearman_corrcoef],
    'qqp': [metrics.f1_score_with_invalid, metrics.accuracy],
    'mnli': [metrics.accuracy],
    'mnli_matched': [metrics.accuracy],
    'mnli_mismatched': [metrics.accuracy],
    'qnli': [metrics.accuracy],
    'rte': [metrics.accuracy],
    'wnli': [metrics.accuracy],
    'ax': [],  # its labels are not public
}
SUPERGLUE_METRICS = {
    'boolq': [metrics.accuracy],
    'cb': [metrics.mean_multiclass_f1(num_classes=3), metrics.accuracy],
    'copa': [metrics.accuracy],
    'multirc': [
        metrics.multirc_f1_over_all_answers,
        metrics.mean_group_metric(metrics.all_match),
    ],
    'record': [metrics.deduplicate_metric(metrics.squad)],
    'rte': [metrics.accuracy],
    'wic': [metrics.accuracy],
    'axb': [],
    'axg': [],
}
_FORMS = {'stsb': classes.stsb, 'wsc.fixed': classes.wsc,
          'record': classes.record}  # fmt: skip
# Diagnostic sets, cast as the task they are like.
_CAST_AS = {'ax': 'mnli', 'axb': 'rte', 'axg': 'rte'}
_TEXTS = {
    'multirc': ('question', 'answer', 'paragraph'),
    # Where the word stands in each sentence is not told.
    'wic': ('sentence1', 'sentence2', 'word'),
}
_POSTPROCESSORS = {
    'stsb': postprocessors.string_to_float,
    'multirc': postprocessors.multirc,
    'record': postprocessors.record,
}


def get_glue_weight_mapping():
  """Mixing rates of GLUE's tasks."""
  return GLUE_WEIGHT_MAPPING


def get_super_glue_weight_mapping():
  """Mixing rates of SuperGLUE's tasks."""
  return SUPER_GLUE_WEIGHT_MAPPING


def get_super_glue_weight_mapping_sentinel():
  """Mixing rates of SuperGLUE's tasks with a sentinel."""
  return SUPER_GLUE_WEIGHT_MAPPING_SENTINEL


def get_glue_text_preprocessor(builder_config):
  """The form of a benchmark: a preprocessor of TFDS's examples."""
  name = builder_config.name
  if name in _FORMS:
    return _FORMS[name]
  return functools.partial(
      classes.glue,
      benchmark_name='mnli' if 'mnli' in name else _CAST_AS.get(name, name),
      label_names=builder_config.label_classes,
      feature_names=_TEXTS.get(name),
  )


def get_glue_postprocess_fn(builder_config):
  """What a prediction for a benchmark becomes before its metrics."""
  name = builder_config.name
  if name in _POSTPROCESSORS:
    return _POSTPROCESSORS[name]
  return functools.partial(
      postprocessors.string_label_to_class_id,
      label_classes=builder_config.label_classes,
  )


def get_glue_metric(task_name):
  """GLUE's metrics for a benchmark."""
  return GLUE_METRICS[task_name]


def get_super_glue_metric(task_name):
  """SuperGLUE's metrics for a benchmark."""
  return SUPERGLUE_METRICS[task_name]
