# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Registers T5's tasks, by T5's names; an import reads no data."""

from collections.abc import Callable, Sequence
import functools
from typing import Any

import seqio

from t5wild.tasks.t5 import defaults
from t5wild.tasks.t5 import denoising
from t5wild.tasks.t5 import glue
from t5wild.tasks.t5 import metrics
from t5wild.tasks.t5 import pairs
from t5wild.tasks.t5 import postprocessors
from t5wild.tasks.t5 import prefix_lm_packing
from t5wild.tasks.t5 import questions
from t5wild.tasks.t5 import referents
from t5wild.tasks.t5 import sources

TaskRegistry = seqio.TaskRegistry
DEFAULT_OUTPUT_FEATURES = defaults.make_features()

_C4 = 'c4/en:2.2.0'
_SQUAD = 'squad/v1.1:3.0.0'
_SUPER_GLUE_VERSION = '1.0.2'
# The same pieces as the default vocabulary's, with the sentinels in the file.
_VOCABULARY_WITH_SENTINELS = (
    'gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model'
)
_TRANSLATIONS = (
    # Name, source, target, TFDS's data set.
    ('wmt14', 'en', 'de', 'wmt14_translate/de-en:1.0.0'),
    ('wmt14', 'en', 'fr', 'wmt14_translate/fr-en:1.0.0'),
    ('wmt16', 'en', 'ro', 'wmt16_translate/ro-en:1.0.0'),
    ('wmt15', 'en', 'fr', 'wmt15_translate/fr-en:1.0.0'),
    ('wmt19', 'en', 'de', 'wmt19_translate/de-en:1.0.0'),
    ('wmt_t2t', 'en', 'de', 'wmt_t2t_translate/de-en:1.0.0'),
)
# Features that a packing of prefixes makes, beside the targets it is made of.
_PACKED_FOR_DECODERS = (
    'decoder_target_tokens', 'decoder_input_tokens', 'decoder_loss_weights',
    'decoder_causal_attention',
)  # fmt: skip
_PACKED = (
    'encoder_input_tokens', 'decoder_target_tokens', 'decoder_input_tokens',
    'encoder_segment_ids', 'encoder_positions', 'decoder_segment_ids',
    'decoder_positions', 'decoder_loss_weights',
)  # fmt: skip


def _add_text(
    name: str,
    tfds_name: str,
    *token_preprocessors: Callable[..., Any],
    output_features: dict[str, seqio.Feature] | None = None,
) -> None:
  """A task whose examples are made of a text's tokens."""
  rekey = functools.partial(
      pairs.rekey, key_map={'inputs': None, 'targets': 'text'}
  )
  TaskRegistry.add(
      name,
      source=sources.T5Source(tfds_name),
      preprocessors=[
          rekey,
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          *token_preprocessors,
      ],
      output_features=output_features or DEFAULT_OUTPUT_FEATURES,
      metric_fns=[],
  )


