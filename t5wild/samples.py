# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild samples`: which examples a step was trained on, and when a text was.

  t5wild samples --run=MODEL_DIR --step=1234 --text
  t5wild samples --run=MODEL_DIR --find='def main('
  t5wild samples --run=MODEL_DIR --document=TASK:SHARD:DOCUMENT

Of runs that read their data from a cache; --gin.CACHE_DIR=DIR says where it
lies now, if it was moved or its path was seen from another folder.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import sys
import types
from typing import Any

from etils import epath
import jax
import numpy as np

from t5wild import command_line
from t5wild import exit_codes
from t5wild import gin_utils
from t5wild import run_config
from t5wild import run_dir
from t5wild.data import cached_datasets
from t5wild.data import cached_reader
from t5wild.data import exclusions
from t5wild.data import ledger
from t5wild.data import model_rows
from t5wild.data import record_search
from t5wild.data import sample_steps
from t5wild.data import token_texts
from t5wild.models import seqio_class
from t5wild.vitals import records as records_lib


def main(argv: Sequence[str] | None = None) -> int:
  """Prints what is asked for; `argv` without the program's name."""
  given = list(sys.argv[1:] if argv is None else argv)
  arguments = _parser().parse_args(gin_utils.rewrite_gin_args(given))
  # The accelerators of this machine may be in use, and none is needed.
  jax.config.update('jax_platforms', 'cpu')
  try:
    _check_arguments(arguments)
    run = RunSamples.open(arguments.run, gin_bindings=arguments.gin_bindings)
    if arguments.step is not None:
      lines = run.lines_of_step(arguments.step, with_text=arguments.text)
    elif arguments.find is not None:
      lines = run.lines_of_text(arguments.find, most=arguments.most)
    else:
      lines = run.lines_of_document(arguments.document, most=arguments.most)
    for line in lines:
      print(line)  # noqa: T201 -- the product
  except (ValueError, LookupError, OSError, TypeError) as error:
    sys.stderr.write(f'{command_line.complaint(error)}\n')
    return exit_codes.BAD_CONFIG.code
  return exit_codes.DONE.code


def _check_arguments(arguments: argparse.Namespace) -> None:
  given = {
      name: getattr(arguments, name) for name in ('step', 'find', 'document')
  }
  if sum(value is not None for value in given.values()) != 1:
    raise ValueError(
        ', '.join(f'--{name} is {value!r}' for name, value in given.items())
        + ': expected one of them. Give a step, a text to look for, or the '
        'name of a document.'
    )
  if arguments.find == '':
    raise ValueError(
        "--find is '': expected some text. "
        'Give what to look for.'
    )


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild samples',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('--run', required=True, metavar='MODEL_DIR')
  add('--gin_bindings', action='append', default=[], help=argparse.SUPPRESS)
  add('--step', type=int, help='print the examples of its batch')
  add('--text', action='store_true', help='decoded, as the model saw them')
  add('--find', metavar='TEXT',
      help='say which steps saw a text')
  add('--document', metavar='TASK:SHARD:DOCUMENT',
      help='say which steps saw a document')
  add('--most', type=int, default=20,
      help='with --find and --document: hits to tell of')
  return parser


