# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Refuses arguments of a decoding that can not work, before it is compiled.

A value that is traced (an argument of the compiled function) is unknown when
the decoding is built and passes.
"""

from typing import Any

import jax
import numpy as np


def is_known(value: Any) -> bool:
  """Tells whether the value is a number now, not one to come."""
  return not isinstance(value, jax.core.Tracer)


def is_one(value: Any) -> bool:
  """Tells whether the value is known to be 1."""
  return is_known(value) and value == 1


def check_shared(*, num_decodes: int, length: int) -> None:
  """Refuses what neither sampling nor beam search can do.

  Args:
    num_decodes: sequences per input.
    length: length of the decoder's inputs.

  Raises:
    ValueError: one of them is below one.
  """
  if num_decodes < 1:
    raise ValueError(
        f'num_decodes is {num_decodes!r}: expected at least 1 decode per '
        'input; set num_decodes = 1 for one'
    )
  if length < 1:
    raise ValueError(
        f'the decode length is {length}: expected room for at least 1 token; '
        "give the decoder's inputs a length of 1 or more "
        "(TASK_FEATURE_LENGTHS['targets'])"
    )


def check_sampling(
    *, temperature: Any, topk: Any, topp: Any, repetition_penalty: float
) -> None:
  """Refuses distributions that nothing can be drawn from.

  Raises:
    ValueError: a value is out of its range, or two cut-offs are given.
  """
  if is_known(temperature) and not np.all(np.asarray(temperature) >= 0):
    raise ValueError(
        f'temperature is {temperature!r}: expected 0 (the likeliest token) or '
        'more; set temperature = 1.0 to sample from the model as it is'
    )
  if is_known(topk) and topk < 0:
    raise ValueError(
        f'topk is {topk!r}: expected 0 (no cut-off) or a number of tokens; '
        'set topk = 0 to sample from all tokens'
    )
  if is_known(topp) and not np.all((np.asarray(topp) >= 0) & (topp <= 1)):
    raise ValueError(
        f'topp is {topp!r}: expected a probability in (0, 1], or 0 for no '
        'cut-off; set topp = 0.9 to keep the likeliest 90 %'
    )
  if is_known(topk) and is_known(topp) and np.any(topp) and topk:
    raise ValueError(
        'both cut-offs are given:\n'
        f'  topk  {topk!r}\n'
        f'  topp  {topp!r}\n'
        'expected at most one; set topk = 0 (its default is 1) to sample by '
        'topp, or topp = 0.0 to sample by topk'
    )
  check_repetition_penalty(repetition_penalty)


def check_repetition_penalty(repetition_penalty: float) -> None:
  """Refuses a penalty that would turn logits round.

  Raises:
    ValueError: it is not above zero.
  """
  if is_known(repetition_penalty) and not repetition_penalty > 0:
    raise ValueError(
        f'repetition_penalty is {repetition_penalty!r}: expected more than 0, '
        '1 being no penalty; set repetition_penalty = 1.2 to repeat less'
    )


def check_max_decode_steps(max_decode_steps: Any, *, length: int) -> None:
  """Refuses a number of steps that the sequences have no room for.

  Raises:
    ValueError: it is below one or above the length.
  """
  if max_decode_steps is None or not is_known(max_decode_steps):
    return
  steps = np.asarray(max_decode_steps)
  if not np.all((steps >= 1) & (steps <= length)):
    raise ValueError(
        f'max_decode_steps is {max_decode_steps!r}: expected 1 to {length}, '
        "the length of the decoder's inputs; lower it, or lengthen the "
        "targets (TASK_FEATURE_LENGTHS['targets'])"
    )


def check_beams(*, num_decodes: int, vocab_size: int) -> None:
  """Refuses more beams than there are tokens to tell them apart.

  Raises:
    ValueError: there are more.
  """
  if num_decodes > vocab_size:
    raise ValueError(
        f'num_decodes is {num_decodes}: expected no more beams than the '
        f'vocabulary has tokens, {vocab_size}; set num_decodes = {vocab_size} '
        'or fewer'
    )


def check_max_decode_len(max_decode_len: int, *, length: int) -> None:
  """Refuses sequences longer than the cache, or empty ones.

  Raises:
    ValueError: it is below one or above the length.
  """
  if not 1 <= max_decode_len <= length:
    raise ValueError(
        f'max_decode_len is {max_decode_len!r}: expected 1 to {length}, the '
        "length of the decoder's inputs and of the cache; lower it, or "
        "lengthen the targets (TASK_FEATURE_LENGTHS['targets'])"
    )
