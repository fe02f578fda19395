# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's forms of examples that are two texts: translations, summaries, lines."""

from collections.abc import Sequence
import re

from absl import logging
import seqio
import tensorflow as tf

from t5wild.tasks.t5 import gin_names
from t5wild.tasks.t5 import languages
from t5wild.tasks.t5 import text_forms

_MODULE = 't5.data.preprocessors'
# First and last character of scripts that put no spaces between words.
NON_SPACED_LANGUAGE_RANGES = (
    '\u1000-\u104f',  # Burmese
    '\u4e00-\u9fff',  # unified ideographs of Chinese, Japanese and Korean
    '\u3400-\u4dbf',  # extension A of them
    '\uf900-\ufaff',  # their compatibility forms
    '\u2e80-\u2eff',  # their radicals
    '\u31c0-\u31ef',  # their strokes
    '\u3000-\u303f',  # their punctuation
    '\u3040-\u309f',  # Hiragana
    '\u30a0-\u30ff',  # Katakana
    '\ua980-\ua9df',  # Javanese
    '\u1780-\u17ff',  # Khmer
    '\u19e0-\u19ff',  # Khmer symbols
    '\u0e80-\u0eff',  # Lao
    '\u1980-\u19df',  # New Tai Lue
    '\u1a20-\u1aaf',  # Tai Tham
    '\u0e00-\u0e7f',  # Thai
    '\u0f00-\u0fff',  # Tibetan
)
_FIELD_NUMBER = re.compile(r'\{(\d+)\}')

rekey = seqio.preprocessors.rekey
tokenize = seqio.preprocessors.tokenize


@seqio.map_over_dataset
def translate(x, source_language, target_language):
  """Asks for a translation: 'translate German to English: Das ist gut.'.

  Args:
    x: an example with a text under each language's code.
    source_language: code of the text that is given.
    target_language: code of the text that is wanted.

  Returns:
    The example's inputs and targets.
  """
  for code in (source_language, target_language):
    if len(code) > 2:
      logging.warning('The language %s is named as %s is.', code, code[:2])
  source, target = map(
      languages.english_name, (source_language, target_language)
  )
  task = f'translate {source} to {target}: '
  return {
      'inputs': tf.strings.join([task, x[source_language]]),
      'targets': x[target_language],
  }


def multi_translate(dataset, source_language, target_language):
  """As `translate`, of examples with lists of languages and translations.

  Examples that lack one of the two languages are left out.
  """

  def has_both(x):
    given = x['translations']['language']
    return tf.reduce_any(given == source_language) & tf.reduce_any(
        given == target_language
    )

  def pick(x):
    given = x['translations']['language']
    return {
        code: x['translations']['translation'][
            tf.squeeze(tf.where(given == code))
        ]
        for code in (source_language, target_language)
    }

  dataset = dataset.filter(has_both).map(pick, tf.data.AUTOTUNE)
  return translate(dataset, source_language, target_language)


@seqio.map_over_dataset
def summarize(x, article_key, summary_key):
  """Asks for a summary: 'summarize: ' and the article."""
  return {
      'inputs': tf.strings.join(['summarize:', x[article_key]], separator=' '),
      'targets': x[summary_key],
  }


@seqio.map_over_dataset
def pad_nonspaced_languages(x, text_key='text'):
  """Puts each character of a script without spaces between spaces."""
  characters = ''.join(NON_SPACED_LANGUAGE_RANGES)
  spaced = tf.strings.regex_replace(
      x[text_key], f'([{characters}])', r' \1 '
  )
  return {**x, text_key: text_forms.with_single_spaces(spaced)}


@seqio.map_over_dataset
def lm(x):
  """Nothing is given, the text is the target."""
  return {'inputs': '', 'targets': x['text']}


@gin_names.configurable(_MODULE)
def filter_by_string_length(
    dataset,
    feature_key='targets',
    min_length=1,
    max_length=1000000,
    **unused_kwargs,
):
  """Keeps examples whose text has so many bytes, the limits included."""
  del unused_kwargs

  def is_kept(x):
    length = tf.strings.length(x[feature_key])
    return (length >= min_length) & (length <= max_length)

  return dataset.filter(is_kept)


@seqio.map_over_dataset
def parse_tsv(line, field_names=None, field_delim='\t', field_columns=None):
  """Makes examples of a table's lines, a field of each column.

  Args:
    line: the line's text.
    field_names: names of the fields; None is 'inputs' and 'targets'.
    field_delim: what stands between columns.
    field_columns: which column each field is; None is the first ones.

  Returns:
    Name to text.
  """
  names = field_names or ['inputs', 'targets']
  values = tf.io.decode_csv(
      line,
      record_defaults=[''] * len(names),
      field_delim=field_delim,
      use_quote_delim=False,
      select_cols=field_columns or list(range(len(names))),
  )
  return dict(zip(names, values, strict=True))


@seqio.map_over_dataset
def preprocess_tsv(
    line,
    field_delim='\t',
    num_fields=2,
    inputs_format='{0}',
    targets_format='{1}',
    field_names=None,
    use_quote_delim=False,
):
  """Makes inputs and targets of a table's lines by two formats.

  Args:
    line: the line's text.
    field_delim: what stands between columns.
    num_fields: number of columns, where they have no names.
    inputs_format: such as 'numerator: {2} denominator: {1}'.
    targets_format: the same for the targets.
    field_names: names of the columns, by which formats then go.
    use_quote_delim: whether double quotes enclose a column.

  Returns:
    The example's inputs and targets.
  """
  names = field_names or [str(i) for i in range(num_fields)]
  values = tf.io.decode_csv(
      line,
      record_defaults=[''] * len(names),
      field_delim=field_delim,
      use_quote_delim=use_quote_delim,
  )
  columns = dict(zip(names, values, strict=True))
  return {
      'inputs': _filled(inputs_format, columns, named=bool(field_names)),
      'targets': _filled(targets_format, columns, named=bool(field_names)),
  }


def _filled(form: str, columns: dict[str, tf.Tensor], *, named: bool):
  """The format with the columns in it; other braces are text."""
  if named:
    pattern = re.compile(r'\{(' + '|'.join(map(re.escape, columns)) + r')\}')
  else:
    pattern = _FIELD_NUMBER
  # A pattern with one group splits into text, name, text, name, text.
  parts: Sequence[str] = pattern.split(form)
  return tf.strings.join([
      columns[str(int(part)) if not named else part] if i % 2 else part
      for i, part in enumerate(parts)
  ])
