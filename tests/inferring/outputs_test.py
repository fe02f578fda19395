# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Outputs: cut off anywhere, gone on with, never mixed."""

import pathlib

import pytest

from t5wild.inferring import outputs

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
  try:
    output = outputs.Output(
        str(folder), 'out', tmp_name='tmp', settings=settings or {'mode': 'a'}
    )
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
