# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""A job ends with the same bytes, whatever killed those before it.

Without seqio: the documents are given.
"""

import dataclasses
import functools
import os
import pathlib
import signal
import types

import pytest

from t5wild.data import fingerprints
from t5wild.data import record_cache
from t5wild.data import record_format
from t5wild.data import shard_writer
from t5wild.data import source_files
from t5wild.data import split_jobs
from tests.data import caches

_SHARDS = 2


class _Job(split_jobs.SplitJob):
  """A job whose task gives some documents."""

  def _documents(self, index):
    for tokens in caches.texts(20)[index::_SHARDS]:
      yield {'targets': tokens}


def _job(root: pathlib.Path, *, source=()) -> _Job:
  schema = record_format.Schema(features=('targets',), dtype='uint16')
  names = [f'{path}[0:5]' for path in source]
  return _Job(
      task=types.SimpleNamespace(
          name='letters',
          source=types.SimpleNamespace(list_shards=lambda split: names),
      ),
      split='train',
      pipeline=None,
      task_feature_lengths=None,
      seed=0,
      manifest=record_cache.Manifest(
          task='letters',
          split='train',
          content='tokens',
          features={
              'targets': {
                  'vocabulary': fingerprints.describe_vocabulary(
                      caches.VOCABULARY
                  ),
                  'add_eos': True,
              }
          },
          schema=schema,
          task_description=['made by a test'],
          shards=[],
          versions={},
      ),
      plan=shard_writer.ShardPlan(
          folder=str(root / 'letters' / 'train'),
          num_shards=_SHARDS,
          schema=schema,
          max_record_tokens=128,
      ),
      source_state=source_files.look_at(names),
  )


def _write(job: _Job) -> record_cache.Manifest:
  job.start()
  shard_writer.remove_leftovers(job.plan.folder)
  for index in job.plan.missing():
    job.write_shard(index)
  return job.finish()


def _killed_at(call: int, job: _Job) -> bool:
  """Writes in a process that dies at a call to the system; whether it did."""
  child = os.fork()
  if child:
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)
  left = [call]

  def deadly(function):
    def counted(*arguments, **options):
      left[0] -= 1
      if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
      return function(*arguments, **options)

    return counted

  for name in ('replace', 'fsync', 'remove', 'makedirs'):
    setattr(os, name, deadly(getattr(os, name)))
  try:
    _write(job)
  finally:
    os._exit(0)  # not the tests that this process is a copy of


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:.*fork:RuntimeWarning')
@pytest.mark.filterwarnings('ignore:.*fork:DeprecationWarning')
def test_killed_at_any_call_to_the_system_it_ends_with_the_same_bytes(
    tmp_path,
):
  whole = _write(_job(tmp_path / 'whole'))
  call = 0
  while _killed_at(call, job := _job(tmp_path / f'killed_{call}')):
    if os.path.exists(f'{job.plan.folder}/{record_cache.MANIFEST}'):
      assert record_cache.read_manifest(job.plan.folder) == whole
    else:
      with pytest.raises(record_cache.BadCacheError):
        record_cache.RecordCache(job.plan.folder)
    assert _write(job) == whole
    record_cache.RecordCache(job.plan.folder).verify()
    assert not [n for n in os.listdir(job.plan.folder) if '.tmp' in n]
    call += 1
  assert call > 12  # each file has two calls of its own


@pytest.mark.parametrize('harm', ['missing', 'truncated'])
def test_the_same_command_writes_again_what_was_lost(harm, tmp_path):
  job = _job(tmp_path)
  whole = _write(job)
  path = pathlib.Path(job.plan.folder, whole.shards[1].name)
  if harm == 'missing':
    path.unlink()
  else:
    os.truncate(path, whole.shards[1].num_bytes - 1)
  assert job.plan.missing() == [1]
  assert _write(_job(tmp_path)) == whole
  record_cache.RecordCache(job.plan.folder).verify()


@pytest.mark.parametrize('change', ['longer', 'touched', 'absent'])
def test_a_source_that_changed_while_caching_is_refused_and_named(
    change, tmp_path
):
  text = tmp_path / 'some.txt'
  text.write_text('hello')
  os.utime(text, (1, 1))
  job = _job(tmp_path / 'cache', source=[text])
  job.start()
  job.write_shard(0)
  job.write_shard(1)
  if change == 'longer':
    text.write_text('hello again')
  elif change == 'touched':
    os.utime(text, (2, 2))
  else:
    text.unlink()
  with pytest.raises(ValueError, match='some.txt: 5 bytes of .*, now '):
    job.finish()
  assert not os.path.exists(f'{job.plan.folder}/{record_cache.MANIFEST}')
  # Nor does the same command go on, or a worker of it.
  again = _job(tmp_path / 'cache', source=[text])
  for refuses in (again.start, again.check_started):
    with pytest.raises(ValueError, match='Delete that folder'):
      refuses()
  text.write_text('hello')
  os.utime(text, (1, 1))
  assert _write(_job(tmp_path / 'cache', source=[text])).num_records


def _preprocessor(body):
  made = {'__name__': 'mine'}
  exec(f'def clean(x, upper=False):\n  return {body}', made)
  return made['clean']


def test_code_that_was_edited_while_caching_is_refused_and_named(tmp_path):
  def job(body):
    steps = (functools.partial(_preprocessor(body), upper=True),)
    return dataclasses.replace(
        _job(tmp_path), pipeline=types.SimpleNamespace(preprocessors=steps)
    )

  job('[i + 1 for i in x]').start()
  job('[i + 1 for i in x]  # as it was').start()
  for other in ('[i + 2 for i in x]', '[i - 1 for i in x]', 'sorted(x)'):
    with pytest.raises(ValueError, match=r'mine.clean\(upper=True\): there'):
      job(other).start()


def test_code_of_libraries_is_their_own_affair():
  steps = [functools.partial(shard_writer.write_text), len]
  assert fingerprints.code_of(steps) == {}


def test_only_files_of_this_machine_are_looked_at(tmp_path):
  text = tmp_path / 'some.txt'
  text.write_text('hello')
  names = [f'{text}[0:3]', f'{text}[3:None]', 'gs://bucket/x', 'train']
  assert list(source_files.look_at(names)) == [str(text)]
  before = {f'/a/{i}': (1, i) for i in range(9)}
  told = source_files.changes(before, {})
  assert told.count('absent') == 5 and 'and 4 more' in told


