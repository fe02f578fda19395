# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""T5's tasks over words and sentences of plain text."""

import math

import seqio
import tensorflow as tf

_PREFIXES = ('sentence1: ', 'sentence2: ')


def random_split_text(
    dataset,
    text_key='text',
    min_words_per_segment=16,
    max_words_per_segment=512,
    max_words_total=8192,
):
  """Cuts texts into segments of equally many words.

  Args:
    dataset: examples with a text.
    text_key: its field.
    min_words_per_segment: shortest segment.
    max_words_per_segment: longest segment; the length of a text's segments is
      drawn from a log-uniform distribution, the last one may be shorter.
    max_words_total: of a longer text one random piece of so many words is
      taken; None or 0 takes all.

  Returns:
    The segments.
  """

  @seqio.map_over_dataset(num_seeds=2)
  def split(x, seeds):
    words = tf.strings.split(x[text_key])
    if max_words_total:
      words = _random_piece(words, max_words_total, seed=seeds[0])
    draw = tf.random.stateless_uniform(
        [],
        minval=math.log(min_words_per_segment),
        maxval=math.log(max_words_per_segment),
        seed=seeds[1],
    )
    length = tf.cast(tf.exp(draw), tf.int32)
    missing = -tf.size(words) % length
    rows = tf.reshape(tf.pad(words, [[0, missing]]), [-1, length])
    joined = tf.strings.reduce_join(rows, axis=1, separator=' ')
    return {text_key: tf.strings.strip(joined)}  # of the padding's spaces

  return split(dataset).unbatch()


def split_text_to_words(dataset, text_key='text', min_num_words=2):
  """Adds the field 'words', and leaves out texts with too few of them."""

  def with_words(x):
    return {**x, 'words': tf.strings.split(x[text_key])}

  dataset = dataset.map(with_words, tf.data.AUTOTUNE)
  return dataset.filter(lambda x: tf.size(x['words']) >= min_num_words)


def fill_in_the_blank(dataset, text_key='text', label='fill: '):
  """Cuts texts into runs of words; every other run is an X to be filled in.

  Args:
    dataset: examples with a text.
    text_key: its field.
    label: begins the inputs.

  Returns:
    Two examples of each text, the one's targets the other's inputs.
  """

  @seqio.map_over_dataset(num_seeds=3)
  def blank(x, seeds):
    words = x['words']
    is_start = _random_breaks(tf.size(words), seeds)
    side = tf.cumsum(tf.cast(is_start, tf.int32)) % 2
    first, second = (
        _with_blanks(words, side == number, is_start) for number in (0, 1)
    )
    return {
        'inputs': tf.strings.join([label, tf.stack([first, second])]),
        'targets': tf.stack([second, first]),
    }

  return blank(split_text_to_words(dataset, text_key)).unbatch()


def fill_in_the_blank_sized(
    dataset,
    size_bins=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    text_key='text',
    label='fill: ',
):
  """Takes one run of words out, and tells about how many: 'a _4_ b'.

  Args:
    dataset: examples with a text.
    size_bins: numbers to tell; the nearest one is told.
    text_key: field of the text.
    label: begins the inputs.

  Returns:
    The examples; the run is the target.
  """
  bins = sorted(size_bins)

  @seqio.map_over_dataset(num_seeds=2)
  def blank(x, seeds):
    words = x['words']
    count = tf.size(words)
    size = tf.random.stateless_uniform(
        [],
        minval=bins[0],
        maxval=tf.minimum(count, bins[-1]),
        dtype=tf.int32,
        seed=seeds[0],
    )
    told = tf.gather(bins, tf.argmin(tf.abs(tf.constant(bins) - size)))
    start = tf.random.stateless_uniform(
        [],
        minval=0,
        maxval=tf.maximum(0, count - size) + 1,
        dtype=tf.int32,
        seed=seeds[1],
    )
    before, run, after = (
        tf.strings.reduce_join(part, separator=' ')
        for part in (
            words[:start], words[start : start + size], words[start + size :]
        )
    )
    gap = tf.strings.join(['_', tf.as_string(told), '_'])
    inputs = tf.strings.strip(tf.strings.join([before, gap, after], ' '))
    return {
        'inputs': tf.strings.strip(tf.strings.join([label, inputs])),
        'targets': tf.strings.strip(run),
    }

  dataset = split_text_to_words(dataset, text_key)
  return blank(dataset.filter(lambda x: tf.size(x['words']) >= bins[0]))


