# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Outputs: cut off anywhere, gone on with, never mixed."""

import pathlib
import sys

import pytest

from t5wild.inferring import outputs
from tests import small_disk

CHUNKS = ['a\nb\n', 'c\nd\n', 'e\n']


class _Killed(BaseException):
  """Ends a run anywhere."""


def _run(folder, *, settings=None, kill_at=None, digest='same'):
  """Writes all chunks; ends at the `kill_at`-th write of a small file."""
  writes = []
  real = outputs._write_whole

  def write_whole(path, text):
    if len(writes) == kill_at:
      raise _Killed
    writes.append(path)
    real(path, text)

  computed = []
  outputs._write_whole = write_whole
  output = outputs.Output(
      str(folder), 'out', tmp_name='tmp', settings=settings or {'mode': 'a'}
  )
  try:
    if output.is_complete:
      return []
    output.start()
    for number, text in enumerate(CHUNKS):
      if not output.is_done(number, digest=digest):
        computed.append(number)
        output.write(
            number,
            digest=digest,
            write=lambda p, t=text: pathlib.Path(p).write_text(t),
        )
    output.finish()
  finally:
    outputs._write_whole = real
    output.close()  # as the system does when a process ends
  return computed


@pytest.mark.parametrize('kill_at', range(5))
def test_killed_anywhere_no_line_is_lost_or_doubled(tmp_path, kill_at):
  with pytest.raises(_Killed):
    _run(tmp_path, kill_at=kill_at)
  computed = _run(tmp_path)
  done_before = max(0, kill_at - 1)  # the first write is of the settings
  assert computed == list(range(done_before, len(CHUNKS)))
  assert (tmp_path / 'out').read_text() == ''.join(CHUNKS)
  assert sorted(p.name for p in tmp_path.iterdir()) == ['out', 'out.COMPLETED']


def test_a_complete_output_is_left_alone(tmp_path):
  _run(tmp_path)
  assert _run(tmp_path) == []


@pytest.mark.parametrize('kill_at', [2, None])
def test_other_settings_are_refused_with_both_sides(tmp_path, kill_at):
  if kill_at is None:
    _run(tmp_path)
  else:
    with pytest.raises(_Killed):
      _run(tmp_path, kill_at=kill_at)
  with pytest.raises(outputs.BadOutputError, match=r'there: a\s+asked: b'):
    _run(tmp_path, settings={'mode': 'b'})


def test_a_file_of_unknown_origin_is_never_overwritten(tmp_path):
  (tmp_path / 'out').write_text('precious')
  with pytest.raises(outputs.BadOutputError, match='nothing says what it is'):
    _run(tmp_path)
  assert (tmp_path / 'out').read_text() == 'precious'


def test_inputs_that_changed_in_between_are_refused(tmp_path):
  with pytest.raises(_Killed):
    _run(tmp_path, kill_at=2)
  with pytest.raises(outputs.BadOutputError, match='inputs have changed'):
    _run(tmp_path, digest='other')


def test_inputs_that_became_fewer_in_between_are_refused(tmp_path, monkeypatch):
  with pytest.raises(_Killed):
    _run(tmp_path, kill_at=3)  # two chunks are written
  monkeypatch.setattr(sys.modules[__name__], 'CHUNKS', CHUNKS[:1])
  with pytest.raises(outputs.BadOutputError, match=r'chunks \[1\].* fewer'):
    _run(tmp_path)
  assert not (tmp_path / 'out').exists()


def test_a_process_with_other_inputs_is_refused_with_both_sides(
    tmp_path, monkeypatch
):
  def meet(name, *, value):
    del name
    other = [None, None, {'mode': 'a', 'inputs': 'those'}]
    return [value, other]

  monkeypatch.setattr(outputs.distributed, 'meet', meet)
  with pytest.raises(outputs.BadOutputError, match=r'process 1 has other in'):
    _run(tmp_path, settings={'mode': 'a', 'inputs': 'these'})
  assert not list(tmp_path.iterdir())


def test_two_outputs_of_one_folder_do_not_touch_each_other(tmp_path):
  first, second = (
      outputs.Output(str(tmp_path), name, tmp_name='tmp', settings={'m': name})
      for name in ('a', 'b')
  )
  for output in (first, second):
    output.start()
    output.write(
        0, digest='d', write=lambda p: pathlib.Path(p).write_text('line\n')
    )
  first.finish()
  assert (tmp_path / 'a').read_text() == 'line\n'
  assert outputs.Output(
      str(tmp_path), 'b', tmp_name='tmp', settings={'m': 'b'}
  ).is_done(0, digest='d')
  second.finish()
  assert not (tmp_path / 'tmp').exists()


def test_looking_at_an_output_writes_nothing(tmp_path):
  outputs.Output(str(tmp_path / 'x'), 'a', tmp_name='tmp', settings={})
  assert not any(tmp_path.iterdir())


def _output(folder, name='out', **arguments):
  return outputs.Output(
      str(folder), name, tmp_name='tmp', settings={'mode': 'a'}, **arguments
  )


def _write(output, number, text):
  assert not output.is_done(number, digest='d')
  output.write(
      number, digest='d', write=lambda p: pathlib.Path(p).write_text(text)
  )


