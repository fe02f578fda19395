# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""What of a lowered program tells it from another: hashes and operations."""

import collections
from collections.abc import Mapping
import contextlib
import hashlib
import json
import logging
import re
from typing import Any

from t5wild import run_dir as run_dir_lib
from t5wild.vitals import run_events

# `%3 = stablehlo.add %1, %2 : tensor<8xf32>`, and `"stablehlo.gather"(...)`.
_OPERATION = re.compile(r'= "?(?:stablehlo|chlo|sdy|mhlo)\.(\w+)"?')
_DTYPE = re.compile(r'tensor<(?:[\d?]+x)*([a-z]\w*)>[^>]*\Z')
# Of these the type of the result is told too: it is what costs and rounds.
_TYPED = frozenset({'dot_general', 'convolution', 'convert'})
# Values that are no operations: seeds, masks, schedules.
_CONSTANT = re.compile(r'dense<[^>]*>|dense_resource<[^>]*>')


def of_text(text: str) -> dict[str, Any]:
  """Facts of a program's text, as JSON has them.

  `hash` is of the whole; `hash_without_constants` is the same for programs that
  differ in their constants alone, as those of two seeds do; `operations` are
  counts by name.
  """
  operations: collections.Counter[str] = collections.Counter()
  for line in text.splitlines():
    found = _OPERATION.search(line)
    if found:
      operations[_named(found.group(1), line)] += 1
  return {
      'hash': _hash(text),
      'hash_without_constants': _hash(_CONSTANT.sub('dense<>', text)),
      'operations': dict(sorted(operations.items())),
  }


def write(
    run_dir: run_dir_lib.RunDir, facts: Mapping[str, Any], *, step: int
) -> None:
  """Writes program.json, a bucket's too; goes on where it cannot.

  Where a run goes on with another program than it had, `program/changed` in
  its events says so, and the former file stays: code of the user's own may be
  another, of which no configuration tells.

  Args:
    run_dir: The run's.
    facts: As `of_text`.
    step: Where the run begins or goes on.
  """
  from etils import epath  # bucket paths as well as folders

  try:
    path = epath.Path(run_dir.program_json)
    path.parent.mkdir(parents=True, exist_ok=True)
    if step > 0 and path.exists():
      _tell_change(run_dir, path.read_text(), facts, step=step)
    path.write_text(json.dumps(facts, indent=2) + '\n')
  except OSError as error:
    logging.warning(
        '%s cannot be written (%s); the run goes on without it.',
        run_dir.program_json,
        error,
    )


def _tell_change(
    run_dir: run_dir_lib.RunDir,
    former: str,
    facts: Mapping[str, Any],
    *,
    step: int,
) -> None:
  from etils import epath

  try:
    before = json.loads(former)
    if before['hash'] == facts['hash']:
      return
    without_constants = before['hash_without_constants']
  except (ValueError, KeyError, TypeError):  # half of a file
    return
  kept = run_dir.program_before(step)
  if not epath.Path(kept).exists():
    epath.Path(kept).write_text(former)
  if without_constants == facts['hash_without_constants']:
    how = 'in constants alone, as with another seed, rate or schedule'
  else:
    how = 'in its operations, as on another mesh, with other code or versions'
  events = run_events.RunEvents(run_dir.path, prefix='program')
  with contextlib.closing(events):
    events.add(
        'changed',
        step=step,
        value=1.0,
        text=f'from step {step} on the compiled step is another than before, '
        f'{how} ({before["hash"]} -> {facts["hash"]}). The former is {kept}',
    )


def _named(operation: str, line: str) -> str:
  if operation not in _TYPED:
    return operation
  dtype = _DTYPE.search(line)
  return f'{operation} {dtype.group(1)}' if dtype else operation


def _hash(text: str) -> str:
  return hashlib.sha256(text.encode()).hexdigest()[:16]