def neighboring_pairs(dataset, text_key='text', reuse_sentences=True):
  """Makes 'first' and 'second' of sentences that follow each other in a line.

  Args:
    dataset: examples with a text.
    text_key: its field.
    reuse_sentences: whether a sentence is in the pairs before and after it.

  Returns:
    The pairs without empty sentences.
  """
  # A sign that no text has: what Unicode keeps for itself.
  end = '\ufdd0'

  def lines_of(x):
    return tf.strings.strip(tf.strings.split(x[text_key], sep='\n'))

  def pairs_of(line):
    marked = tf.strings.regex_replace(line, r'((?:\.|\!|\?)+)', rf'\1{end}')
    sentences = tf.strings.strip(tf.strings.split(marked, sep=end))
    if reuse_sentences:
      return {'first': sentences[:-1], 'second': sentences[1:]}
    return {'first': sentences[:-1:2], 'second': sentences[1::2]}

  def is_whole(x):
    return (tf.strings.length(x['first']) > 0) & (
        tf.strings.length(x['second']) > 0
    )

  lines = dataset.map(lines_of, tf.data.AUTOTUNE).unbatch()
  lines = lines.filter(lambda line: tf.strings.length(line) > 0)
  return lines.map(pairs_of, tf.data.AUTOTUNE).unbatch().filter(is_whole)


def next_sentence_prediction(
    dataset,
    text_key='text',
    reuse_sentences=True,
    label_sentences=False,
    p_neighbors=0.5,
    label='nsp: ',
    buffer_size=50000,
):
  """Asks whether two sentences follow each other: 'next' or 'not_next'.

  Args:
    dataset: examples with a text.
    text_key: its field.
    reuse_sentences: see `neighboring_pairs`.
    label_sentences: whether 'sentence1:' and 'sentence2:' are written.
    p_neighbors: probability of 'next'.
    label: begins the inputs.
    buffer_size: pairs among which others are found.

  Returns:
    The examples; each two pairs stay as they are or swap their second halves.
  """
  prefixes = _PREFIXES if label_sentences else ('', '')

  @seqio.map_over_dataset(num_seeds=1)
  def ask(x, seed):
    is_next = tf.random.stateless_uniform([], seed=seed) < p_neighbors
    seconds = tf.where(is_next, x['second'], tf.reverse(x['second'], [0]))
    inputs = tf.strings.join(
        [label, prefixes[0], x['first'], ' ', prefixes[1], seconds]
    )
    answer = tf.where(is_next, 'next', 'not_next')
    return {'inputs': tf.strings.strip(inputs), 'targets': tf.fill([2], answer)}

  pairs = neighboring_pairs(dataset, text_key, reuse_sentences)
  pairs = pairs.shuffle(buffer_size).batch(2, drop_remainder=True)
  return ask(pairs).unbatch()


def _random_piece(
    words: tf.Tensor, length: int, *, seed: tf.Tensor
) -> tf.Tensor:
  """One of the pieces of `length` words that a text divides into."""
  count = tf.maximum(1, (tf.size(words) - 1) // length + 1)
  number = tf.random.stateless_uniform(
      [], seed=seed, minval=0, maxval=count, dtype=tf.int32
  )
  return words[length * number : length * (number + 1)]


def _random_breaks(count: tf.Tensor, seeds: tf.Tensor) -> tf.Tensor:
  """Whether a run begins at each word; at the first, and at one more."""
  # Log-uniform from 1/(words + 2) to 1/2: coarse cuts and fine ones.
  draw = tf.random.stateless_uniform(
      [],
      minval=-tf.math.log(tf.cast(count, tf.float32) + 2.0),
      maxval=-tf.math.log(2.0),
      seed=seeds[0],
  )
  breaks = tf.random.stateless_uniform([count - 1], seed=seeds[1]) < tf.exp(
      draw
  )
  one = tf.random.stateless_uniform(
      [], minval=0, maxval=count - 1, dtype=tf.int32, seed=seeds[2]
  )
  breaks = tf.where(
      tf.reduce_any(breaks), breaks, tf.range(count - 1) == one
  )
  return tf.concat([[True], breaks], 0)


def _with_blanks(
    words: tf.Tensor, is_kept: tf.Tensor, is_start: tf.Tensor
) -> tf.Tensor:
  """The text with an X for each run of words that is not kept."""
  gaps = tf.where(is_start, ' X', '')
  parts = tf.where(is_kept, tf.strings.join([' ', words]), gaps)
  return tf.strings.substr(tf.strings.reduce_join(parts), 1, tf.int32.max)
