# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild samples`: which examples a step was trained on, and when a text was.

  t5wild samples --run=MODEL_DIR --step=1234 --text
  t5wild samples --run=MODEL_DIR --find='def main('

Of runs that read their data from a cache.
"""

import argparse
from collections.abc import Iterator, Sequence
import sys
import types
from typing import Any

import jax
import numpy as np

from t5wild import command_line
from t5wild import exit_codes
from t5wild import run_config
from t5wild.data import cached_datasets
from t5wild.data import cached_reader
from t5wild.data import fingerprints
from t5wild.data import ledger
from t5wild.data import record_cache
from t5wild.data import vocabularies
from t5wild.models import seqio_class

_AT_ONCE = 4096  # records


def main(argv: Sequence[str] | None = None) -> int:
  """Prints what is asked for; `argv` without the program's name."""
  arguments = _parser().parse_args(argv)
  # The accelerators of this machine may be in use, and none is needed.
  jax.config.update('jax_platforms', 'cpu')
  try:
    if (arguments.step is None) == (arguments.find is None):
      raise ValueError(
          f'--step is {arguments.step} and --find {arguments.find!r}: expected '
          'one of them. Give a step, or a text to look for.'
      )
    run = RunSamples.open(arguments.run)
    lines = (
        run.lines_of_step(arguments.step, with_text=arguments.text)
        if arguments.find is None
        else run.lines_of_text(arguments.find, most=arguments.most)
    )
    for line in lines:
      print(line)  # noqa: T201 -- the product
  except (ValueError, LookupError, OSError, TypeError) as error:
    sys.stderr.write(f'{command_line.complaint(error)}\n')
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild samples',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('--run', required=True, metavar='MODEL_DIR')
  add('--step', type=int, help='print the examples of its batch')
  add('--text', action='store_true', help='decoded, as the model saw them')
  add('--find', metavar='TEXT',
      help='say which steps saw a text')
  add('--most', type=int, default=20, help='with --find: hits to tell of')
  return parser


