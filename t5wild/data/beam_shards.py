# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""The shards of a cache, written by Apache Beam on a runner of the user's.

A worker plans the jobs of the cache anew, as the processes of one machine do,
and writes the shards that it is given: the same bytes. Apache Beam is imported
when a function here is called.
"""

from collections.abc import Callable, Sequence
import importlib
import re
import threading

from t5wild.data import shard_writer
from t5wild.data import split_jobs

Jobs = Sequence[split_jobs.SplitJob]

# Jobs that this process has planned: a pipeline in the process that began it
# must not register its tasks twice.
_planned: dict[str, Jobs] = {}
_lock = threading.Lock()


class NoBeamError(ImportError):
  """Apache Beam is not installed; says how to install it."""


class PipelineError(RuntimeError):
  """A pipeline that failed; says what its runner said."""


def parse_options(text: str) -> list[str]:
  """Options of a pipeline, from one flag: '--runner=X,--y=z' or 'runner=X'."""
  options = [option.strip() for option in text.split(',') if option.strip()]
  return [
      option if option.startswith('-') else f'--{option}' for option in options
  ]


def check_installed() -> None:
  """Refuses to go on without Apache Beam.

  Raises:
    NoBeamError: it is not installed.
  """
  try:
    importlib.import_module('apache_beam')
  except ImportError as error:
    raise NoBeamError(
        f'Apache Beam cannot be imported ({error}): expected it for '
        "--pipeline_options. pip install 't5wild[beam]', in an environment of "
        'its own, or leave the flag out to write by processes of this machine.'
    ) from None


def write(
    missing: Sequence[tuple[int, int]],
    *,
    jobs: Jobs,
    plan: Callable[[], Jobs],
    name: str,
    options: Sequence[str],
) -> None:
  """Runs a pipeline that writes shards, and waits for it.

  Args:
    missing: (number of the job, number of its shard).
    jobs: as this process has planned them.
    plan: plans the same jobs in another process; it is pickled.
    name: of these jobs in all processes.
    options: of the pipeline; the first may name the runner.

  Raises:
    NoBeamError: Apache Beam is not installed.
    shard_writer.NotWrittenError: a worker could not write.
    PipelineError: it failed otherwise.
  """
  check_installed()
  import apache_beam as beam
  from apache_beam.options import pipeline_options

  _planned[name] = jobs
  writer = _Writer(plan, name=name)
  pipeline = beam.Pipeline(
      options=pipeline_options.PipelineOptions(list(options))
  )
  _ = (
      pipeline
      | 'Shards' >> beam.Create(list(missing))
      # Or a runner may put all of them on one worker.
      | 'Spread' >> beam.Reshuffle()
      | 'Write' >> beam.Map(writer)
  )
  try:
    pipeline.run().wait_until_finish()
  except Exception as error:
    raise _as_ours(error) from error
  finally:
    _planned.pop(name, None)


class _Writer:
  """Writes a shard; pickled to the workers."""

  def __init__(self, plan: Callable[[], Jobs], *, name: str):
    self._plan = plan
    self._name = name

  def __call__(self, shard: tuple[int, int]) -> str:
    with _lock:
      if self._name not in _planned:
        jobs = self._plan()
        for job in jobs:
          job.check_started()
        _planned[self._name] = jobs
    job, index = shard
    self._jobs[job].write_shard(index)
    return self._jobs[job].plan.name(index)

  @property
  def _jobs(self) -> Jobs:
    return _planned[self._name]


def _as_ours(error: Exception) -> Exception:
  """What a worker raised, of which a runner may hand on the text alone."""
  lines = [line for line in str(error).splitlines() if line.strip()]
  text = '\n'.join(lines[-4:]) or repr(error)
  kind = shard_writer.NotWrittenError.__name__
  if isinstance(error, shard_writer.NotWrittenError) or kind in str(error):
    return shard_writer.NotWrittenError(re.sub(rf'.*{kind}:?\s*', '', text))
  return PipelineError(
      f'the pipeline failed: {type(error).__name__}: {text}\n'
      'Expected every shard to be written. Mend that (on workers of a '
      'cluster: t5wild, the modules of your tasks and --out must be there '
      'too); the same command goes on.'
  )
