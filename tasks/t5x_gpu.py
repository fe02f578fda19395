# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks by the names that T5X's recipes for GPUs use, in T5's formats.

`the_pile_span_corruption` reads the TFDS data set `ThePile`, which has to be
prepared in --tfds_data_dir; `glue_*_v2` read GLUE 2.0.0. Both are made of parts
of the `t5` package.
"""

import functools

import seqio

try:
  from t5.data import glue_utils
  from t5.data import preprocessors
except ImportError as error:
  raise ImportError(
      f'these tasks are made of parts of the t5 package, which is missing '
      f'({error}). Expected it to be installed: pip install t5'
  ) from error
import tensorflow_datasets as tfds

_VOCABULARY = 'gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model'


def _features() -> dict[str, seqio.Feature]:
  vocabulary = seqio.SentencePieceVocabulary(_VOCABULARY)
  return {
      'inputs': seqio.Feature(vocabulary, add_eos=True, required=False),
      'targets': seqio.Feature(vocabulary, add_eos=True),
  }


def _register_pile() -> None:
  seqio.TaskRegistry.add(
      'the_pile_span_corruption',
      source=seqio.TfdsDataSource(tfds_name='ThePile:1.0.0'),
      preprocessors=[
          functools.partial(
              preprocessors.rekey, key_map={'inputs': None, 'targets': 'text'}
          ),
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          preprocessors.span_corruption,
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features=_features(),
      metric_fns=[],
  )


def _register_glue(config: tfds.core.BuilderConfig) -> None:
  seqio.TaskRegistry.add(
      f'glue_{config.name}_v2',
      source=seqio.TfdsDataSource(
          tfds_name=f'glue/{config.name}:2.0.0',
          splits=['test'] if config.name == 'ax' else None,
      ),
      preprocessors=[
          glue_utils.get_glue_text_preprocessor(config),
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          seqio.preprocessors.append_eos_after_trim,
      ],
      metric_fns=glue_utils.get_glue_metric(config.name),
      output_features=_features(),
      postprocess_fn=glue_utils.get_glue_postprocess_fn(config),
  )


_register_pile()
for _config in tfds.text.glue.Glue.builder_configs.values():
  _register_glue(_config)