def test_no_line_is_lost_whatever_the_folder_is_called(tmp_path):
  folder = tmp_path / 'runs[1]*?'
  with pytest.raises(_Killed):
    _run(folder, kill_at=2)
  assert _run(folder) == [1, 2]
  assert (folder / 'out').read_text() == ''.join(CHUNKS)


def test_chunks_are_in_order_beyond_five_digits(tmp_path):
  tmp = tmp_path / 'tmp'
  tmp.mkdir()
  for number in (99999, 100000, 100001, 10001):
    (tmp / f'out-chunk{number:05}').write_text(f'{number}\n')
    (tmp / f'out-chunk{number:05}.COMPLETED').write_text('d')
  outputs.merge_chunks_to_file(str(tmp_path), 'out', str(tmp), None)
  assert (tmp_path / 'out').read_text() == '10001\n99999\n100000\n100001\n'
  (tmp / 'out-settings.json').write_text('{"mode": "a"}')
  (tmp_path / 'out').unlink()
  assert _output(tmp_path).is_done(100001, digest='d')


def test_a_second_job_is_refused_while_the_first_writes(tmp_path):
  first, second = _output(tmp_path), _output(tmp_path)
  first.start()
  _write(first, 0, 'a\n')
  with pytest.raises(outputs.BadOutputError, match='by another job'):
    second.start()
  first.finish()
  second.start()
  assert second.is_complete
  second.close()
  assert (tmp_path / 'out').read_text() == 'a\n'


def test_what_a_job_wrote_after_another_looked_is_not_written_again(tmp_path):
  first, second = _output(tmp_path), _output(tmp_path)
  first.start()
  _write(first, 0, 'a\n')
  first.close()
  second.start()
  assert second.is_done(0, digest='d')


def test_an_output_that_was_taken_away_is_made_again(tmp_path):
  _run(tmp_path)
  (tmp_path / 'out').unlink()
  with pytest.raises(_Killed):
    _run(tmp_path, kill_at=2)
  assert _run(tmp_path) == [1, 2]
  assert (tmp_path / 'out').read_text() == ''.join(CHUNKS)


def test_chunks_that_were_left_are_joined_when_that_is_asked(tmp_path):
  output = _output(tmp_path, merge_fn=None)
  output.start()
  for number, text in enumerate(CHUNKS):
    _write(output, number, text)
  output.finish()
  assert _output(tmp_path, merge_fn=None).is_complete
  assert _run(tmp_path, digest='d') == []
  assert (tmp_path / 'out').read_text() == ''.join(CHUNKS)


def test_chunks_that_have_gone_are_not_left_out(tmp_path):
  output = _output(tmp_path)
  output.start()
  for number, text in enumerate(CHUNKS):
    _write(output, number, text)
  (tmp_path / 'tmp/out-chunk00001').unlink()
  with pytest.raises(outputs.NotWrittenError, match='1 of 3 chunks'):
    output.finish()
  output.close()
  assert not (tmp_path / 'out').exists()
  assert _run(tmp_path, digest='d') == [1]
  assert (tmp_path / 'out').read_text() == ''.join(CHUNKS)


@pytest.mark.parametrize('text', ['', '{"mode": ', '[]'])
def test_a_marker_of_others_is_told(tmp_path, text):
  (tmp_path / 'out').write_text('precious')
  (tmp_path / 'out.COMPLETED').write_text(text)  # as T5X's, which is empty
  with pytest.raises(outputs.BadOutputError, match='expected what an infer'):
    _run(tmp_path)
  assert (tmp_path / 'out').read_text() == 'precious'


def test_a_place_that_cannot_be_is_told_before_anything_is_written(tmp_path):
  (tmp_path / 'file').write_text('precious')
  with pytest.raises(outputs.BadOutputError, match='file is no folder'):
    _output(tmp_path / 'file' / 'folder')
  output = _output(tmp_path, name='o' * 250)  # found out by trying alone
  with pytest.raises(outputs.BadOutputError, match='cannot be written'):
    output.start()


def test_a_full_disk_ends_a_job_and_the_same_command_goes_on(tmp_path):
  with small_disk.mounted(tmp_path / 'disk', megabytes=1) as disk:
    output = _output(disk)
    output.start()
    _write(output, 0, 'a' * 400_000)
    with pytest.raises(outputs.NotWrittenError, match='No space left'):
      _write(output, 1, 'b' * 800_000)
    output.close()
    small_disk.grow(disk, megabytes=2)
    output = _output(disk)
    output.start()
    assert output.is_done(0, digest='d')
    _write(output, 1, 'b' * 800_000)
    with pytest.raises(outputs.NotWrittenError, match='No space left'):
      output.finish()
    output.close()
    assert sorted(path.name for path in disk.iterdir()) == ['tmp']
    small_disk.grow(disk, megabytes=4)
    output = _output(disk)
    output.start()
    assert output.is_done(0, digest='d')
    assert output.is_done(1, digest='d')
    output.finish()
    assert (disk / 'out').read_text() == 'a' * 400_000 + 'b' * 800_000