class RunSamples:
  """The data of a run, read again."""

  def __init__(
      self,
      cfg: cached_datasets.CachedDatasetConfig,
      anchors: Sequence[ledger.Anchor],
      *,
      feature_converter_cls: Any,
      last_step: int | None = None,
  ):
    """Opens the caches.

    Args:
      cfg: of the run's training data.
      anchors: its ledger.
      feature_converter_cls: of its model.
      last_step: that was trained; None: not known.
    """
    self._last_step = last_step
    self._cfg = cfg
    self._anchors = anchors
    self._converter = feature_converter_cls
    self._caches = cfg.open_caches()
    self._exclusions = cfg.open_exclusions()

  @classmethod
  def open(
      cls, model_dir: str, *, gin_bindings: Sequence[str] = ()
  ) -> 'RunSamples':
    """Reads the configuration and the ledger of a run.

    Args:
      model_dir: of the run.
      gin_bindings: over its configuration.

    Raises:
      ValueError: it is no run, or did not read its data from a cache.
    """
    anchors = ledger.read_anchors(model_dir)
    config = run_config.RunConfig.read(
        run_config.find_config(model_dir), gin_bindings=gin_bindings
    )
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
        last_step=max(anchors[-1].step, _last_recorded_step(model_dir)),
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
      ValueError: the data have changed since, or it was not trained yet.
    """
    if self._last_step is not None and step > self._last_step:
      raise ValueError(
          f'step {step} was not trained: expected 1 to {self._last_step}, the '
          'last step on record. Choose one of these.'
      )
    # The newest line knows every change that has begun, and refuses others.
    self._reader_at(self._anchors[-1]).close()
    anchor = ledger.anchor_before(self._anchors, step=step)
    reader = self._reader_at(anchor)
    reader.skip(batches=step - 1 - anchor.step)
    rows, left_out = reader.records(), reader.left_out()
    tokens = reader.examples() if with_text else []
    for row, examples in enumerate(rows):
      for place, records in enumerate(examples):
        for record in records.tolist():
          yield f'row {row}: {self._name(record)}'
        if with_text:
          yield from self._texts(tokens[row][place])
    for record in left_out.tolist():
      yield f'left out: {self._name(record)}'
    reader.close()

  def _name(self, record: Sequence[int]) -> str:
    source, epoch, number = record
    cache = self._caches[source]
    shards, places = cache.locate(np.array([number]))
    read = cache.read(np.array([number]))
    length = sum(int(rows.lengths[0]) for rows in read.features.values())
    shard = cache.shard_numbers[int(shards[0])]
    document = exclusions.Document(
        task=cache.manifest.task, shard=shard, number=int(read.documents[0])
    )
    step = self._exclusions.of(document)
    return (
        f'{cache.manifest.task}, epoch {epoch}, shard {shard}, record '
        f'{int(places[0])}, document {document}, piece '
        f'{int(read.pieces[0])}, {length} tokens'
        + ('' if step is None else f', excluded from step {step} on')
    )

  def _texts(self, example: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Both sides of an example, also where the model reads them as one."""
    for feature, tokens in example.items():
      vocabulary = record_search.vocabulary_of(self._caches[0], feature)
      parts = token_texts.parts_of(tokens.tolist(), vocabulary)
      yield f'  {feature}: {"".join(text for _, text in parts)!r}'

  def lines_of_text(self, text: str, *, most: int) -> Iterator[str]:
    """Yields a line for each time that the part with a text was read."""
    found = [
        (source, place)
        for source, cache in enumerate(self._caches)
        for place in record_search.with_text(cache, text)
    ]
    records = {(source, place.number) for source, place in found}
    yield f'{len(records)} records have {text!r}'
    yield from self._lines_of(
        [
            sample_steps.Wanted(
                source=source,
                number=place.number,
                part=(place.start, place.stop),
            )
            for source, place in found
            if self._is_read(source, place)
        ],
        most=most,
    )

  def _is_read(self, source: int, place: record_search.Place) -> bool:
    """Whether the model gets what stands there: lengths cut examples off."""
    if self._caches[source].manifest.content == 'tokens':
      return True  # their objective says what becomes of them
    layout = self._layout()
    return (
        place.feature in layout.features
        and place.start < layout.lengths[place.feature]
    )

  def _layout(self) -> model_rows.Layout:
    return model_rows.find_layout(
        self._converter,
        lengths=self._cfg.task_feature_lengths,
        pack=self._cfg.pack,
    )

  def lines_of_document(self, name: str, *, most: int) -> Iterator[str]:
    """Yields a line for each time that a record of a document was read.

    Raises:
      ValueError: for a name of no document of the caches.
    """
    tasks = [cache.manifest.task for cache in self._caches]
    document = exclusions.find_document(name, caches=self._caches)
    source = tasks.index(document.task)
    numbers = record_search.of_document(self._caches[source], document)
    yield f'{document} has {len(numbers)} records'
    yield from self._lines_of(
        [
            sample_steps.Wanted(source=source, number=number)
            for number in numbers
        ],
        most=most,
    )

  def _lines_of(
      self, wanted: Sequence[sample_steps.Wanted], *, most: int
  ) -> Iterator[str]:
    reader = self._reader_at(self._anchors[-1])
    steps = sample_steps.SampleSteps(
        self._anchors,
        reader.phases,
        num_records=[len(cache) for cache in self._caches],
    )
    count = 0
    for count, found in enumerate(steps.find(wanted), start=1):
      if count > most:
        yield 'and more: raise --most'
        break
      name = self._name(found.origin)
      for word, numbers in (
          ('steps', found.steps), ('left out of steps', found.steps_without)
      ):
        if numbers:
          yield f'{word} {", ".join(map(str, numbers))}: {name}'
    if not count:
      yield f'no step up to {self._anchors[-1].step} had any of it'
    reader.close()


def _last_recorded_step(model_dir: str) -> int:
  """The last step that a run recorded; it may be ahead of its ledger."""
  path = epath.Path(run_dir.RunDir(model_dir).metrics_jsonl)
  lines = path.read_text().splitlines() if path.exists() else []
  found = filter(None, map(records_lib.from_line, lines))
  return max((record.step for record in found), default=0)


if __name__ == '__main__':
  sys.exit(main())
