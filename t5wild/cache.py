# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""`t5wild cache`: a task or mixture as files that a run reads without it.

  t5wild cache --task=my_task --module=my_project.tasks --out=CACHE
  t5wild cache --gin_file=recipes/quickstart.gin --out=CACHE
  t5wild cache --verify=CACHE

DIR may be s3://... or gs://... too. Stopped and started again, it goes on after
the last whole shard. A run reads the cache with --gin_file=data/cached.gin
--gin.CACHE_DIR=CACHE after its recipe.
"""

import argparse
import ast
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import importlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import gin
import jax

from t5wild import command_line
from t5wild import exit_codes
from t5wild import gin_utils
from t5wild import run_config
from t5wild.data import beam_shards
from t5wild.data import cache_roots
from t5wild.data import caching
from t5wild.data import datasets
from t5wild.data import fingerprints
from t5wild.data import places
from t5wild.data import providers
from t5wild.data import record_cache
from t5wild.data import shard_writer
from t5wild.data import split_jobs
from t5wild.inferring import output_lock

_POLL_SECONDS = 0.1
_PARENT_POLL_SECONDS = 0.5


def main(argv: Sequence[str] | None = None) -> int:
  """Writes or verifies a cache as the command line says.

  Args:
    argv: Arguments without the program's name, None for the process's own.

  Returns:
    One of `exit_codes`: bad_config where task, options or a cache are of no
    use, disk_full where the cache cannot be written.
  """
  given = list(sys.argv[1:] if argv is None else argv)
  arguments = _parser().parse_args(gin_utils.rewrite_gin_args(given))
  # The accelerators of this machine may be in use, and none is needed.
  jax.config.update('jax_platforms', 'cpu')
  try:
    if arguments.verify is not None:
      return _verify(arguments.verify)
    return _write(arguments, given=given)
  except shard_writer.NotSentError as error:
    _say(str(error), stream=sys.stderr)
    return exit_codes.BAD_CONFIG.code
  except shard_writer.NotWrittenError as error:
    _say(str(error), stream=sys.stderr)
    return exit_codes.DISK_FULL.code
  except (
      ValueError, LookupError, OSError, TypeError, beam_shards.NoBeamError
  ) as error:  # fmt: skip
    _say(command_line.complaint(error), stream=sys.stderr)
    return exit_codes.BAD_CONFIG.code
  except beam_shards.PipelineError as error:
    _say(str(error), stream=sys.stderr)
    return exit_codes.FAILED.code


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      prog='t5wild cache',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('--task', help='name of a registered seqio task or mixture')
  add('--module', help='module to import first, which registers it')
  add('--gin_file', action='append', default=[],
      help='a recipe, whose training task is cached; --gin.NAME=value too')
  add('--gin_bindings', action='append', default=[], help=argparse.SUPPRESS)
  add('--gin_search_paths', action='append', default=[])
  add('--out', metavar='DIR',
      help='folder of the cache, here or on s3:// or gs://')
  add('--verify', metavar='DIR', help='read a whole cache, and compare')
  add('--content', choices=caching.CONTENTS, default='auto',
      help='tokens, for an objective at read time; or whole examples')
  add('--splits', help='such as train,validation; all by default')
  add('--task_feature_lengths', type=ast.literal_eval,
      help='for examples that are cut by them, as in gin')
  add('--num_shards', type=int, help='files of each split')
  add('--max_record_tokens', type=int, default=8192,
      help='a longer document becomes several records')
  add('--seed', type=int, default=0, help='of what is random in examples')
  add('--num_processes', type=int, default=os.cpu_count())
  add('--pipeline_options', '--beam_pipeline_options', metavar='OPTIONS',
      help='write by Apache Beam, with options of it such as '
      '--runner=DataflowRunner,--project=P; processes of this machine else')
  add('--use_cached', action='store_true',
      help="read the task's cache of seqio, not its source")
  add('--seqio_additional_cache_dirs', action='append', default=[],
      metavar='DIR', help='folder of cached tasks')
  add('--tfds_data_dir', metavar='DIR', help='folder of TFDS data sets')
  add('--worker', help=argparse.SUPPRESS)  # NUMBER,COUNT,PARENT
  return parser


def _write(arguments: argparse.Namespace, *, given: Sequence[str]) -> int:
  if arguments.out is None:
    raise ValueError(
        '--out is missing: expected the folder of the cache. Add --out=DIR, or '
        '--verify=DIR to look at one that is there.'
    )
  places.is_bucket(arguments.out)  # refuses what is neither
  provider, options = _options_of(arguments)
  jobs = caching.plan_jobs(provider, options)
  if arguments.worker is not None:
    number, count, parent = map(int, arguments.worker.split(','))
    _end_with(parent)
    for job in jobs:
      job.check_started()
    _write_share(jobs, number=number, count=count)
    return exit_codes.DONE.code
  start = time.monotonic()
  caching.check_root(provider, options)
  if arguments.pipeline_options is not None:
    beam_shards.check_installed()
  with _taken(arguments.out):
    for job in jobs:
      job.start()
      if not places.is_bucket(job.plan.folder):
        shard_writer.remove_leftovers(job.plan.folder)
    shard_writer.remove_leftovers(shard_writer.working_folder())
    missing = [
        (number, index)
        for number, job in enumerate(jobs)
        for index in job.plan.missing()
    ]
    code = _write_all(missing, arguments, jobs=jobs, given=given)
    if code != exit_codes.DONE.code:
      return code
    for job in jobs:
      _say(_words(job.plan.folder, job.finish()))
    caching.write_root(provider, options)
  num_shards = sum(job.plan.num_shards for job in jobs)
  if len(missing) < num_shards:
    _say(
        f'{num_shards - len(missing)} of {num_shards} shards were there '
        'already, as large as they were written; their bytes were not read '
        f'again: `t5wild cache --verify={options.out}` does that.'
    )
  _say(
      f'{options.out} is complete after {time.monotonic() - start:.1f} s. '
      'Train on it with --gin_file=data/cached.gin after the recipe and '
      f'--gin.CACHE_DIR={options.out}'
  )
  return code


def _words(folder: str, manifest: record_cache.Manifest) -> str:
  return (
      f'{folder}: {manifest.num_records} records of {manifest.content}, '
      f'{manifest.num_tokens} tokens, {len(manifest.shards)} shards, '
      f'fingerprint {manifest.fingerprint}'
  )


def _options_of(
    arguments: argparse.Namespace,
) -> tuple[Any, caching.CacheOptions]:
  """(task or mixture, how to write it)."""
  provider, cfg = _provider_of(arguments)
  splits = arguments.splits
  return provider, caching.CacheOptions(
      out=arguments.out,
      content=arguments.content,
      splits=splits.split(',') if splits else None,
      task_feature_lengths=(
          arguments.task_feature_lengths or cfg.task_feature_lengths
      ),
      num_shards=arguments.num_shards,
      max_record_tokens=arguments.max_record_tokens,
      seed=arguments.seed,
      use_cached=cfg.use_cached,
  )


@contextlib.contextmanager
def _taken(out: str):
  """Keeps a second command out of a folder; a bucket has no locks.

  Raises:
    ValueError: there is a first one.
  """
  places.make_folder(out)
  path = places.join(out, record_cache.LOCK)
  try:
    lock = output_lock.OutputLock(path)
  except output_lock.TakenError:
    raise ValueError(
        f'{out} is being written by another `t5wild cache`, which holds '
        f'{path}: expected one at a time. Wait for it, or give another --out.'
    ) from None
  with contextlib.closing(lock):
    yield


def _provider_of(arguments: argparse.Namespace) -> tuple[Any, Any]:
  """(task or mixture, the config that names it)."""
  if bool(arguments.task) == bool(arguments.gin_file):
    raise ValueError(
        f'--task is {arguments.task!r} and --gin_file {arguments.gin_file}: '
        'expected one of them. Name a registered task, or the recipe that '
        'trains on it.'
    )
  if arguments.seqio_additional_cache_dirs or arguments.tfds_data_dir:
    providers.set_data_dirs(
        tfds_data_dir=arguments.tfds_data_dir,
        cache_dirs=arguments.seqio_additional_cache_dirs,
    )
  if arguments.gin_file:
    config = run_config.RunConfig.read(
        arguments.gin_file[0],
        gin_files=arguments.gin_file[1:],
        gin_bindings=arguments.gin_bindings,
        gin_search_paths=arguments.gin_search_paths,
    )
    cfg = config.need('train_dataset_cfg')
    if not isinstance(cfg, datasets.DatasetConfig):
      raise ValueError(
          f'the training data of {arguments.gin_file} are a '
          f'{type(cfg).__name__}: expected a DatasetConfig, which names a task '
          'to cache. Leave out the --gin_file that reads a cache.'
      )
    cfg = dataclasses.replace(
        cfg, use_cached=cfg.use_cached or arguments.use_cached
    )
    return datasets.open_provider(cfg), cfg
  cfg = datasets.DatasetConfig(
      mixture_or_task_name=arguments.task,
      task_feature_lengths=arguments.task_feature_lengths,
      split='',
      batch_size=1,
      shuffle=False,
      seed=arguments.seed,
      use_cached=arguments.use_cached,
      module=arguments.module,
  )
  provider = datasets.find_provider(cfg)
  providers.check_cache(cfg, provider=provider)
  return provider, cfg


def plan_again(arguments: Sequence[str], config: str | None) -> Any:
  """The jobs of a command, planned by another process, on any machine.

  Args:
    arguments: of the command.
    config: the text of its recipe, as its files may not be there.
  """
  jax.config.update('jax_platforms', 'cpu')
  parsed = _parser().parse_args(gin_utils.rewrite_gin_args(list(arguments)))
  if config is None:
    return caching.plan_jobs(*_options_of(parsed))
  with tempfile.TemporaryDirectory() as folder:
    parsed.gin_file = [os.path.join(folder, 'recipe.gin')]
    parsed.gin_bindings = []  # they are in it
    with open(parsed.gin_file[0], 'w', encoding='utf-8') as file:
      file.write(config)
    return caching.plan_jobs(*_options_of(parsed))


def _end_with(parent: int) -> None:
  """Ends this process as soon as its parent is gone, however it went."""

  def watch():
    while os.getppid() == parent:
      time.sleep(_PARENT_POLL_SECONDS)
    os._exit(exit_codes.FAILED.code)

  threading.Thread(target=watch, daemon=True).start()


def _write_share(
    jobs: Sequence[split_jobs.SplitJob], *, number: int, count: int
) -> None:
  """Writes every `count`-th shard, from `number` on."""
  shards = [
      (job, index) for job in jobs for index in range(job.plan.num_shards)
  ]
  for job, index in shards[number::count]:
    job.write_shard(index)


def _write_all(
    missing: Sequence[tuple[int, int]],
    arguments: argparse.Namespace,
    *,
    jobs: Sequence[split_jobs.SplitJob],
    given: Sequence[str],
) -> int:
  """Writes shards, by number of job and shard: by Beam, or by processes."""
  if arguments.pipeline_options is not None:
    config = gin.config_str() if arguments.gin_file else None
    beam_shards.write(
        missing,
        jobs=jobs,
        # By its name: in this file, run as a program, it has another.
        plan=functools.partial(
            importlib.import_module('t5wild.cache').plan_again,
            tuple(given), config,
        ),
        name=fingerprints.of_value([list(given), config]),
        options=beam_shards.parse_options(arguments.pipeline_options),
    )  # fmt: skip
    return exit_codes.DONE.code
  count = max(1, min(arguments.num_processes, len(missing)))
  if count == 1:
    _write_share(jobs, number=0, count=1)
    return exit_codes.DONE.code
  workers = [
      subprocess.Popen([
          sys.executable, '-m', 't5wild.cache', *given,
          f'--worker={number},{count},{os.getpid()}',
      ])
      for number in range(count)
  ]  # fmt: skip
  try:
    return _wait(workers)
  finally:
    for worker in workers:
      if worker.poll() is None:
        worker.terminate()
        worker.wait()


def _wait(workers: Sequence[subprocess.Popen]) -> int:
  """Waits for all, or for the first that fails; returns its exit code."""
  while True:
    codes = [worker.poll() for worker in workers]
    failed = [code for code in codes if code]
    if failed:
      return failed[0] if failed[0] > 0 else 128 - failed[0]
    if None not in codes:
      return exit_codes.DONE.code
    time.sleep(_POLL_SECONDS)


def _verify(root: str) -> int:
  folders = record_cache.folders_of(root)
  for folder in folders:
    cache = record_cache.RecordCache(folder)
    cache.verify()
    _say(
        f'{folder}: {len(cache)} records in {len(cache.manifest.shards)} '
        f'shards, {cache.manifest.num_tokens} tokens, as they were written '
        f'(fingerprint {cache.manifest.fingerprint})'
    )
  if folders != [root]:  # the whole cache, not a split of it
    cache_roots.rates_of(root)
  return exit_codes.DONE.code


def _say(text: str, *, stream: Any = None) -> None:
  print(text, file=stream or sys.stdout, flush=True)


if __name__ == '__main__':
  sys.exit(main())
