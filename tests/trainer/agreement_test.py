# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that differ are told so, with the difference."""

import time

import pytest

from t5wild.trainer import agreement


def _meeting(monkeypatch, all_facts, *, index):
  """Stands for `distributed.meet` among processes with these facts."""
  calls = []

  def meet(name, *, value):
    calls.append(value)
    if len(calls) == 1:
      return [
          {key: agreement._hash(text) for key, text in facts.items()}
          for facts in all_facts
      ]
    # Who is not shown brings nothing.
    return [dict(facts) for facts in all_facts]

  monkeypatch.setattr(agreement.distributed, 'meet', meet)
  monkeypatch.setattr(agreement.distributed, 'process_index', lambda: index)
  return calls


@pytest.mark.parametrize('index', [0, 1, 2])
def test_every_process_is_told_who_differs_and_how(index, monkeypatch):
  facts = [
      {'config': 'a = 1\nb = 2', 'code': 'x'},
      {'config': 'a = 1\nb = 2', 'code': 'x'},
      {'config': 'a = 1\nb = 3', 'code': 'x'},
  ]
  calls = _meeting(monkeypatch, facts, index=index)
  with pytest.raises(agreement.DisagreementError) as caught:
    agreement.compare(facts[index])
  told = str(caught.value)
  assert 'Processes [2] differ from process 0 in config' in told
  assert '-b = 2' in told and '+b = 3' in told and 'a = 1' not in told
  assert 'Expected the same' in told
  # Only the two that are shown send their text, and only what differs.
  assert calls[1] == (
      None if index == 1 else {'config': facts[index]['config']}
  )


def test_processes_alike_meet_once_and_go_on(monkeypatch):
  calls = _meeting(monkeypatch, [{'config': 'a'}] * 3, index=1)
  agreement.compare({'config': 'a'})
  assert len(calls) == 1


def test_one_process_alone_reads_nothing(monkeypatch):
  monkeypatch.setattr(agreement, '_code', lambda: 1 / 0)
  agreement.check()


def test_what_is_compared_is_read_in_no_time_and_names_what_it_is():
  start = time.process_time()
  code, environment = agreement._code(), agreement._environment()
  assert time.process_time() - start < 2
  assert 'trainer/agreement.py ' in code
  for name in ('python: 3.', 'jax: 0.', 'jax_enable_x64: False'):
    assert name in environment
