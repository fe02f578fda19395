# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Each end is called what it was."""

import signal

import pytest

from t5wild import exit_codes
from t5wild.launch import failures


@pytest.mark.parametrize('exit_', exit_codes.ALL, ids=lambda e: e.name)
def test_an_exit_of_ours_is_restarted_as_its_code_says(exit_):
  kind = failures.classify(exit_.code, []).kind
  if exit_ is not exit_codes.FAILED:
    assert kind is not failures.UNKNOWN
  assert kind.restart == exit_.restart


@pytest.mark.parametrize(
    ('code', 'line', 'kind'),
    [
        (1, 'RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes',
         'out_of_memory'),
        (1, 'MemoryError', 'out_of_memory'),
        (1, 'OSError: [Errno 28] No space left on device', 'save_error'),
        (1, 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus',
         'device'),
        (-6, 'INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access',
         'device'),
        (1, 't5wild.data.documents.CorruptTextError: a.txt line 3', 'data'),
        (1, 'OSError: [Errno 116] Stale file handle: x', 'file_system'),
        (2, "OSError: [Errno 5] Input/output error: '/nfs/recipe.gin'",
         'file_system'),
        (1, 'bind: Address already in use', 'port'),
        (1, "ModuleNotFoundError: No module named 'my_tasks'", 'user_error'),
        (-6, 'The coordination service has been stopped', 'lost_peer'),
        (1, 'Gloo AllReduce failed: Connection closed by peer [127.0.0.1]',
         'lost_peer'),
        (1, 'RuntimeError: what nobody foresaw', 'unknown'),
        (1, 'Sample 3: What does Xid 79 mean?', 'unknown'),
        (-11, 'Fatal Python error: Segmentation fault', 'unknown'),
        (127, 'bash: t5wlid: command not found', 'user_error'),
        (2, 'no such recipe', 'user_error'),
        (-9, '', 'killed'),
        (137, '', 'killed'),
        (-15, '', 'killed'),
        (-2, '', 'stopped'),
        (130, '', 'stopped'),
    ],
)  # fmt: skip
def test_an_exit_is_told_by_code_signal_and_last_lines(code, line, kind):
  found = failures.classify(code, ['step 3/9  loss 1.0', line, ''])
  assert found.kind.name == kind
  if code > 0 and code < 128:
    assert found.line == line


def test_a_process_killed_for_want_of_host_memory_is_out_of_memory():
  found = failures.classify(-signal.SIGKILL, [], num_oom_kills=1)
  assert found.kind is failures.OUT_OF_MEMORY


def test_a_hang_is_told_with_those_who_lag():
  lines = [
      'step 3/9', "process 0 hangs in 'step' after step 3: nothing finished",
      '  process 1 on node7 (pid 17) gave no sign of life for 9 s',
      '  All stacks are in x.',
  ]  # fmt: skip
  found = failures.classify(exit_codes.HUNG.code, lines)
  assert found.line == (
      "process 0 hangs in 'step' after step 3: nothing finished; process 1 on "
      'node7 (pid 17) gave no sign of life for 9 s'
  )
  assert 'No step' in failures.classify(exit_codes.HUNG.code, []).line


def test_what_a_killed_process_said_before_is_not_taken_for_its_cause():
  found = failures.classify(-signal.SIGKILL, ['retry: Connection refused'])
  assert found.kind is failures.KILLED


def test_what_the_run_went_on_from_is_not_taken_for_its_cause():
  full = 'OSError: [Errno 28] No space left on device'
  progress = [f'step {n}/1000  loss 2.5  9.1k tokens/s' for n in range(100)]
  survived = failures.classify(-signal.SIGSEGV, [full, *progress, 'Fatal'])
  assert survived.kind is failures.UNKNOWN
  # Steps that were under way may still be told after what ended the run.
  last = failures.classify(1, [*progress, full, *progress[:5], 'Fatal'])
  assert last.kind is failures.SAVE_ERROR


def test_the_cause_is_not_the_one_who_only_lost_a_peer():
  lost = failures.Failure(kind=failures.LOST_PEER, code=-6, process=0)
  dead = failures.Failure(kind=failures.KILLED, code=-9, process=1)
  assert failures.root_cause([lost, dead]) is dead
  assert failures.root_cause([lost]) is lost


def test_a_done_process_is_no_cause():
  done = failures.Failure(kind=failures.DONE, code=0, process=0)
  dead = failures.Failure(kind=failures.UNKNOWN, code=1, process=1)
  assert failures.root_cause([done, dead]) is dead


def test_the_same_error_has_one_signature_whatever_its_numbers():
  one = failures.classify(1, ['RuntimeError: no 17 at 0x7f3a in pid 33'])
  two = failures.classify(1, ['RuntimeError: no 18 at 0x7f4b in pid 4000'])
  assert one.signature() == two.signature()


def test_the_last_words_are_the_error_and_not_the_frames_above_it():
  lines = [
      'Traceback (most recent call last):', '  File "a.py", line 3',
      'ValueError: it was this', '',
  ]  # fmt: skip
  assert failures.classify(1, lines).line == 'ValueError: it was this'


def test_the_note_that_jax_adds_is_not_the_last_words():
  lines = [
      'RuntimeError: it was this', '--------------------',
      'For simplicity, JAX has removed its internal frames from the traceback '
      'of the following exception. Set JAX_TRACEBACK_FILTERING=off to include '
      'these.',
  ]  # fmt: skip
  assert failures.classify(1, lines).line == 'RuntimeError: it was this'
