# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Caching text, and reading rows of 512/114 from caches: bytes, one core.

The text is the standard library's, its tests included: about 20 MB. Pairs are
made: their lengths are heavy-tailed, and they are never split.
"""

from collections.abc import Callable, Iterator
import dataclasses
import functools
import itertools
import json
import multiprocessing
import os
import pathlib
import statistics
import sysconfig
import tempfile
import time
import types

import numpy as np

from benchmarks import measure
from t5wild.data import cached_datasets
from t5wild.data import cached_reader
from t5wild.data import caching
from t5wild.data import fingerprints
from t5wild.data import ledger
from t5wild.data import objectives
from t5wild.data import record_cache
from t5wild.data import record_format
from t5wild.data import shard_writer
from t5wild.data import vocabularies
from t5wild.tasks import local_text

_LENGTHS = {'inputs': 512, 'targets': 114}
_BATCH_SIZE = 128
_NUM_PAIRS = 40_000
_MILLION = 1_000_000
# UL2's chunks fill one feature of a row and leave the other to chance.
_FILL_GOALS = {
    'text': 0.97, 'text_ul2': None, 'text_causal': 0.97,
    'text_examples': 0.97, 'pairs': 0.93, 'pairs_decoder': 0.93,
}  # fmt: skip
# By its name the reader knows what to make, as of the class on a model.
_ENCODER_DECODER = types.SimpleNamespace(class_name='EncDecFeatureConverter')
_DECODER = types.SimpleNamespace(class_name='DecoderFeatureConverter')


def run(options) -> None:
  """Prints all figures."""
  with tempfile.TemporaryDirectory(dir=options.folder) as folder:
    root = pathlib.Path(folder)
    task = _text_task(small=options.small)
    _caching(task, root, runs=1 if options.small else min(options.runs, 3))
    _reading(root, options)
    _sharing(root, options)
    _resume(root)
    _ledger(root / 'text')
    for millions in (1,) if options.small else (1, 10, 50):
      # A process of its own: what others freed would be used again.
      process = multiprocessing.get_context('spawn').Process(
          target=_memory, args=(root / f'{millions}M', millions)
      )
      process.start()
      process.join()


def _text_task(*, small: bool):
  paths = sysconfig.get_paths()['stdlib'] + ('/json' if small else '')
  return local_text.text_task(
      paths,
      name='stdlib',
      held_out_fraction=0.0,
      on_corrupt='skip',  # tests of encodings are no UTF-8
  )


def _write(task, folder: pathlib.Path, **changes) -> None:
  cache_options = caching.CacheOptions(out=str(folder), **changes)
  for job in caching.plan_jobs(task, cache_options):
    job.start()
    for index in range(job.plan.num_shards):
      job.write_shard(index)
    job.finish()
  caching.write_root(task, cache_options)


def _caching(task, root: pathlib.Path, *, runs: int) -> None:
  """Bytes of text that are tokenized, compressed, hashed and on the disk."""
  numbers = itertools.count()
  _write(task, root / 'text')
  _write(
      task,
      root / 'examples',
      content='examples',
      task_feature_lengths=_LENGTHS,
  )
  manifest = record_cache.read_manifest(root / 'text' / 'stdlib' / 'train')
  megabytes = manifest.num_tokens / 1e6  # a token is a byte
  times = measure.interleave(
      {'cache': lambda: _write(task, root / f'again_{next(numbers)}')},
      runs=runs,
      warmup=0,
  )['cache']
  _emit_rate(
      'data_cache_text', megabytes, times, 'MB per CPU-second', goal=15,
      megabytes=megabytes,
  )  # fmt: skip


def _reading(root: pathlib.Path, options) -> None:
  """Rows per CPU-second, read, corrupted and packed, and how full they are."""
  _write_pairs(root / 'pairs', num_pairs=_NUM_PAIRS // 20 if options.small
               else _NUM_PAIRS)  # fmt: skip
  span = objectives.span_corruption
  readers = {
      'text': _reader(root / 'text', objective=span),
      'text_ul2': _reader(
          root / 'text',
          objective=functools.partial(objectives.ul2, max_tokens_length=512),
      ),
      'text_causal': _reader(
          root / 'text', objective=objectives.causal_lm, converter=_DECODER,
          task_feature_lengths={'targets': 626},
      ),
      'text_examples': _reader(root / 'examples'),
      'pairs': _reader(root / 'pairs'),
      'pairs_decoder': _reader(root / 'pairs', converter=_DECODER),
  }  # fmt: skip
  num_batches = 5 if options.small else 150
  functions: dict[str, Callable[[], object]] = {
      name: functools.partial(_read, reader, num_batches)
      for name, reader in readers.items()
  }
  times = measure.interleave(functions, runs=options.runs)
  for name, reader in readers.items():
    fill = _fill(reader, num_batches)
    goal = _FILL_GOALS[name]
    _emit_rate(
        f'data_read_{name}', num_batches * _BATCH_SIZE, times[name],
        'rows per CPU-second', goal=4000, fill=fill, fill_goal=goal,
        fill_met=None if goal is None else fill >= goal,
    )  # fmt: skip
  ratio = measure.ratio(times['text'].cpu, times['text_examples'].cpu)
  measure.emit(
      'data_fresh_corruption_over_stored_examples', ratio,
      'ratio of CPU-seconds', goal=1.25, met=ratio <= 1.25,
  )  # fmt: skip


def _sharing(root: pathlib.Path, options) -> None:
  """Global rows per CPU-second of one host of many: its rows, all lengths."""
  num_batches = 2 if options.small else 20
  for name, objective in (
      ('text', objectives.span_corruption), ('examples', None), ('pairs', None)
  ):  # fmt: skip
    readers = {
        count: _reader(
            root / name, objective=objective, batch_size=1024, num_hosts=count
        )
        for count in (1, 8, 64)
    }
    times = measure.interleave(
        {
            str(count): functools.partial(_read, reader, num_batches)
            for count, reader in readers.items()
        },
        runs=options.runs,
    )
    for count, reader in readers.items():
      _emit_rate(
          f'data_read_{name}_by_{count}_hosts', num_batches * 1024,
          times[str(count)], 'global rows per CPU-second of a host', goal=4000,
      )  # fmt: skip
      reader.close()


def _ledger(folder: pathlib.Path) -> None:
  """Bytes of a line for each of many steps, far into a run that changed."""
  reader = _reader(folder, objective=objectives.span_corruption)
  state = {
      **reader.state_dict(), 'ended': [[100_000_000, 1000]] * 3, 'row': 1000
  }
  with tempfile.TemporaryDirectory() as run:
    written = ledger.SampleLedger(run, batch_size=_BATCH_SIZE)
    for step in range(10_000_000, 10_001_000):
      written.note(step, {
          **state, 'window': step * 70, 'rows': step * _BATCH_SIZE,
          'batches': step, 'step': step,
      })  # fmt: skip
    size = pathlib.Path(run, ledger.FILE).stat().st_size / 1000
  measure.emit(
      'data_ledger_of_each_step', size, 'bytes', goal=100, met=size < 100
  )


def _reader(
    folder: pathlib.Path,
    *,
    converter=_ENCODER_DECODER,
    num_hosts: int = 1,
    **changes,
) -> cached_reader.CachedReader:
  cfg = cached_datasets.CachedDatasetConfig(**{
      'cache_dir': str(folder),
      'task_feature_lengths': _LENGTHS,
      'batch_size': _BATCH_SIZE,
      **changes,
  })
  return cfg.make_reader(
      data_layout=types.SimpleNamespace(
          batch_size=cfg.batch_size, shard_id=0, num_shards=num_hosts
      ),
      feature_converter_cls=converter,
  )


def _read(reader: cached_reader.CachedReader, num_batches: int) -> None:
  for _ in range(num_batches):
    next(reader)


def _fill(reader: cached_reader.CachedReader, num_batches: int) -> float:
  """Part of the rows that is no padding, of the feature that is fuller."""
  filled = {'encoder_segment_ids': [0.0], 'decoder_segment_ids': [0.0]}
  for _ in range(num_batches):
    batch = next(reader)
    for name in filled.keys() & batch.keys():
      filled[name].append(float((batch[name] > 0).mean()))
  return max(sum(each) / num_batches for each in filled.values())


def _write_pairs(folder: pathlib.Path, *, num_pairs: int) -> None:
  """Lengths of inputs and targets grow together, log-normally."""
  numbers = np.random.default_rng(0)
  common, own = numbers.normal(size=(2, num_pairs))
  inputs = np.clip(np.exp(4.5 + 1.2 * common), 2, 512).astype(int)
  targets = np.clip(np.exp(3 + 1.2 * common + 0.3 * own), 1, 114).astype(int)
  tokens = numbers.integers(3, 259, 1024).astype(np.int32)
  _write_cache(
      folder,
      (
          {'inputs': tokens[:one], 'targets': tokens[:two]}
          for one, two in zip(inputs.tolist(), targets.tolist(), strict=True)
      ),
  )


def _write_cache(
    folder: pathlib.Path,
    examples: Iterator[dict[str, np.ndarray]],
    *,
    copies: int = 1,
) -> None:
  """A cache of examples; `copies` names for its one file."""
  place = record_cache.split_folder(str(folder), task='made', split='train')
  os.makedirs(place)
  schema = record_format.Schema(features=('inputs', 'targets'), dtype='uint16')
  plan = shard_writer.ShardPlan(
      folder=place, num_shards=1, schema=schema, max_record_tokens=None
  )
  shard = plan.write(0, examples)
  shards = [shard]
  for copy in range(1, copies):
    shards.append(dataclasses.replace(shard, name=f'{shard.name}.{copy}'))
    os.symlink(shard.name, os.path.join(place, shards[-1].name))
  vocabulary = fingerprints.describe_vocabulary(
      vocabularies.ByteVocabulary(125)
  )
  feature = {'vocabulary': vocabulary, 'add_eos': True}
  manifest = record_cache.Manifest(
      task='made', split='train', content='examples',
      features={'inputs': feature, 'targets': feature}, schema=schema,
      task_description=['made by the benchmark'], shards=shards, versions={},
  )  # fmt: skip
  shard_writer.write_text(
      os.path.join(place, record_cache.MANIFEST), manifest.to_json()
  )
  shard_writer.write_text(
      str(folder / record_cache.ROOT),
      json.dumps({'name': 'made', 'rates': {'made': 1.0}}),
  )


def _resume(root: pathlib.Path) -> None:
  """From nothing to the batch after step 10,000,000."""
  before = _reader(root / 'text', objective=objectives.span_corruption)
  next(before)
  state = {**before.state_dict(), 'window': 700_000_001, 'row': 5}
  state |= {'batches': 10_000_000, 'rows': 10_000_000 * _BATCH_SIZE}
  start = time.perf_counter()
  reader = _reader(root / 'text', objective=objectives.span_corruption)
  reader.load_state_dict(state)
  next(reader)
  seconds = time.perf_counter() - start
  measure.emit(
      'data_resume_at_step_10_000_000', seconds, 'seconds', goal=2,
      met=seconds < 2,
  )  # fmt: skip
  size = len(json.dumps(state))
  measure.emit('data_state', size, 'bytes', goal=1024, met=size < 1024)


def _memory(folder: pathlib.Path, millions: int) -> None:
  """Memory that opening and reading a cache of short records takes."""
  tokens = np.arange(3, 19, dtype=np.int32)
  example = {'inputs': tokens, 'targets': tokens}
  _write_cache(
      folder, itertools.repeat(example, _MILLION), copies=millions
  )
  before = _resident_bytes()
  reader = _reader(folder)
  _read(reader, 100)
  measure.emit(
      f'data_memory_of_{millions}_million_records',
      (_resident_bytes() - before) / 1e6,
      'MB',
  )
  reader.close()


def _resident_bytes() -> int:
  pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
  return pages * os.sysconf('SC_PAGE_SIZE')


def _emit_rate(
    name: str, amount: float, times: measure.Times, unit: str, *, goal: float,
    **more,
) -> None:  # fmt: skip
  rate = amount / statistics.median(times.cpu)
  measure.emit(
      name, rate, unit, goal=goal, met=rate >= goal,
      lowest=amount / max(times.cpu), highest=amount / min(times.cpu),
      runs=len(times.cpu), **more,
  )  # fmt: skip
