# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that differ between processes are told, with the place."""

import jax
import jax.numpy as jnp
import pytest

from t5wild.trainer import agreement
from t5wild.trainer import program_agreement


def _told(texts):
  """What each process is told: every one brings what it would bring."""
  values = []
  errors = [None] * len(texts)
  # Rounds: a process that waits is asked again once all have brought theirs.
  for turn in range(4):
    brought = []
    for index, text in enumerate(texts):
      seen = []

      def meet(name, *, value, seen=seen):
        del name
        seen.append(value)
        if len(seen) <= len(values):
          return values[len(seen) - 1]
        raise _WaitError(value)

      try:
        program_agreement.compare(text, name='the step', meet=meet)
      except _WaitError as wait:
        brought.append(wait.value)
      except agreement.DisagreementError as error:
        errors[index] = str(error)
    del turn
    if len(brought) < len(texts):
      break
    values.append(brought)
  return errors, values


class _WaitError(Exception):

  def __init__(self, value):
    super().__init__()
    self.value = value


def _program(changed=None):
  lines = [f'%{i} = stablehlo.add %a, %b' for i in range(1000)]
  if changed is not None:
    lines[changed] = '%x = stablehlo.multiply %a, %b'
  return '\n'.join(lines)


def test_processes_alike_meet_once():
  errors, values = _told([_program()] * 3)
  assert errors == [None] * 3
  assert len(values) == 1


@pytest.mark.parametrize('changed', [0, 199, 200, 999])
def test_every_process_is_told_the_first_line_that_differs(changed):
  errors, values = _told([_program(), _program(), _program(changed)])
  assert len(set(errors)) == 1
  told = errors[0]
  assert 'Processes [2] lowered another program of the step' in told
  assert f'its line {changed + 1} is' in told
  assert f'process 0: %{changed} = stablehlo.add' in told
  assert 'process 2: %x = stablehlo.multiply' in told
  # A part of the text is sent, not all of it.
  assert all(len(part) <= 200 for part in values[-1])


def test_a_program_that_is_longer_at_its_end_differs():
  errors, _ = _told([_program(), _program() + '\nreturn %a'])
  assert 'its line 1001 is' in errors[0] and '(ends)' in errors[0]


def test_text_is_the_same_for_the_same_function_from_another_line():
  def first(x):
    return jnp.sin(x) * 2

  def second(x):

    return jnp.sin(x) * 2

  second.__name__ = 'first'
  x = jnp.ones(3)
  texts = [
      program_agreement.text_of(jax.jit(fn).lower(x)) for fn in (first, second)
  ]
  assert texts[0] == texts[1]
  assert 'sine' in texts[0]


def test_an_address_of_a_callback_is_no_difference():
  text = 'custom_call @xla_python_cpu_callback(%0) {backend_config = "%d"}'

  class Lowered:

    def __init__(self, address):
      self.address = address

    def as_text(self):
      return text.replace('%d', str(self.address))

  one, other = Lowered(94238472000), Lowered(14238472016)
  assert program_agreement.text_of(one) == program_agreement.text_of(other)


def test_one_process_alone_compares_nothing(monkeypatch):
  monkeypatch.setattr(program_agreement, 'compare', lambda *a, **k: 1 / 0)
  compared = program_agreement.Compared(jax.jit(jnp.sin), name='the step')
  assert float(compared.lower(jnp.ones(())).compile()(jnp.ones(()))) > 0
