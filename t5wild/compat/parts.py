# SPDX-FileCopyrightText: 2026 The t5wild Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a part of a recipe, which imports nothing, after the files it follows.

T5X's users stack such parts: `--gin_file=MODEL --gin_file=RUN --gin_file=PART`.
Their names are those of the files before them, so a part is held against
T5X's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses
import itertools
from typing import Any

from t5wild.gin_config import findings
from t5wild.gin_config import lint as lint_lib
from t5wild.gin_config import reader

_MODELS = (
    't5x/examples/t5/t5_1_1/base.gin',
    't5x/examples/decoder_only/models/base.gin',
)
_RUNS = (
    't5x/configs/runs/pretrain.gin',
    't5x/configs/runs/finetune.gin',
    't5x/configs/runs/eval.gin',
    't5x/configs/runs/infer.gin',
)


@dataclasses.dataclass(frozen=True)
class Read:
  """What a file says.

  Attributes:
    report: what its names mean, and what is wrong in it.
    after: the files of T5X that it was read after; none for most.
  """

  report: findings.Report
  after: tuple[str, ...] = ()


def imports(file: reader.GinFile) -> Iterator[reader.Import]:
  """The imports of a file, and of those it includes."""
  for part in file.walk():
    for statement in part.statements:
      if isinstance(statement, reader.Import):
        yield statement


def is_nameless(file: reader.GinFile, report: findings.Report) -> bool:
  """Whether it imports nothing, and has names that nobody knows by itself."""
  return not any(imports(file)) and any(
      each.kind == 'name' for each in report.findings
  )


def read(file: reader.GinFile, load: Callable[[str], Any]) -> Read:
  """Reads a file alone, or, where only so its names are known, as a part."""
  alone = lint_lib.lint([file], load=load)
  if not is_nameless(file, alone):
    return Read(alone)
  parts = [part for part in _parts(file, load) if not _errors(part)]
  # One whose scopes are entered, where there is one.
  return min(parts, key=_num_hints, default=Read(alone))


def _parts(
    file: reader.GinFile, load: Callable[[str], Any]
) -> Iterator[Read]:
  """The file after each pair of a model and a run file."""
  for after in itertools.product(_MODELS, _RUNS):
    try:
      before = [reader.read_file(path) for path in after]
    except reader.GinError:  # T5X's paths are not served
      continue
    report = lint_lib.lint([*before, file], load=load)
    yield Read(_of_file(report, file), after)


def _errors(part: Read) -> list[findings.Finding]:
  """What stays wrong when a macro is set by yet another file."""
  return [
      each
      for each in part.report.findings
      if not each.is_hint and each.kind != 'macro'
  ]


def _num_hints(part: Read) -> int:
  return len(part.report.hints)


def _of_file(
    report: findings.Report, file: reader.GinFile
) -> findings.Report:
  """What of a report is about one of its files, and those it includes."""
  own = {part.path for part in file.walk()}
  return dataclasses.replace(
      report,
      findings=[
          each
          for each in report.findings
          if isinstance(each.place, reader.Place) and each.place.file in own
      ],
      seen=[each for each in report.seen if each.binding.place.file in own],
  )
