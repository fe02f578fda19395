# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks by the names that T5X's recipes for GPUs use, in T5's formats.

`the_pile_span_corruption` reads the TFDS data set `ThePile`, which has to be
prepared in --tfds_data_dir; `glue_*_v2` read GLUE 2.0.0.
"""

import functools

import seqio

from t5wild.tasks.t5 import denoising
from t5wild.tasks.t5 import glue
from t5wild.tasks.t5 import pairs
from t5wild.tasks.t5 import sources

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
      source=sources.T5Source('ThePile:1.0.0'),
      preprocessors=[
          functools.partial(
              pairs.rekey, key_map={'inputs': None, 'targets': 'text'}
          ),
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          denoising.span_corruption,
          seqio.preprocessors.append_eos_after_trim,
      ],
      output_features=_features(),
      metric_fns=[],
  )


def _register_glue(benchmark: glue.Benchmark) -> None:
  seqio.TaskRegistry.add(
      f'glue_{benchmark.name}_v2',
      source=sources.T5Source(
          f'glue/{benchmark.name}:2.0.0',
          splits=['test'] if benchmark.name == 'ax' else None,
      ),
      preprocessors=[
          glue.get_glue_text_preprocessor(benchmark),
          seqio.preprocessors.tokenize,
          seqio.CacheDatasetPlaceholder(),
          seqio.preprocessors.append_eos_after_trim,
      ],
      metric_fns=glue.get_glue_metric(benchmark.name),
      output_features=_features(),
      postprocess_fn=glue.get_glue_postprocess_fn(benchmark),
  )


_register_pile()
for _benchmark in glue.GLUE:
  _register_glue(_benchmark)