class RunSamples:
  """The data of a run, read again."""

  def __init__(
      self,
      cfg: cached_datasets.CachedDatasetConfig,
      anchors: Sequence[ledger.Anchor],
      *,
      feature_converter_cls: Any,
  ):
    """Opens the caches.

    Args:
      cfg: of the run's training data.
      anchors: its ledger.
      feature_converter_cls: of its model.
    """
    self._cfg = cfg
    self._anchors = anchors
    self._converter = feature_converter_cls
    self._caches = cfg.open_caches()

  @classmethod
  def open(cls, model_dir: str) -> 'RunSamples':
    """Reads the configuration and the ledger of a run.

    Raises:
      ValueError: it is no run, or did not read its data from a cache.
    """
    anchors = ledger.read_anchors(model_dir)
    config = run_config.RunConfig.read(run_config.find_config(model_dir))
    cfg = config.need('train_dataset_cfg')
    if not isinstance(cfg, cached_datasets.CachedDatasetConfig):
      raise ValueError(
          f'the training data of {model_dir} are a {type(cfg).__name__}: '
          'expected a CachedDatasetConfig, whose order can be told. Train from '
          'a cache (t5wild cache).'
      )
    return cls(
        cfg,
        anchors,
        feature_converter_cls=seqio_class.converter_class_of(
            config.need('model')
        ),
    )

  def _reader_at(self, anchor: ledger.Anchor) -> cached_reader.CachedReader:
    reader = self._cfg.make_reader(
        data_layout=types.SimpleNamespace(
            batch_size=anchor.batch_size, shard_id=0, num_shards=1
        ),
        feature_converter_cls=self._converter,
    )
    reader.load_state_dict(anchor.state)
    return reader

  def lines_of_step(self, step: int, *, with_text: bool) -> Iterator[str]:
    """Yields a line for each example of the batch of a step.

    Raises:
      ledger.NoLedgerError: the ledger does not reach it.
      ValueError: the data have changed since.
    """
    anchor = ledger.anchor_before(self._anchors, step=step)
    reader = self._reader_at(anchor)
    reader.skip(batches=step - 1 - anchor.step)
    origins = reader.origins()
    batch = next(reader)
    for row, records in enumerate(origins):
      for place, record in enumerate(records.tolist()):
        yield f'row {row}: {self._name(record)}'
        if with_text:
          yield from self._texts(batch, row=row, segment=place + 1)
    reader.close()

  def _name(self, record: Sequence[int]) -> str:
    source, epoch, number = record
    cache = self._caches[source]
    shards, places = cache.locate(np.array([number]))
    read = cache.read(np.array([number]))
    length = sum(int(rows.lengths[0]) for rows in read.features.values())
    return (
        f'{cache.manifest.task}, epoch {epoch}, shard {int(shards[0])}, record '
        f'{int(places[0])}, document {int(read.documents[0])}, piece '
        f'{int(read.pieces[0])}, {length} tokens'
    )

  def _texts(self, batch: Any, *, row: int, segment: int) -> Iterator[str]:
    for side, name in (
        ('encoder', 'encoder_input_tokens'),
        ('decoder', 'decoder_target_tokens'),
    ):
      if name not in batch:
        continue
      tokens = batch[name][row]
      segments = batch.get(f'{side}_segment_ids')
      if segments is not None:
        tokens = tokens[segments[row] == segment]
      feature = 'inputs' if side == 'encoder' else 'targets'
      text = vocabularies.decode_with_sentinels(
          tokens[tokens > 0].tolist(),
          vocabulary=_vocabulary(self._caches[0], feature),
      )
      yield f'  {feature}: {text!r}'

  def lines_of_text(self, text: str, *, most: int) -> Iterator[str]:
    """Yields a line for each time that a record with a text was read."""
    wanted = {
        (source, number)
        for source, cache in enumerate(self._caches)
        for number in _records_with(cache, text)
    }
    yield f'{len(wanted)} records have {text!r}'
    hits = self._hits(wanted) if wanted else iter(())
    for count, (record, steps) in enumerate(hits):
      if count == most:
        yield 'and more: raise --most'
        return
      yield f'steps {steps}: {self._name(record)}'

  def _hits(
      self, wanted: set[tuple[int, int]]
  ) -> Iterator[tuple[tuple[int, int, int], str]]:
    """Yields (source, epoch, record) and the steps in which it was seen."""
    last = self._anchors[-1]
    windows = self._reader_at(last).windows
    for number in range(last.state['window'] + 1):
      found = [
          (source, epoch, record)
          for records in windows.records(number)
          for source, epoch, record in records[:, :3].tolist()
          if (source, record) in wanted
      ]
      if found:
        yield from self._steps_of(windows, number, found)

  def _steps_of(self, windows, number, found):
    made = windows.make(number)
    bounds = made.rows.row_starts
    for record in found:
      examples = np.flatnonzero((made.origins == record).all(axis=1))
      rows = np.searchsorted(bounds, examples, side='right') - 1
      steps = sorted({self._step_of(windows, number, row) for row in rows})
      seen = [step for step in steps if step <= self._anchors[-1].step]
      if seen:
        yield record, ', '.join(map(str, seen))

  def _step_of(self, windows, number: int, row: int) -> int:
    """The step that trained on a row of a window."""
    place = (number, int(row))
    anchor = [
        each
        for each in self._anchors
        if (each.state['window'], each.state['row']) <= place
    ][-1]
    rows = row - anchor.state['row']
    for before in range(anchor.state['window'], number):
      rows += windows.make(before).rows.num_rows
    return anchor.step + 1 + int(rows) // anchor.batch_size


def _vocabulary(
    cache: record_cache.RecordCache, feature: str
) -> fingerprints.StoredVocabulary:
  found = cache.manifest.features
  return fingerprints.StoredVocabulary(
      found.get(feature, found['targets'])['vocabulary']
  )


def _records_with(
    cache: record_cache.RecordCache, text: str
) -> Iterator[int]:
  """Numbers of the records whose decoded tokens have a text in them."""
  for start in range(0, len(cache), _AT_ONCE):
    numbers = np.arange(start, min(start + _AT_ONCE, len(cache)))
    for name, rows in cache.read(numbers).features.items():
      decode = _vocabulary(cache, name).decode
      yield from (
          number
          for number, tokens in zip(
              numbers.tolist(), rows.split(), strict=True
          )
          if text in decode(tokens.tolist())
      )


if __name__ == '__main__':
  sys.exit(main())