def _add(
    name: str,
    tfds_name: str,
    form: Sequence[Callable[..., Any]] | Callable[..., Any],
    *,
    metric_fns: Sequence[Callable[..., Any]],
    postprocess_fn: Callable[..., Any] | None = None,
    splits: Sequence[str] | None = None,
    after_cache: Sequence[Callable[..., Any]] = (),
) -> None:
  """A task of inputs and targets that are texts."""
  TaskRegistry.add(
      name,
      source=sources.T5Source(tfds_name, splits=splits),
      preprocessors=[
          *(form if isinstance(form, list) else [form]),
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          *after_cache,
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features=DEFAULT_OUTPUT_FEATURES,
      metric_fns=list(metric_fns),
      postprocess_fn=postprocess_fn,
  )


def _add_with_sentinel(name: str) -> None:
  seqio.experimental.add_task_with_sentinels(name, num_sentinels=1)


def _add_unsupervised() -> None:
  end = seqio.preprocessors.append_eos_after_trim
  _add_text('c4_v220_span_corruption', _C4, denoising.span_corruption, end)
  _add_text('c4_v220_iid_denoising', _C4, denoising.iid_denoising, end)
  _add_text('c4_v220_prefix_lm', _C4, denoising.prefix_lm, end)
  for variant in ('', '.noclean', '.realnewslike', '.webtextlike'):
    _add_text(
        f'c4{variant.replace(".", "_")}_v020_unsupervised',
        f'c4/en{variant}:2.2.0',
        denoising.unsupervised,
        end,
    )
  _add_text(
      'wikipedia_20190301.en_v003_unsupervised',
      'wikipedia/20190301.en:1.0.0',
      denoising.unsupervised,
      end,
  )


def _add_language_models() -> None:
  vocabulary = seqio.SentencePieceVocabulary(_VOCABULARY_WITH_SENTINELS)
  _add_text(
      'c4_v220_full_lm',
      _C4,
      denoising.full_lm,
      output_features={'targets': seqio.Feature(vocabulary, add_eos=True)},
  )
  for architecture, names, pack in (
      (
          'encoder_decoder', _PACKED,
          prefix_lm_packing.pack_prefix_lm_encoder_decoder,
      ),
      (
          'decoder', _PACKED_FOR_DECODERS,
          prefix_lm_packing.pack_prefix_lm_decoder_only,
      ),
  ):  # fmt: skip
    _add_text(
        f'c4_prefix_lm_objective_{architecture}_architecture',
        _C4,
        prefix_lm_packing.targets_for_prefix_lm_objective,
        pack,
        output_features={
            **{name: seqio.Feature(vocabulary, add_eos=False)
               for name in names},
            'targets': seqio.Feature(vocabulary, required=False),
        },
    )  # fmt: skip


def _add_glue() -> None:
  for benchmark in glue.GLUE:
    _add(
        f'glue_{benchmark.name}_v002',
        f'glue/{benchmark.name}:1.0.0',
        glue.get_glue_text_preprocessor(benchmark),
        metric_fns=glue.get_glue_metric(benchmark.name),
        postprocess_fn=glue.get_glue_postprocess_fn(benchmark),
        splits=['test'] if benchmark.name == 'ax' else None,
    )
  _add(
      'glue_wnli_v002_simple_eval',
      'glue/wnli:1.0.0',
      referents.wnli_simple,
      metric_fns=[metrics.accuracy],
      postprocess_fn=postprocessors.wsc_simple,
      splits=['validation', 'test'],
  )


def _add_super_glue() -> None:
  for benchmark in glue.SUPER_GLUE:
    form = [glue.get_glue_text_preprocessor(benchmark)]
    if benchmark.name == 'axb':
      key_map = {
          'premise': 'sentence1', 'hypothesis': 'sentence2',
          'label': 'label', 'idx': 'idx',
      }  # fmt: skip
      form.insert(0, functools.partial(pairs.rekey, key_map=key_map))
    name = f'super_glue_{benchmark.name}_v102'
    _add(
        name,
        f'super_glue/{benchmark.name}:{_SUPER_GLUE_VERSION}',
        form,
        metric_fns=glue.get_super_glue_metric(benchmark.name),
        postprocess_fn=glue.get_glue_postprocess_fn(benchmark),
        splits=['test'] if benchmark.name in ('axb', 'axg') else None,
    )
    _add_with_sentinel(name)


def _add_pronouns() -> None:
  _add(
      'dpr_v001_simple',
      'definite_pronoun_resolution:1.1.0',
      referents.definite_pronoun_resolution_simple,
      metric_fns=[metrics.accuracy],
  )
  _add_with_sentinel('dpr_v001_simple')
  for part, splits in (('train', ['train']), ('eval', ['validation', 'test'])):
    name = f'super_glue_wsc_v102_simple_{part}'
    is_train = part == 'train'
    _add(
        name,
        f'super_glue/wsc.fixed:{_SUPER_GLUE_VERSION}',
        functools.partial(
            referents.wsc_simple, correct_referent_only=is_train
        ),
        metric_fns=[] if is_train else [metrics.accuracy],
        postprocess_fn=None if is_train else postprocessors.wsc_simple,
        splits=splits,
    )
    _add_with_sentinel(name)


def _add_questions() -> None:
  add = functools.partial(
      _add, postprocess_fn=postprocessors.qa, metric_fns=[metrics.squad]
  )
  add('squad_v010_allanswers', _SQUAD, questions.squad)
  add(
      'squad_v010_context_free',
      _SQUAD,
      functools.partial(questions.squad, include_context=False),
  )
  add('squad_v010', _SQUAD, questions.squad, postprocess_fn=None)
  add(
      'squad_v010_allanswers_span',
      _SQUAD,
      questions.squad_span_space_tokenized,
      postprocess_fn=postprocessors.span_qa,
      metric_fns=[metrics.span_squad],
  )
  _add(
      'trivia_qa_v010',
      'trivia_qa/rc:1.1.0',
      questions.trivia_qa,
      after_cache=[questions.trivia_qa_truncate_inputs],
      metric_fns=[],
  )


def _add_pairs() -> None:
  _add(
      'cnn_dailymail_v002',
      'cnn_dailymail:3.4.0',
      functools.partial(
          pairs.summarize, article_key='article', summary_key='highlights'
      ),
      metric_fns=[metrics.rouge],
  )
  for name, source, target, tfds_name in _TRANSLATIONS:
    _add(
        f'{name}_{source}{target}_v003',
        tfds_name,
        functools.partial(
            pairs.translate, source_language=source, target_language=target
        ),
        metric_fns=[metrics.bleu],
    )


_add_unsupervised()
_add_language_models()
_add_glue()
_add_super_glue()
_add_pronouns()
_add_questions()
_add_pairs()
